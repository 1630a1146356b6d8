#include "core/checkpoint/stored_blocks.h"

#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPrefix[] = "/job/model.ckpt-1";

class StoredBlocksTest : public testing::Test {
 protected:
  StoredBlocksTest() { EXPECT_TRUE(files_.CreateDirectories("/job").ok()); }

  // A bundle of one data file.
  template <typename Add>
  void Write(Add add) {
    auto writer = BundleDataWriter::Create(&files_, DataPath(kPrefix, 0, 1), 0);
    ASSERT_TRUE(writer.ok()) << writer.status();
    add(writer->get());
    const auto entries = (*writer)->Finish();
    ASSERT_TRUE(entries.ok()) << entries.status();
    ASSERT_EQ(WriteBundleIndex(&files_, kPrefix, 1, *entries), absl::OkStatus());
  }
  // "w" [5, 4] with `blocks`.
  void WriteWithBlocks(const std::vector<v1::ShardState::Block>& blocks) {
    Write([&](BundleDataWriter* writer) {
      ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
      v1::ShardState state;
      state.set_shard_step(7);
      state.add_variables("other");
      state.add_variables("w");
      for (const v1::ShardState::Block& block : blocks) *state.add_blocks() = block;
      ASSERT_TRUE(writer->AddString(ShardStateName(0, 1), state.SerializeAsString()).ok());
    });
  }
  static v1::ShardState::Block NewBlock(int64_t first, int64_t size, uint64_t version,
                                        uint64_t sequence) {
    v1::ShardState::Block block;
    block.set_variable(1);
    block.set_first_element(first);
    block.set_num_elements(size);
    block.set_version(version);
    block.set_updates(static_cast<int64_t>(version) - 1);
    v1::ShardState::WorkerSequence* applied = block.add_applied();
    applied->set_incarnation(9);
    applied->set_sequence(sequence);
    return block;
  }

  absl::StatusOr<std::unique_ptr<StoredBlocks>> Open(std::vector<SlotSpec> slots = {}) {
    return StoredBlocks::Open(kPrefix, {{"w", Shape({5, 4}), {}}}, {std::move(slots)}, &files_);
  }
  StoredBlock StateOf(const StoredBlocks& stored, int64_t first, int64_t size) {
    StoredBlock state;
    std::vector<float> values(size);
    EXPECT_EQ(stored.Read(0, first, absl::MakeSpan(values), {}, &state), absl::OkStatus());
    EXPECT_EQ(values, Iota(size, static_cast<float>(first)));
    return state;
  }
  void ExpectRefused(absl::StatusCode code, const std::string& text,
                     std::vector<SlotSpec> slots = {}) {
    const absl::Status status = Open(std::move(slots)).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), HasSubstr(kPrefix));
  }

  MemoryFileSystem files_;
};

TEST_F(StoredBlocksTest, TheSameBlockKeepsItsState) {
  WriteWithBlocks({NewBlock(7, 13, 5, 50), NewBlock(0, 7, 3, 30)});
  const auto stored = Open();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ((*stored)->shard_step(), 7);
  const StoredBlock first = StateOf(**stored, 0, 7);
  EXPECT_EQ(first.version, 3u);
  EXPECT_EQ(first.updates, 2);
  ASSERT_EQ(first.applied.size(), 1u);
  EXPECT_EQ(first.applied[0].incarnation(), 9u);
  EXPECT_EQ(first.applied[0].sequence(), 30u);
  EXPECT_EQ(StateOf(**stored, 7, 13).applied[0].sequence(), 50u);
}

TEST_F(StoredBlocksTest, OtherBlocksGoOnFromTheHighest) {
  WriteWithBlocks({NewBlock(0, 7, 3, 30), NewBlock(7, 5, 5, 50), NewBlock(12, 8, 4, 40)});
  const auto stored = Open();
  ASSERT_TRUE(stored.ok()) << stored.status();
  const std::pair<std::pair<int64_t, int64_t>, uint64_t> cases[] = {
      {{0, 6}, 3}, {{6, 1}, 3}, {{6, 2}, 5}, {{11, 2}, 5}, {{12, 2}, 4}, {{0, 20}, 5}};
  for (const auto& [block, version] : cases) {
    const StoredBlock state = StateOf(**stored, block.first, block.second);
    EXPECT_EQ(state.version, version) << block.first;
    EXPECT_EQ(state.updates, static_cast<int64_t>(version) - 1);
    EXPECT_TRUE(state.applied.empty());
  }
}

TEST_F(StoredBlocksTest, WithoutShardStatesBlocksStartAtZero) {
  Write([](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
  });
  const auto stored = Open();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ((*stored)->shard_step(), 0);
  EXPECT_EQ(StateOf(**stored, 3, 9).version, 1u);
  EXPECT_EQ(StateOf(**stored, 3, 9).updates, 0);
}

