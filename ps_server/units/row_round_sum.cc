#include "ps_server/units/row_round_sum.h"

#include <algorithm>

namespace keelson {

RowRoundSum::RowRoundSum(const RoundId& id, absl::Span<const size_t> dims) : id_(id) {
  tables_.resize(dims.size());
  for (size_t t = 0; t < dims.size(); ++t) tables_[t].dim = dims[t];
}

void RowRoundSum::BeginPush(float weight) {
  weight_ = weight;
  weights_ += weight;
  ++contributions_;
}

void RowRoundSum::Add(size_t table, absl::Span<const uint64_t> ids,
                      absl::Span<const float> gradients) {
  Rows& rows = tables_[table];
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [entry, is_new] = rows.position.try_emplace(ids[i], rows.position.size());
    if (is_new) rows.sums.resize(rows.sums.size() + rows.dim);
    float* const sum = rows.sums.data() + entry->second * rows.dim;
    const float* const gradient = gradients.data() + i * rows.dim;
    for (size_t e = 0; e < rows.dim; ++e) sum[e] += weight_ * gradient[e];
  }
}

void RowRoundSum::VisitMeans(size_t table, size_t most, MeanVisitor visit) {
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
