// Rows that no push has had for long: what reads, updates, cuts and rounds make of them, and how
// they are cleared away.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/wire/byte_rope.h"
#include "gtest/gtest.h"
#include "ps_server/units/one_table_testing.h"

namespace keelson {
namespace {

constexpr int64_t kExpireAfter = 8;

TableSpec ExpiresAfter(int64_t steps) {
  TableSpec spec;
  spec.expire_after_steps = steps;
  return spec;
}

class RowExpiryTest : public OneTableTest {
 protected:
  explicit RowExpiryTest(const std::string& optimizer = "sgd {}",
                         int64_t expire_after = kExpireAfter)
      : OneTableTest(ExpiresAfter(expire_after), optimizer) {}
};

TEST_F(RowExpiryTest, ARowIsThereUntilItHasMissedSoManySteps) {
  Push(0, {1, 2});
  Push(kExpireAfter, {2, 3});  // both were updated before 7 other steps
  EXPECT_EQ(Read({1, 2, 3}), (std::map<uint64_t, float>{{2, 2}, {3, 1}}));
  EXPECT_EQ(Size().rows, 3);  // not swept yet
  EXPECT_EQ(Size().expired_rows, 0);
}

TEST_F(RowExpiryTest, LookingARowUpDoesNotKeepIt) {
  Push(0, {1});
  for (int64_t step = 1; step < kExpireAfter; ++step) {
    Push(step, {2});
    EXPECT_EQ(Read({1}).size(), 1) << step;
  }
  Push(kExpireAfter, {2});
  EXPECT_TRUE(Read({1}).empty());
}

TEST_F(RowExpiryTest, AnUpdateOfAnExpiredRowMakesItAnew) {
  Push(0, {1});
  Push(kExpireAfter + 1, {1, 2}, -4);
  EXPECT_EQ(Read({1, 2}), (std::map<uint64_t, float>{{1, 4}, {2, 4}}));
  EXPECT_EQ(Size().expired_rows, 1);
}

TEST_F(RowExpiryTest, AllMessagesOfAPushSeeTheSameRows) {
  Push(0, IdsFrom(0, 1000));
  Push(kExpireAfter, IdsFrom(0, 1000));  // the first partition counts the step as done
  for (const auto& [id, value] : Read(IdsFrom(0, 1000))) EXPECT_EQ(value, 2) << id;
  EXPECT_EQ(Size().expired_rows, 0);
}

TEST_F(RowExpiryTest, AMeanOfARoundMakesAnExpiredRowAnew) {
  Push(0, {1});
  const RoundId round = {kExpireAfter + 1, 1};
  const uint32_t partition = RowPartitionOf(MixId(1, TableSalt("users")));
  const float gradient = -4;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const std::vector<uint64_t> ids(p == partition ? 1 : 0, 1);
    ByteRope rope;
    rope.AppendBorrowed(&gradient, ids.size() * sizeof(float));
    ByteCursor cursor(rope);
    store_->Partition(p)->Stage({1, 100}, round, 1, {{0, ids, WireFormat::kFloat32, &cursor}});
  }
  ThreadPool pool(1);
  store_->CommitRound(round, 1, &pool);
  EXPECT_EQ(Read({1}), (std::map<uint64_t, float>{{1, 4}}));
}

TEST_F(RowExpiryTest, ARestoredJobCountsFromWhereItStood) {
  store_->RestoreStepsDone(1'000'000);
  for (const uint64_t id : {1, 2}) {
    const uint32_t partition = RowPartitionOf(MixId(id, TableSalt("users")));
    const absl::Status added =
        store_->Partition(partition)->AddRows(0, {id}, [&](size_t, RowHeader* row) {
          row->last_step = static_cast<uint32_t>(1'000'000 - (id == 1 ? 1 : kExpireAfter + 1));
          row->updates = 1;
          row->values()[0] = 7;
        });
    ASSERT_TRUE(added.ok()) << added;
  }
  EXPECT_EQ(Read({1, 2}), (std::map<uint64_t, float>{{1, 7}}));
  for (int64_t step = 0; step < kExpireAfter - 1; ++step) {
    PushAndSweep(1'000'000 + step, {3});
    EXPECT_EQ(Read({1}).size(), 1) << step;
  }
  PushAndSweep(1'000'000 + kExpireAfter - 1, {3});
  EXPECT_TRUE(Read({1}).empty());
}

TEST_F(RowExpiryTest, ASweepErasesWhatHasExpired) {
  Push(0, IdsFrom(0, 5000));
  const std::vector<uint64_t> kept = IdsFrom(4000, 5000);
  for (int64_t step = 1; step <= 2 * kExpireAfter; ++step) PushAndSweep(step, kept);
  EXPECT_EQ(Size().rows, 1000);
  EXPECT_EQ(Size().expired_rows, 4000);
  const std::map<uint64_t, float> rows = Read(IdsFrom(0, 5000));
  EXPECT_EQ(rows.size(), 1000);
  for (const auto& [id, value] : rows) EXPECT_EQ(value, 2 * kExpireAfter + 1) << id;
}

TEST_F(RowExpiryTest, ACutHasTheRowsThatASweepErases) {
  Push(0, IdsFrom(0, 2000));
  const std::shared_ptr<const TableCut> cut = store_->Cut();
  for (int64_t step = 1; step <= 2 * kExpireAfter; ++step) PushAndSweep(step, {9'999});
  EXPECT_EQ(Size().rows, 1);
  std::set<uint64_t> ids;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    const absl::Status status = cut->Read(
        p, 0,
        [&](const RowTable&, absl::Span<const RowHeader* const> rows) {
          for (const RowHeader* row : rows) {
            ids.insert(row->id);
            EXPECT_EQ(row->values()[0], 1);
          }
        },
        [] { return absl::OkStatus(); });
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(ids.size(), 2000);
}

TEST_F(RowExpiryTest, PullsRunWhileRowsExpire) {
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      for (const auto& [id, value] : Read(IdsFrom(0, 600))) EXPECT_GE(value, 1) << id;
    }
  });
  std::thread cutter([&] {
    while (!done) store_->Sizes();
  });
  for (int64_t step = 0; step < 60; ++step) {
    const uint64_t first = static_cast<uint64_t>(step) * 10;
    PushAndSweep(step, IdsFrom(first, first + 10));
  }
  done = true;
  reader.join();
  cutter.join();
  EXPECT_GT(Size().expired_rows, 400);
}

