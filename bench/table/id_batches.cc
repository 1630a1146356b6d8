#include "bench/table/id_batches.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace keelson::bench {

uint64_t IdOfRow(uint64_t n) { return MixId(n, 0x1d5); }

IdBatch InRowOrder(std::vector<uint64_t> ids) {
  const auto partition = [](uint64_t id) { return RowPartitionOf(MixId(id, kBenchSalt)); };
  std::sort(ids.begin(), ids.end(), [&](uint64_t a, uint64_t b) {
    return std::make_pair(partition(a), a) < std::make_pair(partition(b), b);
  });
  IdBatch batch;
  for (const uint64_t id : ids) ++batch.begins[partition(id) + 1];
  for (size_t p = 0; p < kRowPartitions; ++p) batch.begins[p + 1] += batch.begins[p];
  batch.ids = std::move(ids);
  return batch;
}

IdBatch DrawBatch(size_t size, const std::function<uint64_t()>& draw) {
  std::unordered_set<uint64_t> rows;
  while (rows.size() < size) rows.insert(draw());
  std::vector<uint64_t> ids;
  for (const uint64_t row : rows) ids.push_back(IdOfRow(row));
  return InRowOrder(std::move(ids));
}

// The inverse of the integral of x^-exponent over [1, rows + 1).
PowerLaw::PowerLaw(uint64_t rows, double exponent)
    : rows_(rows),
      exponent_(1 - exponent),
      range_(std::pow(static_cast<double>(rows + 1), exponent_) - 1) {}

uint64_t PowerLaw::Draw(double uniform) const {
  const double x = std::pow(1 + uniform * range_, 1 / exponent_);
  return std::min(rows_ - 1, static_cast<uint64_t>(x) - 1);
}

}  // namespace keelson::bench