TEST_F(StoredBlocksTest, AMissingSlotStartsWithItsInitialValue) {
  Write([](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
    ASSERT_TRUE(writer->AddTensor("w/Momentum", Shape({5, 4}), Iota(20, 100)).ok());
  });
  const auto stored = Open({{"Momentum", 0}, {"Adagrad", 0.1f}});
  ASSERT_TRUE(stored.ok()) << stored.status();
  std::vector<float> values(2), momentum(2), adagrad(2);
  StoredBlock state;
  ASSERT_EQ((*stored)->Read(0, 5, absl::MakeSpan(values),
                            {absl::MakeSpan(momentum), absl::MakeSpan(adagrad)}, &state),
            absl::OkStatus());
  EXPECT_THAT(values, ElementsAre(5, 6));
  EXPECT_THAT(momentum, ElementsAre(105, 106));
  EXPECT_THAT(adagrad, Each(0.1f));
}

TEST_F(StoredBlocksTest, SlotsThatAVariableDoesNotHaveAreNotLookedAt) {
  Write([](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
    // The slot of a model in which "w" was trained; it would not fit.
    ASSERT_TRUE(writer->AddTensor("w/Momentum", Shape({4}), Iota(4)).ok());
  });
  const auto stored = Open(std::vector<SlotSpec>());
  ASSERT_TRUE(stored.ok()) << stored.status();
  StateOf(**stored, 5, 2);
}

TEST_F(StoredBlocksTest, WhatDoesNotFitTheModelIsRefused) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  Write([](BundleDataWriter* writer) { ASSERT_TRUE(writer->AddInt64("global_step", 1).ok()); });
  ExpectRefused(invalid, "has no variable w");
  Write([](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", Shape({4, 5}), Iota(20)).ok());
  });
  ExpectRefused(invalid, "w: expected shape [5, 4], found [4, 5]");
  Write([](BundleDataWriter* writer) { ASSERT_TRUE(writer->AddString("w", "text").ok()); });
  EXPECT_THAT(
      std::string(
          StoredBlocks::Open(kPrefix, {{"w", Shape(), {}}}, {}, &files_).status().message()),
      HasSubstr("w: expected numbers, found string"));
  Write([](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
    ASSERT_TRUE(writer->AddTensor("w/Momentum", Shape({4}), Iota(4)).ok());
  });
  ExpectRefused(invalid, "w/Momentum: expected shape [5, 4], found [4]", {{"Momentum", 0}});
}

TEST_F(StoredBlocksTest, ShardStatesThatMakeNoSenseAreDataLoss) {
  const auto loss = absl::StatusCode::kDataLoss;
  WriteWithBlocks({NewBlock(0, 7, 1, 1), NewBlock(6, 2, 1, 1)});
  ExpectRefused(loss, "w: block of 2 elements from 6, expected from 7 to at most 20");
  WriteWithBlocks({NewBlock(8, 13, 1, 1)});
  ExpectRefused(loss, "w: block of 13 elements from 8");
  WriteWithBlocks({NewBlock(-1, 2, 1, 1)});
  ExpectRefused(loss, "w: block of 2 elements from -1");
  WriteWithBlocks({NewBlock(3, -2, 1, 1)});
  ExpectRefused(loss, "w: block of -2 elements from 3");
  v1::ShardState::Block unknown = NewBlock(0, 1, 1, 1);
  unknown.set_variable(2);
  WriteWithBlocks({unknown});
  ExpectRefused(loss, "_keelson/shard-0-of-1: variable 2, expected below 2");
}

class ShardPartTest : public StoredBlocksTest {
 protected:
  // The state of one of two shards, whose two blocks of five elements begin at `first`.
  static v1::ShardState StateFrom(int64_t first, int64_t step) {
    v1::ShardState state;
    state.set_format(kTablelessShardStateFormat);
    state.set_shard_step(step);
    state.add_variables("w");
    for (const int64_t begin : {first, first + 5}) {
      *state.add_blocks() = NewBlock(begin, 5, 3, 0);
      state.mutable_blocks()->rbegin()->set_variable(0);
      state.mutable_blocks()->rbegin()->clear_applied();
    }
    v1::ShardState::Applied* applied = state.add_applied();
    applied->set_incarnation(9);
    v1::ShardState::Applied::Run* run = applied->add_runs();
    run->set_begin(1);
    run->set_end(2);
    run->set_sequence(static_cast<uint64_t>(step));
    return state;
  }
  void WriteStates(const std::string& first, const std::string& second) {
    Write([&](BundleDataWriter* writer) {
      ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
      ASSERT_TRUE(writer->AddString(ShardStateName(0, 2), first).ok());
      ASSERT_TRUE(writer->AddString(ShardStateName(1, 2), second).ok());
    });
  }
  absl::StatusOr<std::unique_ptr<StoredBlocks>> OpenPart(const ShardPart& part) {
    return StoredBlocks::Open(kPrefix, {{"w", Shape({5, 4}), {}}}, {}, &files_, &part);
  }
};

