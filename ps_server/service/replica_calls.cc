#include "ps_server/service/replica_calls.h"

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/round_part.h"

namespace keelson {
namespace {

// Messages end when they have so much, so that a message is a block and a little more.
constexpr size_t kMessageBytes = 1 << 20;

size_t BytesOf(absl::Span<const float> elements) { return elements.size() * sizeof(float); }

void AppendElements(absl::Span<const float> elements, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(elements.data()), BytesOf(elements));
}

// The header of a call of the shard's host, which may have other shards too. Calls within the
// chief's process name none.
v1::RequestHeader Naming(size_t shard, v1::RequestHeader header) {
  header.set_shard(static_cast<uint32_t>(shard) + 1);
  return header;
}

// Sends blocks in messages.
template <typename Chunk, typename Sink>
class BlockSender {
 public:
  explicit BlockSender(Sink sink) : sink_(sink) {}

  Chunk* chunk() { return &chunk_; }
  // A block of `bytes` bytes was added to the chunk.
  absl::Status NoteAdded(size_t bytes) {
    bytes_ += bytes;
    return bytes_ < kMessageBytes ? absl::OkStatus() : Send();
  }
  absl::Status Send() {
    bytes_ = 0;
    return sink_(std::exchange(chunk_, Chunk()));
  }

 private:
  const Sink sink_;
  Chunk chunk_;
  size_t bytes_ = 0;
};

// A worker repeats where the shard is served from then on what was not answered before, although
// the copy may have it.
void AddApplied(const SequenceTable& applied, size_t unit, v1::InitializeChunk::Block* block) {
  for (const auto& [incarnation, runs] : applied) {
    const std::optional<uint64_t> newest = NewestAt(runs, unit);
    if (!newest.has_value()) continue;
    v1::ShardState::WorkerSequence* const push = block->add_applied();
    push->set_incarnation(incarnation);
    push->set_sequence(*newest);
  }
}

void AddContent(const BlockContent& content, v1::InitializeChunk::Block* block) {
  block->set_version(content.version);
  block->set_updates(content.updates);
  AppendElements(content.values.span(), block->mutable_elements());
  for (const AlignedBuffer& slot : content.slots) {
    AppendElements(slot.span(), block->mutable_elements());
  }
}

using RoundSums = std::vector<std::unique_ptr<RoundSum>>;

// Reads a block's sum from the payload of a part.
absl::StatusOr<std::unique_ptr<RoundSum>> SumOf(const RoundId& round, uint32_t contributions,
                                                int64_t elements, ByteCursor* payload) {
  double weights = 0;
  AlignedBuffer sum = AlignedBuffer::Uninitialized(elements);
  if (!payload->Read(&weights, sizeof(weights)) ||
      !payload->Read(sum.data(), BytesOf(sum.span()))) {
    return absl::InvalidArgumentError(absl::StrCat("a block of a round: expected ",
                                                   RoundBlockBytes(elements), " bytes, found ",
                                                   payload->remaining()));
  }
  return std::make_unique<RoundSum>(round, std::move(sum), weights, contributions);
}

// Adds the sums of a part, which are those of the next blocks.
absl::Status AddPart(const ByteRope& part, const RoundId& round, uint32_t contributions,
                     absl::Span<const int64_t> sizes, RoundSums* sums) {
  ByteCursor cursor(part);
  ASSIGN_OR_RETURN(const RoundPartHead head, DecodeRoundPart(&cursor));
  if (head.blocks == 0 || head.blocks > sizes.size() - sums->size()) {
    return absl::InvalidArgumentError(absl::StrCat("a part of a round: expected 1 to ",
                                                   sizes.size() - sums->size(), " blocks, found ",
                                                   head.blocks));
  }
  for (uint32_t i = 0; i < head.blocks; ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<RoundSum> sum,
                     SumOf(round, contributions, sizes[sums->size()], &cursor));
    sums->push_back(std::move(sum));
  }
  if (cursor.remaining() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a part of a round: expected its end, found ", cursor.remaining(), " bytes"));
}

// How many blocks a part that begins with `first` has, and the bytes of its payload.
RoundPartHead PartFrom(absl::Span<const int64_t> sizes, size_t first) {
  RoundPartHead head;
  for (size_t b = first; b < sizes.size(); ++b) {
    const size_t bytes = RoundBlockBytes(sizes[b]);
    if (head.blocks > 0 && head.payload_bytes + bytes > kBulkPayloadBytes) break;
    ++head.blocks;
    head.payload_bytes += bytes;
  }
  return head;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ParameterControl>> ReplicaCalls::HostAt(const std::string& address) {
  if (connect_ == nullptr) {
    return absl::FailedPreconditionError("this server keeps no replicas of shards");
  }
  MutexLock lock(&mu_);
  std::shared_ptr<ParameterControl>& host = hosts_[address];
  if (host == nullptr) host = connect_(address);
  return host;
}

absl::Status ReplicaCalls::ReplicateShard(const v1::ReplicateShardRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ParameterControl> host, HostAt(request.from()));
  v1::ReadShardRequest read;
  *read.mutable_header() = Naming(request.start().shard(), request.start().header());
  read.set_store_id(request.store_id());
  std::deque<v1::InitializeChunk> chunks;
  RETURN_IF_ERROR(host->ReadShard(read, [&chunks](v1::InitializeChunk chunk) {
    chunks.push_back(std::move(chunk));
    return absl::OkStatus();
  }));
  if (chunks.empty()) return absl::InternalError("a shard without a message");
  v1::InitializeChunk first = std::move(chunks.front());
  chunks.pop_front();
  *first.mutable_start() = request.start();
  return initialize_->InitializeCopy(
      first, [&chunks]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
        if (chunks.empty()) return std::nullopt;
        v1::InitializeChunk chunk = std::move(chunks.front());
        chunks.pop_front();
        return chunk;
      });
}

