#include "ps_server/units/row_round_sum.h"

#include <algorithm>
#include <utility>

namespace keelson {

RowRoundSum::RowRoundSum(const RoundId& id, absl::Span<const size_t> dims) : id_(id) {
  tables_.resize(dims.size());
  for (size_t t = 0; t < dims.size(); ++t) tables_[t].dim = dims[t];
}

void RowRoundSum::BeginPush(float weight, uint32_t order) {
  weight_ = weight;
  order_ = order;
  weights_ += weight;
  ++contributions_;
  const bool keeps = order > next_order_ && !kept_.contains(order);
  newest_kept_ = keeps ? &kept_[order] : nullptr;
  if (keeps) newest_kept_->weight = weight;
}

void RowRoundSum::EndPush() {
  if (order_ == next_order_) ++next_order_;
  while (!kept_.empty() && kept_.begin()->first == next_order_) AddFirstKept();
}

void RowRoundSum::Add(size_t table, absl::Span<const uint64_t> ids,
                      absl::Span<const float> gradients) {
  if (newest_kept_ == nullptr) return AddNow(table, weight_, ids, gradients);
  newest_kept_->rows.push_back(
      {table, {ids.begin(), ids.end()}, {gradients.begin(), gradients.end()}});
}

void RowRoundSum::AddFirstKept() {
  const auto [order, push] = std::move(*kept_.begin());
  kept_.erase(kept_.begin());
  for (const KeptRows& rows : push.rows) AddNow(rows.table, push.weight, rows.ids, rows.gradients);
  next_order_ = order + 1;
}

void RowRoundSum::AddNow(size_t table, float weight, absl::Span<const uint64_t> ids,
                         absl::Span<const float> gradients) {
  Rows& rows = tables_[table];
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [entry, is_new] = rows.position.try_emplace(ids[i], rows.position.size());
    if (is_new) rows.sums.resize(rows.sums.size() + rows.dim);
    float* const sum = rows.sums.data() + entry->second * rows.dim;
    const float* const gradient = gradients.data() + i * rows.dim;
    for (size_t e = 0; e < rows.dim; ++e) sum[e] += weight * gradient[e];
  }
}

void RowRoundSum::VisitMeans(size_t table, size_t most, MeanVisitor visit) {
  while (!kept_.empty()) AddFirstKept();
  const Rows& rows = tables_[table];
  std::vector<uint64_t> ids;
  ids.reserve(rows.position.size());
  for (const auto& [id, position] : rows.position) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  const auto divisor = static_cast<float>(weights_);
  std::vector<float> means(std::min(most, ids.size()) * rows.dim);
  for (size_t begin = 0; begin < ids.size(); begin += most) {
    const size_t count = std::min(most, ids.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      const float* const sum = rows.sums.data() + rows.position.at(ids[begin + i]) * rows.dim;
      for (size_t e = 0; e < rows.dim; ++e) means[i * rows.dim + e] = sum[e] / divisor;
    }
    visit(absl::MakeConstSpan(ids).subspan(begin, count),
          absl::MakeConstSpan(means).first(count * rows.dim));
  }
}

}  // namespace keelson