class SlotExpiryTest : public RowExpiryTest {
 protected:
  SlotExpiryTest() : RowExpiryTest("momentum { momentum: 0.5 }") {}
};

TEST_F(SlotExpiryTest, ARowThatComesBackHasInitialSlots) {
  Push(0, {1}, -8);
  Push(1, {1}, -8);
  Push(20, {1, 2}, -8);
  const std::map<uint64_t, float> rows = Read({1, 2});
  EXPECT_EQ(rows.at(1), rows.at(2));
}

class SlowExpiryTest : public RowExpiryTest {
 protected:
  SlowExpiryTest() : RowExpiryTest("sgd {}", /*expire_after=*/400) {}
};

// A pass takes a quarter of the steps, and no push does much of it.
TEST_F(SlowExpiryTest, ASweepIsSpreadOverTheSteps) {
  Push(0, IdsFrom(0, 50'000));
  Push(500, {1'000'000});
  int64_t before = Size().rows;
  int64_t most = 0;
  for (int64_t step = 500; step < 600; ++step) {
    store_->UpdateAt(step, 1);
    store_->Sweep(1);
    most = std::max(most, before - Size().rows);
    before = Size().rows;
  }
  EXPECT_EQ(Size().rows, 1);
  EXPECT_LT(most, 1500);
}

TEST_F(SlowExpiryTest, APushWithFewIdsDoesABoundedPart) {
  Push(0, IdsFrom(0, 50'000));
  store_->UpdateAt(10'000, 1);  // a pass is overdue
  store_->Sweep(1);
  EXPECT_GT(Size().rows, 50'000 - 20'000);
  EXPECT_LT(Size().rows, 50'000);
}

TEST_F(SlowExpiryTest, MemoryIsGivenBackAndUsedAgain) {
  Push(0, IdsFrom(0, 100'000));
  const int64_t full = Size().bytes;
  Push(500, {1'000'000});
  for (int64_t step = 500; step < 800; ++step) {
    store_->UpdateAt(step, 1);
    store_->Sweep(1);
  }
  EXPECT_EQ(Size().rows, 1);
  EXPECT_LT(Size().bytes, full / 2);
  Push(800, IdsFrom(200'000, 300'000));
  EXPECT_LT(static_cast<double>(Size().bytes), 1.05 * static_cast<double>(full));
}

// Of rows that lie anywhere in the memory, three quarters go.
TEST_F(SlowExpiryTest, MemoryBetweenRowsThatStayIsGivenBack) {
  Push(0, IdsFrom(0, 100'000));
  const int64_t full = Size().bytes;
  std::vector<uint64_t> kept;
  for (uint64_t id = 0; id < 100'000; id += 4) kept.push_back(id);
  Push(399, kept);
  for (int64_t step = 500; step < 800; ++step) {
    if (step == 700) Push(step, kept);
    store_->UpdateAt(step, 1);
    store_->Sweep(1);
  }
  EXPECT_EQ(Size().rows, 25'000);
  EXPECT_LT(Size().bytes, full * 6 / 10);
}

}  // namespace
}  // namespace keelson
