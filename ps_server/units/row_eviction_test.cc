// Which rows give way where a table is full.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

TableSpec Evicts(int64_t max_rows, int64_t admit_after = 0) {
  TableSpec spec;
  spec.max_rows = max_rows;
  spec.evict = true;
  spec.admit_after = admit_after;
  return spec;
}

// Eight rows in each partition.
class RowEvictionTest : public OneTableTest {
 protected:
  explicit RowEvictionTest(const TableSpec& limits = Evicts(8 * kRowPartitions))
      : OneTableTest(limits) {}

  size_t Found(uint64_t begin, uint64_t end) const { return Read(IdsFrom(begin, end)).size(); }
};

TEST_F(RowEvictionTest, NewRowsTakeThePlaceOfOldOnes) {
  for (int64_t step = 0; step < 20; ++step) {
    const auto first = static_cast<uint64_t>(step) * 1000;
    Push(step, IdsFrom(first, first + 1000));
    EXPECT_LE(Size().rows, 8 * kRowPartitions);
  }
  const TableSize size = Size();
  EXPECT_GT(size.rows, 7 * kRowPartitions);
  EXPECT_EQ(size.evicted_rows + size.rows, 20'000 - size.refused_rows);
  // A step brings four new rows to a partition, seldom more than eight.
  EXPECT_LT(size.refused_rows, 400);
  EXPECT_GT(Found(19'000, 20'000), 950);
  EXPECT_GT(Found(18'000, 19'000), 500);
  EXPECT_LT(Found(0, 15'000), 50);
}

TEST_F(RowEvictionTest, RowsWithMoreUpdatesStayLonger) {
  const std::vector<uint64_t> often = IdsFrom(0, 500);
  for (int64_t step = 0; step < 100; ++step) Push(step, often);
  for (int64_t step = 100; step < 140; ++step) {
    const auto first = static_cast<uint64_t>(step) * 1000;
    Push(step, IdsFrom(first, first + 100));
  }
  EXPECT_GE(Found(0, 500), 480) << "40 steps over 100 updates";
  EXPECT_GT(Size().evicted_rows, 1000);
  for (const auto& [id, value] : Read(often)) EXPECT_EQ(value, 100) << id;
}

TEST_F(RowEvictionTest, RowsOfTheNewestStepStay) {
  Push(0, IdsFrom(0, 20'000));
  const TableSize size = Size();
  EXPECT_EQ(size.evicted_rows, 0);
  EXPECT_EQ(size.rows + size.refused_rows, 20'000);
  // What a push has of a row's batch stays as well, whatever step it is of.
  store_->RestoreStepsDone(100);
  std::vector<uint64_t> there;
  for (const auto& [id, value] : Read(IdsFrom(0, 20'000))) there.push_back(id);
  std::vector<uint64_t> all = there;
  for (uint64_t id = 100'000; id < 105'000; ++id) all.push_back(id);
  Push(1, all);
  for (const auto& [id, value] : Read(there)) EXPECT_EQ(value, 2) << id;
  for (const auto& [id, value] : Read(IdsFrom(100'000, 105'000))) EXPECT_EQ(value, 1) << id;
}

TEST_F(RowEvictionTest, ACutHasTheRowsThatAreEvicted) {
  Push(0, IdsFrom(0, 1000));
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  for (int64_t step = 1; step < 10; ++step) {
    const auto first = static_cast<uint64_t>(step) * 10'000;
    Push(step, IdsFrom(first, first + 1000));
  }
  EXPECT_LT(Found(0, 1000), 50);
  std::map<uint64_t, float> rows;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const absl::Status status = cut->Read(
        p, 0,
        [&](const RowTable&, absl::Span<const RowHeader* const> some) {
          for (const RowHeader* row : some) rows[row->id] = row->values()[0];
        },
        [] { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_GT(rows.size(), 970);  // some partitions had more than eight
  for (const auto& [id, value] : rows) EXPECT_EQ(value, 1) << id;
}

class AdmittedEvictionTest : public RowEvictionTest {
 protected:
  AdmittedEvictionTest() : RowEvictionTest(Evicts(8 * kRowPartitions, /*admit_after=*/2)) {}
};

TEST_F(AdmittedEvictionTest, AnAdmittedRowTakesThePlaceOfAnother) {
  for (int64_t step = 0; step < 20; ++step) {
    const auto first = static_cast<uint64_t>(step) / 2 * 1000;
    Push(step, IdsFrom(first, first + 1000));
  }
  EXPECT_GT(Found(9000, 10'000), 950);
  EXPECT_GT(Size().evicted_rows, 5000);
}

}  // namespace
}  // namespace keelson
