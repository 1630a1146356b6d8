#include "core/model/row_source.h"

#include "core/base/status_macros.h"

namespace keelson {

absl::Status LoadRows(const Batch& batch, RowSource* source, std::vector<float>* buffer,
                      Model* model) {
  for (size_t t = 0; t < batch.rows.size(); ++t) {
    const std::vector<uint64_t>& ids = batch.rows[t].ids;
    buffer->resize(ids.size() * static_cast<size_t>(model->spec().tables[t].dim));
    RETURN_IF_ERROR(source->ReadRows(t, ids, absl::MakeSpan(*buffer)));
    RETURN_IF_ERROR(model->SetRows(t, *buffer));
  }
  return absl::OkStatus();
}

}  // namespace keelson
