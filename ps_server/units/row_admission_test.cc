// Which push gives an id its row, and what is kept of ids until then.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/wire/byte_rope.h"
#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

TableSpec AdmitsAfter(int64_t pushes, int64_t expire_after = 0, int64_t max_rows = 0) {
  TableSpec spec;
  spec.admit_after = pushes;
  spec.expire_after_steps = expire_after;
  spec.max_rows = max_rows;
  return spec;
}

class RowAdmissionTest : public OneTableTest {
 protected:
  explicit RowAdmissionTest(const TableSpec& limits = AdmitsAfter(3)) : OneTableTest(limits) {}
};

TEST_F(RowAdmissionTest, TheThirdPushMakesTheRow) {
  Push(0, {1, 2});
  Push(1, {1, 2, 3});
  EXPECT_TRUE(Read({1, 2, 3}).empty());
  EXPECT_EQ(Size().rows, 0);
  EXPECT_EQ(Size().ghosts, 3);
  EXPECT_EQ(Size().admitted_rows, 0);
  Push(2, {1, 3}, -4);
  EXPECT_EQ(Read({1, 2, 3}), (std::map<uint64_t, float>{{1, 4}}));
  EXPECT_EQ(Size().rows, 1);
  EXPECT_EQ(Size().ghosts, 2);
  EXPECT_EQ(Size().admitted_rows, 1);
  Push(3, {1, 2, 3});
  EXPECT_EQ(Read({1, 2, 3}), (std::map<uint64_t, float>{{1, 5}, {2, 1}, {3, 1}}));
  EXPECT_EQ(Size().ghosts, 0);
  EXPECT_EQ(Size().refused_rows, 0);
}

TEST_F(RowAdmissionTest, APushThatIsRepeatedCountsOnce) {
  Push(0, {1});
  Push(1, {1});
  const uint32_t p = RowPartitionOf(MixId(1, TableSalt("users")));
  const std::vector<uint64_t> ids = {1};
  const float gradient = -1;
  ByteRope rope;
  rope.AppendBorrowed(&gradient, sizeof(float));
  ByteCursor cursor(rope);
  EXPECT_FALSE(store_->Partition(p)->Apply({1, sequence_}, store_->UpdateAt(1, 1),
                                           {{0, ids, WireFormat::kFloat32, &cursor}}));
  EXPECT_EQ(Size().rows, 0);
}

TEST_F(RowAdmissionTest, ARoundCountsOnce) {
  const uint32_t partition = RowPartitionOf(MixId(1, TableSalt("users")));
  ThreadPool pool(1);
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(Size().rows, 0);
    const RoundId round = {step, 1};
    const float gradient = -4;
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      const std::vector<uint64_t> ids(p == partition ? 1 : 0, 1);
      for (const uint64_t worker : {1, 2}) {
        ByteRope rope;
        rope.AppendBorrowed(&gradient, ids.size() * sizeof(float));
        ByteCursor cursor(rope);
        store_->Partition(p)->Stage({worker, static_cast<uint64_t>(step) + 1}, round, 1,
                                    {{0, ids, WireFormat::kFloat32, &cursor}});
      }
    }
    store_->CommitRound(round, 1, &pool);
  }
  EXPECT_EQ(Read({1}), (std::map<uint64_t, float>{{1, 4}}));
}

TEST_F(RowAdmissionTest, AGhostTakesFewBytes) {
  Push(0, IdsFrom(0, 200'000));
  EXPECT_EQ(Size().ghosts, 200'000);
  // 16, and its place in the index; more while there are few in a partition.
  EXPECT_LT(Size().bytes, 200'000 * 30);
}

TEST_F(RowAdmissionTest, ACutHasTheCounts) {
  Push(0, IdsFrom(0, 500));
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  Push(1, IdsFrom(0, 1000));
  Push(2, IdsFrom(0, 500));
  EXPECT_EQ(Size().ghosts, 500);
  EXPECT_EQ(Size().rows, 500);
  size_t ghosts = 0;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const absl::Status status = cut->Read(
        p, 1,
        [&](const RowTable&, absl::Span<const RowHeader* const> rows) {
          for (const RowHeader* row : rows) {
            ++ghosts;
            EXPECT_LT(row->id, 500u);
            EXPECT_EQ(row->updates, 1);
          }
        },
        [] { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(ghosts, 500);
}

class OldCountsTest : public RowAdmissionTest {
 protected:
  OldCountsTest() : RowAdmissionTest(AdmitsAfter(2, /*expire_after=*/8)) {}
};

TEST_F(OldCountsTest, ACountIsForgottenAfterTheStepsOfExpiry) {
  Push(0, {1, 2});
  Push(8, {1});
  EXPECT_EQ(Read({1}).size(), 1);
  Push(9, {2});
  EXPECT_TRUE(Read({2}).empty());
  Push(10, {2});
  EXPECT_EQ(Read({2}).size(), 1);
}

TEST_F(OldCountsTest, AnExpiredIdIsCountedAnew) {
  Push(0, {1});
  Push(1, {1});
  EXPECT_EQ(Read({1}).size(), 1);
  Push(20, {1});
  EXPECT_TRUE(Read({1}).empty());
  EXPECT_EQ(Size().rows, 0);
  EXPECT_EQ(Size().expired_rows, 1);
  Push(21, {1}, -4);
  EXPECT_EQ(Read({1}), (std::map<uint64_t, float>{{1, 4}}));
}

TEST_F(OldCountsTest, TheSweepClearsOldCounts) {
  Push(0, IdsFrom(0, 5000));
  for (int64_t step = 1; step <= 16; ++step) PushAndSweep(step, {9'999'999});
  EXPECT_EQ(Size().ghosts, 0);
  EXPECT_EQ(Size().expired_rows, 0);
  EXPECT_EQ(Size().rows, 1);
}

class FullAdmissionTest : public RowAdmissionTest {
 protected:
  FullAdmissionTest() : RowAdmissionTest(AdmitsAfter(2, 0, /*max_rows=*/256)) {}
};

TEST_F(FullAdmissionTest, ARefusedIdKeepsItsCount) {
  const std::vector<uint64_t> ids = IdsFrom(0, 2000);
  Push(0, ids);
  EXPECT_EQ(Size().refused_rows, 0);
  Push(1, ids);
  const TableSize size = Size();
  EXPECT_GT(size.rows, 200);
  EXPECT_LE(size.rows, 256);
  EXPECT_EQ(size.rows + size.ghosts, 2000);
  EXPECT_EQ(size.refused_rows, size.ghosts);
}

}  // namespace
}  // namespace keelson
