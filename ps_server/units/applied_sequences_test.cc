#include "ps_server/units/applied_sequences.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <optional>
#include <random>
#include <thread>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(AppliedSequencesTest, AUnitTakesEachPushOnce) {
  AppliedSequences applied;
  EXPECT_TRUE(applied.Take(3, /*incarnation=*/1, /*sequence=*/5));
  EXPECT_FALSE(applied.Take(3, 1, 5));
  EXPECT_FALSE(applied.Take(3, 1, 4));
  EXPECT_TRUE(applied.Take(3, 2, 5));
  EXPECT_TRUE(applied.Take(4, 1, 5));
  EXPECT_TRUE(applied.Take(3, 1, 6));
  EXPECT_FALSE(applied.Take(4, 1, 5));
}

TEST(AppliedSequencesTest, APushOfAllUnitsIsOneRun) {
  AppliedSequences applied;
  for (const size_t unit : {2, 0, 3, 1}) EXPECT_TRUE(applied.Take(unit, 1, 7));
  EXPECT_THAT(applied.Table()[1], ElementsAre(SequenceRun{0, 4, 7}));
  EXPECT_TRUE(applied.Take(2, 1, 8));
  EXPECT_THAT(applied.Table()[1],
              ElementsAre(SequenceRun{0, 2, 7}, SequenceRun{2, 3, 8}, SequenceRun{3, 4, 7}));
}

TEST(AppliedSequencesTest, TellsTheNewestOfAUnit) {
  const SequenceRuns runs = {{1, 3, 7}, {5, 6, 8}};
  const std::optional<uint64_t> expected[] = {{}, 7, 7, {}, {}, 8, {}};
  for (size_t unit = 0; unit < std::size(expected); ++unit) {
    EXPECT_EQ(NewestAt(runs, unit), expected[unit]) << unit;
  }
  EXPECT_EQ(NewestAt({}, 0), std::nullopt);
}

TEST(AppliedSequencesTest, KeepsThoseThatStay) {
  AppliedSequences applied;
  for (uint64_t incarnation = 1; incarnation <= 40; ++incarnation) applied.Take(0, incarnation, 1);
  applied.Keep(std::vector<uint64_t>{2, 17, 99});
  const SequenceTable table = applied.Table();
  EXPECT_THAT(table, SizeIs(2));
  EXPECT_EQ(table.count(2) + table.count(17), 2u);
  EXPECT_TRUE(applied.Take(0, 1, 1));
}

// Whatever comes in whatever order, each unit's answer is that of a list of its own.
TEST(AppliedSequencesTest, AgreesWithAListPerUnit) {
  constexpr size_t kUnits = 9;
  std::vector<std::map<uint64_t, uint64_t>> expected(kUnits);
  AppliedSequences applied;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const size_t unit = random() % kUnits;
    const uint64_t incarnation = random() % 3;
    uint64_t& newest = expected[unit][incarnation];
    const uint64_t sequence = newest == 0 ? 1 : newest + random() % 3 - 1;
    ASSERT_EQ(applied.Take(unit, incarnation, sequence), sequence > newest) << i;
    newest = std::max(newest, sequence);
  }
  const SequenceTable table = applied.Table();
  for (const auto& [incarnation, runs] : table) {
    uint32_t end = 0;
    for (const SequenceRun& run : runs) {
      EXPECT_GE(run.begin, end);
      for (end = run.begin; end < run.end; ++end) {
        EXPECT_EQ(run.sequence, expected[end][incarnation]);
      }
    }
  }
}

TEST(AppliedSequencesTest, ThreadsOfOneWorkerTakeEachUnitOnce) {
  constexpr size_t kUnits = 500;
  AppliedSequences applied;
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t unit = 0; unit < kUnits; ++unit) taken += applied.Take(unit, 1, 1) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kUnits);
  EXPECT_THAT(applied.Table()[1], ElementsAre(SequenceRun{0, kUnits, 1}));
}

// 10 GB of blocks of 1 MiB, pushed by 1000 workers in messages of four blocks, four in flight, each
// of them somewhere in the midst of its push.
TEST(AppliedSequencesTest, AThousandWorkersOnATenGigabyteShardTakeLessThanAMebibyte) {
  constexpr size_t kUnits = 10240, kWorkers = 1000, kPerMessage = 4, kMessages = kUnits / 4;
  AppliedSequences applied;
  std::mt19937 random(2);
  for (uint64_t worker = 1; worker <= kWorkers; ++worker) {
    const auto push = [&](uint64_t sequence, size_t message) {
      // The last layer's variables go first.
      const size_t first = kUnits - kPerMessage * (message + 1);
      for (size_t i = 0; i < kPerMessage; ++i) applied.Take(first + i, worker, sequence);
    };
    for (size_t m = 0; m < kMessages; ++m) push(1, m);
    const size_t sent = random() % (kMessages - 4);
    for (size_t m = 0; m < sent; ++m) push(2, m);
    // Some of the messages in flight have arrived.
    for (size_t m = sent; m < sent + 4; ++m) {
      if (random() % 2 == 0) push(2, m);
    }
  }
  size_t bytes = 0;
  for (const auto& [worker, runs] : applied.Table()) {
    bytes += sizeof(worker) + sizeof(runs) + runs.capacity() * sizeof(SequenceRun);
  }
  EXPECT_LT(bytes, size_t{1} << 20);
  RecordProperty("bytes", static_cast<int>(bytes));
}

}  // namespace
}  // namespace keelson
