// Lines of CSV files (RFC 4180, but that a record is one line), whose columns have names.
#ifndef KEELSON_CORE_DATA_CSV_FORMAT_H_
#define KEELSON_CORE_DATA_CSV_FORMAT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/record_format.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// `data` has csv, and is checked (core/config). `path` is the first of the files: unless csv.header
// names the columns its first line does, and is the first line of all files.
//   - Blanks and tabs around a field are none of it, unless they separate.
//   - A field that begins with a quotation mark ends with one, and has two for one.
//   - A field that is empty or one of the missing values is missing, quoted or not.
//   - All lines have the header's number of columns. Of these what the model takes is read
//     (core/data/columns/record_maker.h); others may be anything.
//
// INVALID_ARGUMENT: RecordMaker's; a column that the model takes is not in the header, or there
// twice; a header that is malformed. Others: those of reading the file.
absl::StatusOr<std::unique_ptr<const RecordFormat>> NewCsvFormat(const v1::DataConfig& data,
                                                                 const RecordSchema& schema,
                                                                 const std::string& path,
                                                                 FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_CSV_FORMAT_H_
