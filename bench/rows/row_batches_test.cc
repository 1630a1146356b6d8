#include "bench/rows/row_batches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bench/table/id_batches.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

constexpr uint64_t kRows = 26'000;

void ExpectRowOrder(const RowBatch& batch) {
  const uint64_t salt = TableSalt(kBenchTable);
  const auto place = [&](uint64_t id) { return std::pair(RowPartitionOf(MixId(id, salt)), id); };
  const std::vector<uint64_t>& ids = batch->front();
  for (size_t i = 1; i < ids.size(); ++i) EXPECT_LT(place(ids[i - 1]), place(ids[i])) << i;
}

TEST(RowBatchesTest, RowsOfNumbers) {
  const RowBatch batch = BatchOfRows(10, 1010);
  EXPECT_EQ(NumIds(batch), 1000);
  ExpectRowOrder(batch);
  const std::vector<uint64_t>& ids = batch->front();
  EXPECT_EQ(std::count(ids.begin(), ids.end(), IdOfRow(10)), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), IdOfRow(1010)), 0);
}

TEST(RowBatchesTest, DrawnIdsAreDistinctRowsOfTheTable) {
  std::set<uint64_t> known;
  for (uint64_t row = 0; row < kRows; ++row) known.insert(IdOfRow(row));
  for (const IdLaw law : {IdLaw::kZipf, IdLaw::kUniform, IdLaw::kHot}) {
    const std::vector<RowBatch> batches = DrawBatches(law, kRows, 2, 7);
    ASSERT_EQ(batches.size(), 2u);
    EXPECT_NE(*batches[0], *batches[1]);
    for (const RowBatch& batch : batches) {
      ExpectRowOrder(batch);
      for (const uint64_t id : batch->front()) EXPECT_EQ(known.count(id), 1u);
    }
  }
}

TEST(RowBatchesTest, LawsDecideHowManyAreDistinct) {
  constexpr uint64_t kMany = 26'000'000;
  const auto distinct = [&](IdLaw law) { return NumIds(DrawBatches(law, kMany, 1, 7)[0]); };
  constexpr int64_t kIds = kBatchExamples * kBatchFields;
  const int64_t uniform = distinct(IdLaw::kUniform);
  EXPECT_GT(uniform, kIds * 99 / 100);
  EXPECT_LT(distinct(IdLaw::kZipf), uniform * 3 / 5);
  // One field has a single id.
  EXPECT_NEAR(static_cast<double>(distinct(IdLaw::kHot)),
              static_cast<double>(uniform) * (kBatchFields - 1) / kBatchFields, 200);
}

TEST(RowBatchesTest, SeedsDrawOthers) {
  EXPECT_EQ(*DrawBatches(IdLaw::kZipf, kRows, 1, 1)[0], *DrawBatches(IdLaw::kZipf, kRows, 1, 1)[0]);
  EXPECT_NE(*DrawBatches(IdLaw::kZipf, kRows, 1, 1)[0], *DrawBatches(IdLaw::kZipf, kRows, 1, 2)[0]);
}

}  // namespace
}  // namespace keelson::bench