TEST_F(ShardPartTest, OfTheSamePlacementReadsItsOwnStateOnly) {
  WriteStates("no message at all", StateFrom(10, 6).SerializeAsString());
  const auto stored = OpenPart({1, 2, {{0, 10, 20}}});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ((*stored)->shard_step(), 6);
  EXPECT_TRUE(StateOf(**stored, 10, 5).applied.empty());
  const StoredBlock second = StateOf(**stored, 15, 5);
  EXPECT_EQ(second.version, 3u);
  ASSERT_EQ(second.applied.size(), 1u);
  EXPECT_EQ(second.applied[0].incarnation(), 9u);
  EXPECT_EQ(second.applied[0].sequence(), 6u);
}

TEST_F(ShardPartTest, OfAnotherPlacementReadsWhatItsOwnStateLacks) {
  WriteStates(StateFrom(0, 4).SerializeAsString(), StateFrom(10, 6).SerializeAsString());
  const auto stored = OpenPart({1, 2, {{0, 5, 20}}});
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ((*stored)->shard_step(), 6);
  EXPECT_EQ(StateOf(**stored, 5, 5).applied.at(0).sequence(), 4u);
  EXPECT_EQ(StateOf(**stored, 15, 5).applied.at(0).sequence(), 6u);
}

TEST_F(ShardPartTest, NewerFormatsAndRunsThatMakeNoSenseAreRefused) {
  v1::ShardState state = StateFrom(10, 6);
  state.set_format(kShardStateFormat + 1);
  WriteStates("", state.SerializeAsString());
  ExpectRefused(absl::StatusCode::kFailedPrecondition,
                "_keelson/shard-1-of-2: expected at most format 5, found 6");
  state = StateFrom(10, 6);
  state.mutable_applied(0)->mutable_runs(0)->set_end(3);
  WriteStates("", state.SerializeAsString());
  ExpectRefused(absl::StatusCode::kDataLoss,
                "_keelson/shard-1-of-2: applied to units 1 to 3, expected from 0 to at most 2");
}

TEST(SerializeStateTest, RefusesWhatCouldNotBeReadBack) {
  v1::ShardState state;
  state.add_variables("w");
  EXPECT_EQ(SerializeState(state, "state", 3).value(), state.SerializeAsString());
  EXPECT_EQ(SerializeState(state, "state", 2).status(),
            absl::ResourceExhaustedError("state: expected at most 2 bytes, found 3"));
}

// One row, read in many blocks, as the sum of them.
TEST_F(StoredBlocksTest, BlocksOfOneEnormousRowAreReadOnce) {
  constexpr int64_t kElements = 1 << 18;
  constexpr int64_t kBlocks = 256;
  const Shape shape({1, kElements});
  Write([&](BundleDataWriter* writer) {
    ASSERT_TRUE(writer->AddTensor("w", shape, Iota(kElements)).ok());
  });
  const auto stored = StoredBlocks::Open(kPrefix, {{"w", shape, {}}}, {}, &files_);
  ASSERT_TRUE(stored.ok()) << stored.status();
  const int64_t before = files_.bytes_read();
  std::vector<float> values(kElements / kBlocks);
  StoredBlock state;
  for (int64_t first = 0; first < kElements; first += kElements / kBlocks) {
    ASSERT_EQ((*stored)->Read(0, first, absl::MakeSpan(values), {}, &state), absl::OkStatus());
    ASSERT_EQ(values.back(), static_cast<float>(first + kElements / kBlocks - 1));
  }
  // Once for the checksum, once for the blocks.
  EXPECT_EQ(files_.bytes_read() - before, 2 * kElements * 4);
}

TEST_F(StoredBlocksTest, AShardOfAnotherRoundThanTheJobsIsDamage) {
  const auto write = [this](const v1::JobState& job, const v1::ShardState& shard) {
    Write([&](BundleDataWriter* writer) {
      ASSERT_TRUE(writer->AddTensor("w", Shape({5, 4}), Iota(20)).ok());
      ASSERT_TRUE(writer->AddString(kJobStateName, job.SerializeAsString()).ok());
      ASSERT_TRUE(writer->AddString(ShardStateName(0, 1), shard.SerializeAsString()).ok());
    });
  };
  v1::JobState job;
  v1::ShardState shard;
  shard.set_committed_round(4);
  write(job, shard);
  EXPECT_EQ(Open().status(), absl::OkStatus()) << "format 0 does not say";
  job.set_format(1);
  job.set_committed_round(5);
  shard.set_format(1);
  write(job, shard);
  ExpectRefused(absl::StatusCode::kDataLoss,
                "_keelson/shard-0-of-1: expected committed round 5 as in _keelson/job, found 4");
  shard.clear_committed_round();
  write(job, shard);
  ExpectRefused(absl::StatusCode::kDataLoss,
                "expected committed round 5 as in _keelson/job, found -1");
  shard.set_committed_round(5);
  write(job, shard);
  ASSERT_EQ(Open().status(), absl::OkStatus());
  EXPECT_EQ((*Open())->committed_round(), 5);
}

}  // namespace
}  // namespace keelson
