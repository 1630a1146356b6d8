#include "worker/table_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/status_macros.h"
#include "worker/device_status.h"

namespace keelson {

std::unique_ptr<TableExchange> TableExchange::Create(ParameterClient* client, Model* model,
                                                     const Batcher* batcher) {
  if (model->spec().tables.empty()) return nullptr;
  return std::unique_ptr<TableExchange>(new TableExchange(client, model, batcher));
}

TableExchange::TableExchange(ParameterClient* client, Model* model, const Batcher* batcher)
    : rows_(client->table_rows()), model_(model), batcher_(batcher) {
  const std::vector<TableSpec>& tables = model->spec().tables;
  std::vector<size_t> by_name(tables.size());
  std::iota(by_name.begin(), by_name.end(), 0);
  std::sort(by_name.begin(), by_name.end(),
            [&](size_t a, size_t b) { return tables[a].name < tables[b].name; });
  at_client_.resize(tables.size());
  for (size_t i = 0; i < by_name.size(); ++i) at_client_[by_name[i]] = i;
  memory_.resize(tables.size());
  gradients_.resize(tables.size());
}

bool TableExchange::Has(const Batch& batch) const {
  const RowIds* const ids = rows_->ids().get();
  if (ids == nullptr) return false;
  for (size_t t = 0; t < at_client_.size(); ++t) {
    if ((*ids)[at_client_[t]] != batch.rows[t].ids) return false;
  }
  return true;
}

std::shared_ptr<const RowIds> TableExchange::ToClient(
    std::vector<std::vector<uint64_t>> ids) const {
  auto ordered = std::make_shared<RowIds>(ids.size());
  for (size_t t = 0; t < ids.size(); ++t) (*ordered)[at_client_[t]] = std::move(ids[t]);
  return ordered;
}

absl::Status TableExchange::Request(const Batch& batch) {
  std::vector<std::vector<uint64_t>> ids;
  for (const BatchRows& rows : batch.rows) ids.push_back(rows.ids);
  return rows_->Want(ToClient(std::move(ids)));
}

absl::Status TableExchange::RequestNext() {
  std::vector<std::vector<uint64_t>> ids;
  if (!batcher_->CopyNextIds(&ids)) return absl::OkStatus();
  return rows_->Want(ToClient(std::move(ids)));
}

absl::Status TableExchange::Load(const Batch& batch) {
  ready_ = 0;
  for (size_t t = 0; t < at_client_.size(); ++t) {
    RETURN_IF_ERROR(DeviceStatus(model_->SetRows(t, rows_->values()[at_client_[t]])));
    memory_[t].resize(batch.rows[t].ids.size() * model_->spec().tables[t].dim);
    gradients_[t] = absl::MakeSpan(memory_[t]);
  }
  return absl::OkStatus();
}

absl::Status TableExchange::NoteReady(bool ahead) {
  if (++ready_ < gradients_.size()) return absl::OkStatus();
  if (ahead) RETURN_IF_ERROR(RequestNext());
  std::vector<absl::Span<const float>> gradients(gradients_.size());
  for (size_t t = 0; t < gradients_.size(); ++t) gradients[at_client_[t]] = gradients_[t];
  return rows_->Offer(gradients);
}

}  // namespace keelson
