// Where a model gets the rows of tables from.
#ifndef KEELSON_CORE_MODEL_ROW_SOURCE_H_
#define KEELSON_CORE_MODEL_ROW_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/model/model.h"
#include "core/model/spec/batch.h"

namespace keelson {

// For example the tables of a snapshot. Used by one thread at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // Reads the rows of these ids, which are distinct and in the order of BatchRows::ids, into
  // `rows`, [ids, dim]. `table` is a position in ModelSpec::tables. An id without a row has its
  // initial values.
  virtual absl::Status ReadRows(size_t table, absl::Span<const uint64_t> ids,
                                absl::Span<float> rows) = 0;
};

// Gives the model the rows of Batch::rows. Errors are the source's and those of Model::SetRows.
// `buffer` is memory that is used again.
absl::Status LoadRows(const Batch& batch, RowSource* source, std::vector<float>* buffer,
                      Model* model);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_ROW_SOURCE_H_
