// The chief's calls that initialize a shard and write its snapshots.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/background.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"

namespace keelson {

absl::Status ParameterHandler::Initialize(const v1::InitializeShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  return InitializeFrom(
      "Initialize", request,
      [&request](BlockStore::Options options) {
        return request.restore_prefix().empty()
                   ? InitializeShard(std::move(options), request.seed())
                   : RestoreShard(std::move(options), request.restore_prefix());
      },
      response);
}

absl::Status ParameterHandler::InitializeStreamed(const v1::InitializeChunk& first,
                                                  ChunkSource next,
                                                  v1::InitializeShardResponse* response) {
  return InitializeFrom(
      "InitializeStreamed", first.start(),
      [&](BlockStore::Options options) { return ReceiveShard(std::move(options), first, next); },
      response);
}

absl::Status ParameterHandler::InitializeFrom(absl::string_view call,
                                              const v1::InitializeShardRequest& request,
                                              FillStore fill,
                                              v1::InitializeShardResponse* response) {
  if (request.config_hash() != options_.config_hash) {
    const absl::Status mismatch =
        ConfigMismatch(options_.config_hash, request.config_hash(), "the chief");
    LogError(mismatch.message());
    return mismatch;
  }
  const uint64_t chief = request.header().incarnation();
  RETURN_IF_ERROR(chiefs_.Admit(call, chief));
  MutexLock lock(&initialize_mu_);
  // Another chief may have called meanwhile.
  RETURN_IF_ERROR(chiefs_.Admit(call, chief));
  Retire(request.retired_incarnations());
  const Origin origin = {chief, request.placement_fingerprint(), request.shard(),
                         request.restore_prefix()};
  if (origin_ != origin) {
    origin_.reset();
    RETURN_IF_ERROR(StartOver(request, fill));
    origin_ = origin;
  }
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::StartOver(const v1::InitializeShardRequest& request,
                                         FillStore fill) {
  {
    // The old shard is released before the new one is made: there may not be memory for both.
    MutexLock lock(&mu_);
    state_ = v1::ShardStatus::INITIALIZING;
    shard_ = nullptr;
  }
  absl::StatusOr<std::unique_ptr<BlockStore>> store = MakeStore(request, fill);
  MutexLock lock(&mu_);
  if (!store.ok()) {
    state_ = v1::ShardStatus::EMPTY;
    return store.status();
  }
  (*store)->Retire(std::vector<uint64_t>(retired_.begin(), retired_.end()));
  const PushOptions push = {request.reject_non_finite(),
                            request.stale_gradients().scale_learning_rate()};
  shard_ = std::make_shared<const Shard>(
      Shard{*std::move(store), request.placement_fingerprint(), RandomId(), push});
  state_ = v1::ShardStatus::READY;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockStore>> ParameterHandler::MakeStore(
    const v1::InitializeShardRequest& request, FillStore fill) {
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
  if (placement.Fingerprint() != request.placement_fingerprint() ||
      request.shard() >= placement.num_shards()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: shard ", request.shard(), " of ", placement.num_shards(),
                     ": the placement does not fit its fingerprint or the shard"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer,
                   CreateOptimizer(request.optimizer(), request.stale_gradients()));
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(request.learning_rate(), request.max_steps()));
  const absl::Duration start = clock_->Monotonic();
  absl::StatusOr<std::unique_ptr<BlockStore>> store =
      fill({std::move(placement), request.shard(), std::move(optimizer), std::move(learning_rate)});
  RETURN_IF_ERROR(store.status());
  LogInfo("shard ", request.shard(), " of ", request.placement().num_shards(),
          " ready: ", (*store)->value_bytes(), " bytes of values, ", (*store)->slot_bytes(),
          " of slots, ",
          request.restore_prefix().empty() ? "initial values"
                                           : absl::StrCat("from ", request.restore_prefix()),
          ", ",
          absl::FormatDuration(absl::Trunc(clock_->Monotonic() - start, absl::Milliseconds(1))));
  return store;
}

absl::Status ParameterHandler::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                             v1::WriteSnapshotResponse* response) {
  return Snapshot(
      "WriteSnapshot", request.header(),
      [&request] {
        return BundleDataWriter::Create(FileSystem::Real(), request.data_path(),
                                        request.data_shard());
      },
      response);
}

absl::Status ParameterHandler::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                              ByteSink sink, v1::WriteSnapshotResponse* response) {
  return Snapshot(
      "StreamSnapshot", request.header(),
      [&]() -> absl::StatusOr<std::unique_ptr<BundleDataWriter>> {
        return BundleDataWriter::CreateOn(FileOn(sink), request.data_shard());
      },
      response);
}

absl::Status ParameterHandler::Snapshot(absl::string_view call, const v1::RequestHeader& header,
                                        OpenWriter open, v1::WriteSnapshotResponse* response) {
  RETURN_IF_ERROR(chiefs_.Admit(call, header.incarnation()));
  MutexLock lock(&snapshot_mu_);
  // Another chief may have called during the wait.
  RETURN_IF_ERROR(chiefs_.Admit(call, header.incarnation()));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Shard> shard, CurrentShard());
  const absl::Status status = WriteCut(*shard->store, open, response);
  if (!status.ok()) figures_.CountFailedSnapshot();
  return status;
}

absl::Status ParameterHandler::WriteCut(const BlockStore& store, OpenWriter open,
                                        v1::WriteSnapshotResponse* response) {
  const absl::Duration start = clock_->Monotonic();
  const ShardCut cut = store.Cut();
  const absl::Duration cut_time = clock_->Monotonic() - start;
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer, open());
  absl::StatusOr<WrittenShard> result;
  RunInBackground([&] { result = WriteShard(store, cut, writer.get()); });
  ASSIGN_OR_RETURN(WrittenShard written, std::move(result));
  for (BundleIndexEntry& entry : written.entries) {
    v1::WriteSnapshotResponse::Entry* out = response->add_entries();
    out->set_key(std::move(entry.key));
    *out->mutable_entry() = std::move(entry.entry);
  }
  response->set_shard_step(cut.shard_step);
  response->set_bytes_written(written.bytes_written);
  response->set_cut_microseconds(absl::ToInt64Microseconds(cut_time));
  figures_.CountSnapshot(written.bytes_written, clock_->Monotonic() - start, cut_time);
  return absl::OkStatus();
}

}  // namespace keelson
