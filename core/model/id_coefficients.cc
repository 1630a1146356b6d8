#include "core/model/id_coefficients.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "core/base/radix_sort.h"

namespace keelson {
namespace {

double Divisor(Combiner combiner, absl::Span<const float> weights) {
  double sum = 0;
  switch (combiner) {
    case Combiner::kSum:
      return 1;
    case Combiner::kMean:
      for (const float weight : weights) sum += double{weight};
      return sum;
    case Combiner::kSqrtN:
      for (const float weight : weights) sum += double{weight} * double{weight};
      return std::sqrt(sum);
  }
  return 1;
}

}  // namespace

int64_t IdEntries::SetRecords(const FeatureValues& values, int64_t first, int64_t examples) {
  const auto begin_of = [&](int64_t record) {
    return values.offsets.empty() ? record : values.offsets[record];
  };
  const int64_t begin = begin_of(first);
  offsets_.resize(examples + 1);
  for (int64_t i = 0; i <= examples; ++i) {
    offsets_[i] = static_cast<int32_t>(begin_of(first + i) - begin);
  }
  ids_.resize(offsets_.back());
  weights_ = values.weights.empty()
                 ? absl::Span<const float>()
                 : absl::MakeConstSpan(values.weights).subspan(begin, ids_.size());
  return begin;
}

void IdEntries::Transpose() {
  example_of_.resize(ids_.size());
  for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
    std::fill(example_of_.begin() + offsets_[i], example_of_.begin() + offsets_[i + 1],
              static_cast<int32_t>(i));
  }
  order_.resize(ids_.size());
  for (size_t k = 0; k < ids_.size(); ++k) {
    order_[k] = static_cast<uint64_t>(ids_[k]) << 32 | static_cast<uint64_t>(k);
  }
  const int32_t most = ids_.empty() ? 0 : *std::max_element(ids_.begin(), ids_.end());
  // By the ids, which are the upper halves; those of an id keep their order.
  const uint64_t bits = std::bit_ceil(static_cast<uint64_t>(most) + 1) - 1;
  RadixSort(
      bits << 32, [](uint64_t key) { return key; }, &order_, &sorted_);
  examples_.resize(ids_.size());
  positions_.resize(ids_.size());
  distinct_ids_.clear();
  id_offsets_.clear();
  for (size_t k = 0; k < order_.size(); ++k) {
    const auto id = static_cast<int32_t>(order_[k] >> 32);
    positions_[k] = static_cast<int32_t>(order_[k] & 0xffffffff);
    examples_[k] = example_of_[positions_[k]];
    if (!distinct_ids_.empty() && distinct_ids_.back() == id) continue;
    distinct_ids_.push_back(id);
    id_offsets_.push_back(static_cast<int32_t>(k));
  }
  id_offsets_.push_back(static_cast<int32_t>(order_.size()));
}

void CoefficientsOf(const IdEntries& entries, Combiner combiner, absl::Span<float> coefficients) {
  std::copy(entries.weights().begin(), entries.weights().end(), coefficients.begin());
  if (entries.weights().empty()) std::fill(coefficients.begin(), coefficients.end(), 1.0f);
  if (combiner == Combiner::kSum) return;
  const absl::Span<const int32_t> offsets = entries.offsets();
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const absl::Span<float> of_example =
        coefficients.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    const double divisor = Divisor(combiner, of_example);
    for (float& coefficient : of_example) {
      coefficient = divisor == 0 ? 0.0f : static_cast<float>(double{coefficient} / divisor);
    }
  }
}

}  // namespace keelson
