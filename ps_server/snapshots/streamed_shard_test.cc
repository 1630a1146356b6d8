#include "ps_server/snapshots/streamed_shard.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/snapshots/shard_files.h"

namespace keelson {
namespace {

constexpr uint64_t kWorker = 7;

using ::testing::HasSubstr;

constexpr char kOptimizer[] = "adam {}";

using Chunks = std::vector<v1::InitializeChunk>;

// The messages after the first, one after another.
class Source {
 public:
  explicit Source(Chunks chunks) : chunks_(std::move(chunks)) {}

  absl::StatusOr<std::optional<v1::InitializeChunk>> Next() {
    ++asked;
    if (next_ == chunks_.size()) return std::nullopt;
    return chunks_[next_++];
  }

  // As a ChunkSource.
  auto Function() {
    return [this] { return Next(); };
  }

  int asked = 0;

 private:
  const Chunks chunks_;
  size_t next_ = 0;
};

void Append(const AlignedBuffer& array, std::string* to) {
  to->append(reinterpret_cast<const char*>(array.data()), array.size() * sizeof(float));
}

v1::InitializeChunk::Block BlockOf(const BlockContent& content, uint64_t sequence) {
  v1::InitializeChunk::Block block;
  block.set_version(content.version);
  block.set_updates(content.updates);
  block.add_applied()->set_incarnation(kWorker);
  block.mutable_applied(0)->set_sequence(sequence);
  Append(content.values, block.mutable_elements());
  for (const AlignedBuffer& slot : content.slots) Append(slot, block.mutable_elements());
  return block;
}

void ExpectSame(const BlockContent& a, const BlockContent& b) {
  EXPECT_EQ(BlockOf(a, 1).SerializeAsString(), BlockOf(b, 1).SerializeAsString());
}

class StreamedShardTest : public testing::Test {
 protected:
  ReceivedBlocks Kind() const {
    return first_.start().has_restore_step() ? ReceivedBlocks::kWithSlots
                                             : ReceivedBlocks::kInitialValues;
  }
  // A shard that has gone some steps.
  StreamedShardTest() {
    source_ = *InitializeShard(Options(), kTestSeed);
    for (const size_t p : source_->partitions()) {
      for (int64_t b = 0; b < placement_.NumBlocks(p); ++b) {
        Block* block = *source_->Find(p, b);
        const size_t n = placement_.BlockElements(p, b);
        const uint64_t pushes = 2 + static_cast<uint64_t>(b % 3);
        for (uint64_t sequence = 1; sequence <= pushes; ++sequence) {
          ApplyTo(block, source_->OptimizerOf(p), {kWorker, sequence, 0.1f},
                  std::vector<float>(n, static_cast<float>(sequence)));
        }
        blocks_.push_back(BlockOf(*block->Read(), pushes));
      }
    }
    for (int i = 0; i < 5; ++i) source_->CountPush();
    *first_.mutable_start() = InitializeRequest(placement_, 1, kOptimizer);
    first_.mutable_start()->set_restore_step(5);
    first_.set_shard_step(5);
  }

  ShardStore::Options Options() const { return StoreOptions(placement_, 1, kOptimizer); }
  // So many blocks each.
  Chunks InChunksOf(int blocks) const {
    Chunks chunks;
    for (const auto& block : blocks_) {
      if (chunks.empty() || chunks.back().blocks_size() == blocks) chunks.emplace_back();
      *chunks.back().add_blocks() = block;
    }
    return chunks;
  }
  void ExpectLikeSource(const ShardStore& store) {
    const ShardCut cut = store.Cut(), expected = source_->Cut();
    EXPECT_EQ(cut.shard_step, 5);
    EXPECT_EQ(cut.applied, expected.applied);
    ASSERT_EQ(cut.partitions.size(), expected.partitions.size());
    for (size_t p = 0; p < cut.partitions.size(); ++p) {
      ASSERT_EQ(cut.partitions[p].size(), expected.partitions[p].size());
      for (size_t b = 0; b < cut.partitions[p].size(); ++b) {
        ExpectSame(*cut.partitions[p][b], *expected.partitions[p][b]);
      }
    }
  }
  absl::Status ReceiveStatus(Chunks chunks) {
    Source source(std::move(chunks));
    return ReceiveShard(Options(), first_, source.Function(), Kind()).status();
  }

