#include "ps_server/service/initialize_calls.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "ps_server/service/refuse_path.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"
#include "ps_server/snapshots/table_files.h"

namespace keelson {
namespace {

// Where a shard comes from.
std::string TextOf(const ServedShard::Origin& origin) {
  if (origin.copy != 0) return "a copy";
  if (!origin.restore_step.has_value()) return "initial values";
  return absl::StrCat("from the snapshot of step ", *origin.restore_step);
}

}  // namespace

absl::Status InitializeCalls::Initialize(const v1::InitializeShardRequest& request) {
  constexpr absl::string_view kCall = "Initialize";
  RETURN_IF_ERROR(RefusePath(kCall, request, /*field=*/10));
  RETURN_IF_ERROR(CheckConfig(request));
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  MutexLock lock(&initialize_mu_);
  return InitializeFrom(kCall, request, [&](ShardStore::Options options, ServedShard::Making) {
    if (!request.has_restore_step()) return InitializeShard(std::move(options), request.seed());
    return files_->Restore(std::move(options), request.restore_step(), options_.restore_threads);
  });
}

absl::Status InitializeCalls::InitializeStreamed(const v1::InitializeChunk& first,
                                                 ParameterControl::ChunkSource next) {
  constexpr absl::string_view kCall = "InitializeStreamed";
  RETURN_IF_ERROR(RefusePath(kCall, first.start(), /*field=*/10));
  RETURN_IF_ERROR(CheckConfig(first.start()));
  return InitializeFrom(
      kCall, first.start(), [&](ShardStore::Options options, ServedShard::Making making) {
        const auto received = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
          RETURN_IF_ERROR(shard_->CheckMaking(kCall, first.start().header(), making));
          return next();
        };
        return ReceiveShard(std::move(options), first, received,
                            first.start().has_restore_step() ? ReceivedBlocks::kWithSlots
                                                             : ReceivedBlocks::kInitialValues);
      });
}

absl::Status InitializeCalls::InitializeCopy(const v1::InitializeChunk& first,
                                             ParameterControl::ChunkSource next) {
  constexpr absl::string_view kCall = "ReplicateShard";
  RETURN_IF_ERROR(CheckConfig(first.start()));
  RETURN_IF_ERROR(chiefs_->Admit(kCall, first.start().header()));
  const auto fill = [&](ShardStore::Options options, ServedShard::Making) {
    return ReceiveShard(std::move(options), first, next, ReceivedBlocks::kWithSlots);
  };
  return InitializeFrom(kCall, first.start(), fill, RandomId() | 1);
}

absl::Status InitializeCalls::CheckConfig(const v1::InitializeShardRequest& request) const {
  const uint64_t own = options_.config_hash.value_or(request.config_hash());
  if (request.config_hash() == own) return absl::OkStatus();
  const absl::Status mismatch = ConfigMismatch(own, request.config_hash(), "the chief");
  LogError(mismatch.message());
  return mismatch;
}

absl::Status InitializeCalls::InitializeFrom(absl::string_view call,
                                             const v1::InitializeShardRequest& request,
                                             FillStore fill, uint64_t copy) {
  const ServedShard::Origin origin = {
      request.header().incarnation(), request.placement_fingerprint(), request.shard(),
      request.has_restore_step() ? std::make_optional(request.restore_step()) : std::nullopt, copy};
  ASSIGN_OR_RETURN(const std::optional<ServedShard::Making> making,
                   shard_->Begin(call, request.header(), origin));
  if (request.has_members()) shard_->TakeMembers(request.header().incarnation(), request.members());
  if (!making.has_value()) return absl::OkStatus();
  return shard_->End(call, request, origin, *making, MakeStore(request, origin, *making, fill));
}

absl::Status InitializeCalls::CheckShardFits(const Placement& placement, size_t shard,
                                             const VariableOptimizers& optimizers) const {
  const int64_t bytes = LeastBytesOf(placement, shard, optimizers);
  if (bytes <= options_.max_shard_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "Initialize: shard ", shard, " of ", placement.num_shards(), ": expected at most ",
      options_.max_shard_bytes, " bytes of values and slots (--max_shard_bytes), found ", bytes));
}

absl::StatusOr<std::unique_ptr<ShardStore>> InitializeCalls::MakeStore(
    const v1::InitializeShardRequest& request, const ServedShard::Origin& origin,
    ServedShard::Making making, FillStore fill) {
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
  if (placement.Fingerprint() != request.placement_fingerprint() ||
      request.shard() >= placement.num_shards()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: shard ", request.shard(), " of ", placement.num_shards(),
                     ": the placement does not fit its fingerprint or the shard"));
  }
  const VariableOptimizers::Config config = {request.optimizer(), request.stale_gradients(),
                                             request.learning_rate().base()};
  ASSIGN_OR_RETURN(VariableOptimizers optimizers,
                   VariableOptimizers::Create(config, placement.variables()));
  ASSIGN_OR_RETURN(TableOptimizers table_optimizers,
                   TableOptimizers::Create(config, placement.tables()));
  RETURN_IF_ERROR(CheckShardFits(placement, request.shard(), optimizers));
  const auto max_table_bytes = static_cast<size_t>(
      options_.max_shard_bytes - LeastBytesOf(placement, request.shard(), optimizers));
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(request.learning_rate(), request.max_steps()));
  const absl::Duration start = clock_->Monotonic();
  absl::StatusOr<std::unique_ptr<ShardStore>> store =
      fill({std::move(placement), request.shard(), std::move(optimizers),
            std::move(table_optimizers), std::move(learning_rate), request.seed(), max_table_bytes},
           making);
  RETURN_IF_ERROR(store.status());
  if ((*store)->tables() != nullptr) {
    RETURN_IF_ERROR(CheckColumnNames(*(*store)->tables(), (*store)->placement().variables()));
  }
  LogInfo("shard ", request.shard(), " of ", request.placement().num_shards(),
          " ready: ", (*store)->value_bytes(), " bytes of values, ", (*store)->slot_bytes(),
          " of slots, ", TextOf(origin), ", ",
          absl::FormatDuration(absl::Trunc(clock_->Monotonic() - start, absl::Milliseconds(1))));
  return store;
}

}  // namespace keelson
