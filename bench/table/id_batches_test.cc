#include "bench/table/id_batches.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/table/row_id.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

TEST(IdBatchesTest, ABatchIsInRowOrder) {
  std::mt19937_64 random(1);
  const IdBatch batch = DrawBatch(4096, [&] { return random() % 10000; });
  ASSERT_EQ(batch.ids.size(), 4096u);
  EXPECT_EQ(batch.begins[kRowPartitions], 4096u);
  for (size_t p = 0; p < kRowPartitions; ++p) {
    uint64_t last = 0;
    for (const uint64_t id : batch.Partition(p)) {
      EXPECT_EQ(RowPartitionOf(MixId(id, kBenchSalt)), p);
      EXPECT_TRUE(last == 0 || last < id);
      last = id;
    }
  }
}

TEST(IdBatchesTest, ThePowerLawIsAPowerLaw) {
  constexpr uint64_t kRows = 100000;
  const PowerLaw law(kRows, 1.05);
  std::mt19937_64 random(2);
  std::vector<double> drawn(kRows);
  constexpr int kDraws = 1000000;
  for (int i = 0; i < kDraws; ++i) {
    ++drawn[law.Draw(static_cast<double>(random() >> 11) * 0x1p-53)];
  }
  for (const size_t row : {30, 100, 300}) {
    // Twice the rank; a few rows together.
    double near = 0, far = 0;
    for (size_t i = 0; i < row / 5; ++i) near += drawn[row + i];
    for (size_t i = 0; i < 2 * (row / 5); ++i) far += drawn[2 * row + i];
    EXPECT_NEAR(std::log2(2 * near / far), 1.05, 0.15) << row;
  }
}

}  // namespace
}  // namespace keelson::bench