  const Placement placement_ = TestPlacement(2);
  std::unique_ptr<ShardStore> source_;
  std::vector<v1::InitializeChunk::Block> blocks_;
  v1::InitializeChunk first_;
};

TEST_F(StreamedShardTest, IsWhatWasSentHoweverItIsCut) {
  ASSERT_GT(blocks_.size(), 5u);
  for (const int blocks : {1, 2, 1000}) {
    Source source(InChunksOf(blocks));
    const auto store = ReceiveShard(Options(), first_, source.Function(), Kind());
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectLikeSource(**store);
  }
}

TEST_F(StreamedShardTest, BlocksMayBeInTheFirstMessageAndMessagesEmpty) {
  Chunks chunks = InChunksOf(2);
  *first_.mutable_blocks() = chunks.front().blocks();
  chunks.front().clear_blocks();
  chunks.emplace_back();
  Source source(chunks);
  const auto store = ReceiveShard(Options(), first_, source.Function(), Kind());
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectLikeSource(**store);
}

// Blocks without a snapshot: of each the values alone, or nothing.
TEST_F(StreamedShardTest, InitialValuesAreSentOrLeftToTheInitializers) {
  first_.mutable_start()->clear_restore_step();
  first_.clear_shard_step();
  const std::unique_ptr<ShardStore> own = *InitializeShard(Options(), kTestSeed);
  const ShardCut expected = own->Cut();
  Chunks chunks(1);
  int sent = 0;
  for (const auto& blocks : expected.partitions) {
    for (const BlockContentRef& block : blocks) {
      v1::InitializeChunk::Block* const out = chunks[0].add_blocks();
      out->set_version(1);
      if (sent++ % 2 == 0) continue;
      const std::vector<float> values(block->values.size(), static_cast<float>(sent));
      out->set_elements(
          std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    }
  }
  ASSERT_GT(sent, 2);
  Source source(chunks);
  const auto store = ReceiveShard(Options(), first_, source.Function(), Kind());
  ASSERT_TRUE(store.ok()) << store.status();
  const ShardCut cut = (*store)->Cut();
  EXPECT_EQ(cut.shard_step, 0);
  sent = 0;
  for (size_t p = 0; p < cut.partitions.size(); ++p) {
    for (size_t b = 0; b < cut.partitions[p].size(); ++b) {
      const BlockContent& found = *cut.partitions[p][b];
      const BlockContent& initial = *expected.partitions[p][b];
      EXPECT_EQ(found.version, initial.version);
      if (sent++ % 2 == 0) {
        ExpectSame(found, initial);
        continue;
      }
      EXPECT_EQ(found.values.span()[0], static_cast<float>(sent));
      for (size_t slot = 0; slot < found.slots.size(); ++slot) {
        EXPECT_EQ(found.slots[slot].span(), initial.slots[slot].span());
      }
    }
  }
}

TEST_F(StreamedShardTest, InitialValuesOfAnotherSizeAreNamed) {
  first_.mutable_start()->clear_restore_step();
  const absl::Status status = ReceiveStatus(InChunksOf(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(" bytes of values, found "));
}

TEST_F(StreamedShardTest, AMissingBlockIsNamed) {
  blocks_.pop_back();
  const absl::Status status = ReceiveStatus(InChunksOf(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(": expected the block, found the end of the stream"));
}

TEST_F(StreamedShardTest, OneBlockTooMuchIsRefused) {
  blocks_.push_back(blocks_.back());
  const absl::Status status = ReceiveStatus(InChunksOf(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("found another block"));
}

TEST_F(StreamedShardTest, ABlockOfAnotherSizeIsNamed) {
  blocks_[1].mutable_elements()->pop_back();
  const absl::Status status = ReceiveStatus(InChunksOf(1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("expected ", blocks_[2].elements().size(),
                                     " bytes of values and slots, found ",
                                     blocks_[2].elements().size() - 1)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("variable "));
}

TEST_F(StreamedShardTest, ErrorsOfTheSourceEndIt) {
  const auto damaged = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return absl::DataLossError("checksum");
  };
  EXPECT_EQ(ReceiveShard(Options(), first_, damaged, Kind()).status(),
            absl::DataLossError("checksum"));
}

// ---- As calls of a server.

class StreamedCallsTest : public StreamedShardTest {
 protected:
  absl::Status Initialize(Source* source) {
    return server_.handler.InitializeStreamed(first_, source->Function(), &response_);
  }

  TestServer server_;
  v1::InitializeShardResponse response_;
};

TEST_F(StreamedCallsTest, MakesTheShardOnce) {
  Source source(InChunksOf(2));
  ASSERT_TRUE(Initialize(&source).ok());
  EXPECT_EQ(response_.status().state(), v1::ShardStatus::READY);
  EXPECT_EQ(response_.status().shard_step(), 5);
  const uint64_t store_id = response_.status().store_id();
  Source again(InChunksOf(2));
  ASSERT_TRUE(Initialize(&again).ok());
  EXPECT_EQ(response_.status().store_id(), store_id);
  EXPECT_EQ(again.asked, 0);
}

TEST_F(StreamedCallsTest, AFailureLeavesTheServerEmptyAndMayBeRepeated) {
  blocks_.pop_back();
  Source damaged(InChunksOf(2));
  EXPECT_EQ(Initialize(&damaged).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StatusOf(&server_.handler).state(), v1::ShardStatus::EMPTY);
  blocks_.push_back(BlockOf(*source_->Cut().partitions.back().back(), 1));
  Source source(InChunksOf(2));
  EXPECT_TRUE(Initialize(&source).ok());
}

// The newer chief calls while the server waits for the older one's next message.
TEST_F(StreamedCallsTest, AStreamThatWaitsKeepsNoNewerChiefFromStartingOver) {
  v1::InitializeShardRequest newer = InitializeRequest(placement_, 1, kOptimizer);
  *newer.mutable_header() = HeaderOf(kTestChief + 1);
  Source source(InChunksOf(2));
  const auto interrupted = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    if (source.asked == 1) {
      EXPECT_EQ(server_.handler.Initialize(newer, &response_), absl::OkStatus());
    }
    return source.Next();
  };
  v1::InitializeShardResponse refused;
  EXPECT_EQ(server_.handler.InitializeStreamed(first_, interrupted, &refused).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(source.asked, 2) << "the rest of the older stream is not received";
  const v1::ShardStatus status = StatusOf(&server_.handler);
  EXPECT_EQ(status.state(), v1::ShardStatus::READY);
  EXPECT_EQ(status.store_id(), response_.status().store_id());
  EXPECT_EQ(status.shard_step(), 0) << "the newer chief asked for initial values";
}

TEST_F(StreamedCallsTest, ALaterStreamOfTheSameChiefTakesTheShard) {
  Source source(InChunksOf(2)), again(InChunksOf(3));
  const auto interrupted = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    if (source.asked == 1) {
      EXPECT_EQ(Initialize(&again), absl::OkStatus());
    }
    return source.Next();
  };
  v1::InitializeShardResponse refused;
  EXPECT_EQ(server_.handler.InitializeStreamed(first_, interrupted, &refused).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatusOf(&server_.handler).store_id(), response_.status().store_id());
  Source repeated(InChunksOf(2));
  EXPECT_EQ(Initialize(&repeated), absl::OkStatus());
  EXPECT_EQ(repeated.asked, 0) << "the shard is there";
}

TEST_F(StreamedCallsTest, ASinkThatWaitsKeepsNoOtherSnapshotFromBeingTaken) {
  Source source(InChunksOf(2));
  ASSERT_TRUE(Initialize(&source).ok());
  v1::StreamSnapshotRequest older, newer;
  *older.mutable_header() = HeaderOf(kTestChief);
  *newer.mutable_header() = HeaderOf(kTestChief + 1);
  const auto take = [](absl::string_view) { return absl::OkStatus(); };
  int taken = 0;
  const auto interrupted = [&](absl::string_view) {
    v1::WriteSnapshotResponse response;
    if (++taken == 1) {
      EXPECT_EQ(server_.handler.StreamSnapshot(newer, take, &response), absl::OkStatus());
    }
    return absl::OkStatus();
  };
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(server_.handler.StreamSnapshot(older, interrupted, &response).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(taken, 1) << "the rest of the older snapshot is not sent";
}

TEST_F(StreamedCallsTest, OtherConfigurationIsRefused) {
  first_.mutable_start()->set_config_hash(0xdef);
  Source source(InChunksOf(2));
  EXPECT_EQ(Initialize(&source).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(source.asked, 0);
}

TEST_F(StreamedCallsTest, ASnapshotGoesToTheSink) {
  Source source(InChunksOf(2));
  ASSERT_TRUE(Initialize(&source).ok());
  v1::StreamSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  request.set_data_shard(3);
  size_t bytes = 0;
  v1::WriteSnapshotResponse response;
  const auto count = [&bytes](absl::string_view data) {
    bytes += data.size();
    return absl::OkStatus();
  };
  ASSERT_TRUE(server_.handler.StreamSnapshot(request, count, &response).ok());
  EXPECT_EQ(bytes, static_cast<size_t>(response.bytes_written()));
  EXPECT_EQ(response.shard_step(), 5);
  ASSERT_GT(response.entries_size(), 0);
}

TEST_F(StreamedCallsTest, ASinkThatFailsEndsTheSnapshot) {
  Source source(InChunksOf(2));
  ASSERT_TRUE(Initialize(&source).ok());
  v1::StreamSnapshotRequest request;
  *request.mutable_header() = HeaderOf(kTestChief);
  v1::WriteSnapshotResponse response;
  const auto full = [](absl::string_view) { return absl::ResourceExhaustedError("disk full"); };
  EXPECT_EQ(server_.handler.StreamSnapshot(request, full, &response),
            absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(server_.handler.figures().failed_snapshots, 1);
  EXPECT_EQ(server_.handler.figures().snapshots, 0);
}

TEST_F(StreamedCallsTest, AnEmptyServerHasNoSnapshot) {
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(server_.handler
                .StreamSnapshot(
                    {}, [](absl::string_view) { return absl::OkStatus(); }, &response)
                .code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace keelson