absl::Status ReplicaCalls::ReplicateRound(const v1::ReplicateRoundRequest& request) {
  RETURN_IF_ERROR(chiefs_->Admit("ReplicateRound", request.header()));
  ASSIGN_OR_RETURN(const std::shared_ptr<ShardStore> store,
                   shard_->CurrentStore(request.replica_store_id()));
  const RoundId round = {request.round(), request.attempt()};
  // A repetition of the call.
  if (store->MayCommit(round, request.contributions()).ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::shared_ptr<ParameterControl> host, HostAt(request.from()));
  v1::ReadRoundRequest read;
  *read.mutable_header() = Naming(store->shard(), request.header());
  read.set_round(request.round());
  read.set_attempt(request.attempt());
  read.set_contributions(request.contributions());
  read.set_store_id(request.store_id());
  // All of it is here before the replica changes: half of a round would be none.
  const std::vector<int64_t> sizes = store->BlockSizes();
  RoundSums sums;
  while (sums.size() < sizes.size()) {
    read.set_first_block(static_cast<uint32_t>(sums.size()));
    ByteRope part;
    RETURN_IF_ERROR(host->ReadRound(read, &part));
    RETURN_IF_ERROR(AddPart(part, round, request.contributions(), sizes, &sums));
  }
  return store->TakeSums(round, std::move(sums));
}

absl::Status ReplicaCalls::ReadShard(const v1::ReadShardRequest& request,
                                     ParameterControl::ShardSink sink) {
  RETURN_IF_ERROR(chiefs_->Admit("ReadShard", request.header()));
  ASSIGN_OR_RETURN(const std::shared_ptr<ShardStore> store,
                   shard_->CurrentStore(request.store_id()));
  if (store->tables() != nullptr && store->tables()->partitions().count > 0) {
    return absl::FailedPreconditionError("ReadShard: expected a shard without rows of tables");
  }
  const ShardCut cut = store->Cut();
  BlockSender<v1::InitializeChunk, ParameterControl::ShardSink> sender(sink);
  sender.chunk()->set_shard_step(cut.shard_step);
  sender.chunk()->set_committed_round(cut.committed.round);
  sender.chunk()->set_committed_contributions(cut.committed.contributions);
  size_t unit = 0;
  for (const auto& partition : cut.partitions) {
    for (const BlockContentRef& content : partition) {
      v1::InitializeChunk::Block* const block = sender.chunk()->add_blocks();
      AddContent(*content, block);
      AddApplied(cut.applied, unit++, block);
      RETURN_IF_ERROR(sender.NoteAdded(block->ByteSizeLong()));
    }
  }
  return sender.Send();
}

absl::Status ReplicaCalls::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  RETURN_IF_ERROR(chiefs_->Admit("ReadRound", request.header()));
  ASSIGN_OR_RETURN(const std::shared_ptr<ShardStore> store,
                   shard_->CurrentStore(request.store_id()));
  const std::vector<int64_t> sizes = store->BlockSizes();
  if (request.first_block() >= sizes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ReadRound: expected a block below ", sizes.size(), ", found ", request.first_block()));
  }
  const RoundPartHead head = PartFrom(sizes, request.first_block());
  std::string payload;
  payload.reserve(head.payload_bytes);
  RETURN_IF_ERROR(store->ReadSums({request.round(), request.attempt()}, request.contributions(),
                                  request.first_block(), head.blocks, [&](const RoundSum& sum) {
                                    const double weights = sum.weights();
                                    payload.append(reinterpret_cast<const char*>(&weights),
                                                   sizeof(weights));
                                    AppendElements(sum.elements(), &payload);
                                  }));
  ByteRope answer;
  answer.AppendOwned(EncodeRoundPart(head));
  answer.AppendOwned(std::move(payload));
  *part = std::move(answer);
  return absl::OkStatus();
}

}  // namespace keelson
