// Formats of files of records, such as text files in which each line is one.
#ifndef KEELSON_CORE_DATA_RECORD_FORMAT_H_
#define KEELSON_CORE_DATA_RECORD_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/data/columns/record_columns.h"
#include "core/data/record_framing.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// Why bytes that are framed as a record are none.
struct RecordError {
  size_t column = 0;  // the byte, from 1, with which what is wrong begins
  std::string expected;
  std::string found;
};

// Reads what a model takes of a record from its bytes. Immutable; any number of threads may use it
// together.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;

  // The model's.
  const RecordSchema& schema() const { return schema_; }

  // How records lie in a file.
  virtual const RecordFraming& framing() const { return LineFraming(); }

  // Of all on which it depends which bytes are records; never 0. A change of the code that makes
  // others one changes it too.
  virtual uint64_t fingerprint() const = 0;

  // Whether a file's first line is no record, but names its columns.
  virtual bool has_header() const { return false; }
  // False: this first line does not name the columns that the format was made for.
  virtual bool CheckHeader(absl::string_view line, RecordError* error) const { return true; }

  // Fills row `row` of a batch that has room for more (Resize); the rows are filled in their order.
  // The byte behind the bytes may be read; behind a line it is "\n" or "\r". False: it is no
  // record; `batch` is then as if it had not been tried, but for the row's numbers, ids and label,
  // and `error` is set.
  virtual bool Parse(absl::string_view bytes, int64_t row, Batch* batch,
                     RecordError* error) const = 0;

  // What a record has in those columns of its file that the model takes; the byte behind the bytes
  // may be read. Nothing: the format has no columns, or the bytes have none.
  virtual RecordColumns Columns(absl::string_view bytes) const { return {}; }

 protected:
  explicit RecordFormat(RecordSchema schema) : schema_(std::move(schema)) {}

 private:
  const RecordSchema schema_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_RECORD_FORMAT_H_
