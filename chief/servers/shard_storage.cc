#include "chief/servers/shard_storage.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/servers/shard_chunks.h"
#include "chief/servers/shard_rows.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/stored_blocks.h"
#include "core/cluster/placement.h"
#include "core/optim/optimizer_groups.h"

namespace keelson {
namespace {

// Reads a shard's blocks from a snapshot, in the order of the placement, and then its rows.
class ShardBlocks {
 public:
  static absl::StatusOr<std::unique_ptr<ShardBlocks>> Open(
      const v1::InitializeShardRequest& request, const CheckpointDirectory& directory) {
    ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
    ASSIGN_OR_RETURN(const VariableOptimizers optimizers,
                     VariableOptimizers::Create({request.optimizer(), request.stale_gradients(),
                                                 request.learning_rate().base()},
                                                placement.variables()));
    std::vector<std::vector<SlotSpec>> slots = optimizers.Slots();
    std::vector<size_t> num_slots;
    for (const std::vector<SlotSpec>& each : slots) num_slots.push_back(each.size());
    const ShardPart part = {request.shard(), placement.num_shards(),
                            placement.RangesOf(request.shard())};
    ASSIGN_OR_RETURN(
        std::unique_ptr<StoredBlocks> stored,
        StoredBlocks::Open(directory.FindSnapshot(request.restore_step()), placement.variables(),
                           std::move(slots), directory.file_system(), &part));
    std::unique_ptr<ShardBlocks> blocks(new ShardBlocks(std::move(placement), request.shard(),
                                                        std::move(num_slots), std::move(stored)));
    ASSIGN_OR_RETURN(blocks->rows_,
                     ShardRows::Open(request, blocks->placement_, &blocks->stored_->bundle()));
    return blocks;
  }

  // The first message for `request`, without blocks.
  v1::InitializeChunk Begin(const v1::InitializeShardRequest& request) const {
    v1::InitializeChunk first;
    *first.mutable_start() = request;
    first.set_shard_step(stored_->shard_step());
    if (stored_->committed_round() >= 0) first.set_committed_round(stored_->committed_round());
    first.set_committed_contributions(stored_->committed_contributions());
    if (rows_ != nullptr) rows_->Begin(&first);
    return first;
  }

  // The next message, or nothing after the last one.
  absl::StatusOr<std::optional<v1::InitializeChunk>> Next() {
    ASSIGN_OR_RETURN(std::optional<v1::InitializeChunk> chunk, chunks_.Next());
    if (chunk.has_value() || rows_ == nullptr) return chunk;
    return rows_->Next();
  }

 private:
  ShardBlocks(Placement placement, size_t shard, std::vector<size_t> num_slots,
              std::unique_ptr<StoredBlocks> stored)
      : placement_(std::move(placement)),
        num_slots_(std::move(num_slots)),
        stored_(std::move(stored)),
        chunks_(&placement_, shard,
                [this](const ShardChunks::Position& position) { return ReadBlock(position); }) {}

  absl::StatusOr<v1::InitializeChunk::Block> ReadBlock(
      const ShardChunks::Position& position) const {
    const size_t elements = position.num_elements;
    v1::InitializeChunk::Block block;
    std::string& bytes = *block.mutable_elements();
    const size_t num_slots = num_slots_[position.variable];
    bytes.resize(elements * (1 + num_slots) * sizeof(float));
    auto* const floats = reinterpret_cast<float*>(bytes.data());
    std::vector<absl::Span<float>> slots;
    for (size_t i = 1; i <= num_slots; ++i) slots.emplace_back(floats + i * elements, elements);
    StoredBlock state;
    RETURN_IF_ERROR(stored_->Read(position.variable, position.first_element,
                                  absl::MakeSpan(floats, elements), slots, &state));
    block.set_version(state.version);
    block.set_updates(state.updates);
    block.mutable_applied()->Add(state.applied.begin(), state.applied.end());
    return block;
  }

  const Placement placement_;
  const std::vector<size_t> num_slots_;  // by variable
  const std::unique_ptr<StoredBlocks> stored_;
  ShardChunks chunks_;
  std::unique_ptr<ShardRows> rows_;  // null: there are no tables
};

absl::Status Receive(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                     const std::string& path, AppendFile* file,
                     v1::WriteSnapshotResponse* response) {
  v1::StreamSnapshotRequest stream;
  *stream.mutable_header() = request.header();
  stream.set_data_shard(request.data_shard());
  stream.set_cut_id(request.cut_id());
  *stream.mutable_tables() = request.tables();
  if (request.has_base()) *stream.mutable_base() = request.base();
  int64_t received = 0;
  RETURN_IF_ERROR(server->StreamSnapshot(
      stream,
      [&](absl::string_view bytes) {
        received += static_cast<int64_t>(bytes.size());
        return file->Append(bytes);
      },
      response));
  if (received != response->bytes_written()) {
    return absl::DataLossError(
        absl::StrCat(path, ": expected ", response->bytes_written(), " bytes, found ", received));
  }
  return file->Close();
}

}  // namespace

absl::Status ServerStorage::Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                                  v1::WriteSnapshotResponse* response) {
  return server->WriteSnapshot(request, response);
}

absl::Status ServerStorage::Initialize(ParameterControl* server,
                                       const v1::InitializeShardRequest& request,
                                       v1::InitializeShardResponse* response) {
  return server->Initialize(request, response);
}

absl::Status ChiefStorage::Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                                 v1::WriteSnapshotResponse* response) {
  FileSystem* const file_system = directory_->file_system();
  const std::string path = DataPath(directory_->SnapshotPrefix(request.step()),
                                    request.data_shard(), request.num_data_shards());
  const std::string pending = PendingPath(path, request.header().chief_term(), request.cut_id());
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file, file_system->CreateExclusive(pending));
  const absl::Status status = Receive(server, request, path, file.get(), response);
  if (!status.ok()) file_system->Remove(pending).IgnoreError();
  return status;
}

absl::Status ChiefStorage::Initialize(ParameterControl* server,
                                      const v1::InitializeShardRequest& request,
                                      v1::InitializeShardResponse* response) {
  if (!request.has_restore_step()) return server->Initialize(request, response);
  ASSIGN_OR_RETURN(const std::unique_ptr<ShardBlocks> blocks,
                   ShardBlocks::Open(request, *directory_));
  return server->InitializeStreamed(
      blocks->Begin(request), [&] { return blocks->Next(); }, response);
}

}  // namespace keelson
