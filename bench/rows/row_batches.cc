#include "bench/rows/row_batches.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "bench/table/id_batches.h"

namespace keelson::bench {
namespace {

constexpr double kZipfExponent = 1.05;

// Rows are given by their numbers, which may repeat.
RowBatch BatchOf(std::vector<uint64_t> numbers) {
  const uint64_t salt = TableSalt(kBenchTable);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::pair<uint32_t, uint64_t>> places;  // partition, id
  places.reserve(numbers.size());
  for (const uint64_t number : numbers) {
    const uint64_t id = IdOfRow(number);
    places.push_back({RowPartitionOf(MixId(id, salt)), id});
  }
  std::sort(places.begin(), places.end());
  auto ids = std::make_shared<RowIds>(1);
  ids->front().reserve(places.size());
  for (const auto& [partition, id] : places) ids->front().push_back(id);
  return ids;
}

}  // namespace

RowBatch BatchOfRows(uint64_t begin, uint64_t end, uint64_t every) {
  std::vector<uint64_t> numbers;
  for (uint64_t number = begin; number < end; number += every) numbers.push_back(number);
  return BatchOf(std::move(numbers));
}

std::vector<RowBatch> DrawBatches(IdLaw law, uint64_t rows, size_t count, uint64_t seed) {
  const uint64_t field_rows = rows / kBatchFields;
  const PowerLaw zipf(field_rows, kZipfExponent);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  const auto draw = [&](int64_t field) -> uint64_t {
    if (law == IdLaw::kZipf) return zipf.Draw(uniform(random));
    if (law == IdLaw::kHot && field == 0) return 0;
    return random() % field_rows;
  };
  std::vector<RowBatch> batches;
  for (size_t b = 0; b < count; ++b) {
    std::vector<uint64_t> numbers;
    for (int64_t example = 0; example < kBatchExamples; ++example) {
      for (int64_t field = 0; field < kBatchFields; ++field) {
        numbers.push_back(static_cast<uint64_t>(field) * field_rows + draw(field));
      }
    }
    batches.push_back(BatchOf(std::move(numbers)));
  }
  return batches;
}

}  // namespace keelson::bench
