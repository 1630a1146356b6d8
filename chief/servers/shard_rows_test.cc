#include "chief/servers/shard_rows.h"

#include <cstring>
#include <map>
#include <string>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/table_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kRowsPrefix[] = "/job/model.ckpt-40";

template <typename T>
std::vector<T> NumbersOf(const std::string& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

class ShardRowsTest : public testing::Test {
 protected:
  ShardRowsTest() {
    EXPECT_TRUE(files_.CreateDirectories("/job").ok());
    WriteTables(&files_, kRowsPrefix, {table_}, 2);
    bundle_ = *BundleReader::Open(kRowsPrefix, &files_);
  }

  absl::StatusOr<std::unique_ptr<ShardRows>> Open(const Placement& placement, size_t shard) {
    v1::InitializeShardRequest request;
    request.set_shard(static_cast<uint32_t>(shard));
    request.mutable_optimizer()->mutable_adagrad()->set_initial_accumulator(0.1f);
    request.set_seed(table_.seed);
    return ShardRows::Open(request, placement, bundle_.get());
  }
  Placement PlacementOn(size_t shards) {
    return Placement::Compute({{"w", Shape({5, 3}), {}}}, shards, 4, {table_.spec});
  }
  static void AddTo(const v1::InitializeChunk::Rows& rows, std::map<uint64_t, TestRow>* all) {
    const std::vector<uint64_t> ids = NumbersOf<uint64_t>(rows.keys());
    const std::vector<float> elements = NumbersOf<float>(rows.elements());
    ASSERT_EQ(elements.size(), 6 * ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto from = elements.begin() + static_cast<int64_t>(6 * i);
      TestRow row;
      row.values.assign(from, from + 3);
      row.slots = {{from + 3, from + 6}};
      row.last_step = NumbersOf<uint32_t>(rows.last_steps())[i];
      row.updates = NumbersOf<uint32_t>(rows.updates())[i];
      EXPECT_EQ(RowPartitionOf(MixId(ids[i], TableSalt("users"))), rows.partition());
      EXPECT_TRUE(all->emplace(ids[i], row).second);
    }
  }

  MemoryFileSystem files_;
  TestTable table_ = UsersTable(20'000);
  std::unique_ptr<BundleReader> bundle_;
};

TEST_F(ShardRowsTest, EveryRowIsInTheMessagesOfItsShard) {
  std::map<uint64_t, TestRow> all;
  for (size_t shard = 0; shard < 3; ++shard) {
    const Placement placement = PlacementOn(3);
    const auto rows = Open(placement, shard);
    ASSERT_TRUE(rows.ok()) << rows.status();
    v1::InitializeChunk first;
    (*rows)->Begin(&first);
    EXPECT_EQ(first.steps_done(), 10);
    ASSERT_EQ(first.applied_by_partitions_size(), 1);
    EXPECT_EQ(first.applied_by_partitions(0).incarnation(), 7u);
    // Each partition has its number as the sequence.
    const RowPartitionRun run = placement.RowPartitionsOf(shard);
    ASSERT_EQ(first.applied_by_partitions(0).runs_size(), static_cast<int>(run.count));
    EXPECT_EQ(first.applied_by_partitions(0).runs(3).begin(), run.first + 3);
    EXPECT_EQ(first.applied_by_partitions(0).runs(3).sequence(), run.first + 3);
    while (true) {
      const auto chunk = (*rows)->Next();
      ASSERT_TRUE(chunk.ok()) << chunk.status();
      if (!chunk->has_value()) break;
      EXPECT_LE((*chunk)->ByteSizeLong(), size_t{5} << 20);
      for (const v1::InitializeChunk::Rows& part : (*chunk)->rows()) AddTo(part, &all);
    }
  }
  for (auto& [id, row] : table_.rows) row.slots.resize(1);
  EXPECT_EQ(all, table_.rows);
}

TEST_F(ShardRowsTest, GhostsFollowTheTables) {
  table_ = UsersTable(100);
  table_.spec.admit_after = 5;
  TestTable ghosts;
  ghosts.spec = GhostsOf(table_.spec);
  ghosts.seed = table_.seed;
  ghosts.rows[1000].updates = 3;
  ghosts.rows[1001] = {{}, {}, /*last_step=*/7, /*updates=*/4};
  WriteTables(&files_, kRowsPrefix, {table_, ghosts}, 2);
  bundle_ = *BundleReader::Open(kRowsPrefix, &files_);
  std::map<uint64_t, uint32_t> counts;
  for (size_t shard = 0; shard < 3; ++shard) {
    const auto rows = Open(PlacementOn(3), shard);
    ASSERT_TRUE(rows.ok()) << rows.status();
    for (auto chunk = (*rows)->Next(); chunk.ok() && chunk->has_value(); chunk = (*rows)->Next()) {
      for (const v1::InitializeChunk::Rows& part : (*chunk)->rows()) {
        if (part.table() == 0) continue;
        EXPECT_TRUE(part.elements().empty());
        const std::vector<uint64_t> ids = NumbersOf<uint64_t>(part.keys());
        for (size_t i = 0; i < ids.size(); ++i) {
          counts[ids[i]] = NumbersOf<uint32_t>(part.updates())[i];
        }
      }
    }
  }
  EXPECT_EQ(counts, (std::map<uint64_t, uint32_t>{{1000, 3}, {1001, 4}}));
}

TEST_F(ShardRowsTest, WithoutTablesThereAreNone) {
  const auto rows = Open(Placement::Compute({{"w", Shape({5, 3}), {}}}, 1, 4), 0);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, nullptr);
}

TEST_F(ShardRowsTest, ATableOfAnotherSeedIsRefused) {
  ++table_.seed;
  const absl::Status status = Open(PlacementOn(1), 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("table users: seed of the initial values: expected 12, found 11"));
}

TEST_F(ShardRowsTest, ATableThatTheSnapshotLacksHasNoRows) {
  table_.spec.name = "items";
  const auto rows = Open(PlacementOn(1), 0);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_FALSE((*rows)->Next()->has_value());
}

}  // namespace
}  // namespace keelson
