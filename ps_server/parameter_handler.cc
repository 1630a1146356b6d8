#include "ps_server/parameter_handler.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "ps_server/shard_files.h"

namespace keelson {
namespace {

absl::Status OfMethod(BulkMethod method, const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::AsciiStrToLower(BulkMethodName(method)), ": ", status.message()));
}

}  // namespace

absl::Status ParameterHandler::Initialize(const v1::InitializeShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  if (request.config_hash() != options_.config_hash) {
    const absl::Status mismatch =
        ConfigMismatch(options_.config_hash, request.config_hash(), "the chief");
    LogError(mismatch.message());
    return mismatch;
  }
  MutexLock lock(&initialize_mu_);
  RETURN_IF_ERROR(AdmitChief(request.header().incarnation()));
  const Origin origin = {request.header().incarnation(), request.placement_fingerprint(),
                         request.shard(), request.restore_prefix()};
  if (origin_ != origin) {
    origin_.reset();
    RETURN_IF_ERROR(StartOver(request));
    origin_ = origin;
  }
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::AdmitChief(uint64_t incarnation) {
  if (replaced_chiefs_.count(incarnation) != 0) {
    return absl::AbortedError("Initialize: another chief has taken the caller's place");
  }
  if (chief_.has_value() && *chief_ != incarnation) replaced_chiefs_.insert(*chief_);
  chief_ = incarnation;
  return absl::OkStatus();
}

absl::Status ParameterHandler::StartOver(const v1::InitializeShardRequest& request) {
  {
    // Gone before the new one is made: there may not be memory for both.
    MutexLock lock(&mu_);
    state_ = v1::ShardStatus::INITIALIZING;
    shard_ = nullptr;
  }
  absl::StatusOr<std::unique_ptr<BlockStore>> store = MakeStore(request);
  MutexLock lock(&mu_);
  if (!store.ok()) {
    state_ = v1::ShardStatus::EMPTY;
    return store.status();
  }
  shard_ =
      std::make_shared<const Shard>(Shard{*std::move(store), request.placement_fingerprint(),
                                          RandomId(), PushOptions{request.reject_non_finite()}});
  state_ = v1::ShardStatus::READY;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockStore>> ParameterHandler::MakeStore(
    const v1::InitializeShardRequest& request) {
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
  if (placement.Fingerprint() != request.placement_fingerprint() ||
      request.shard() >= static_cast<uint32_t>(placement.num_shards())) {
    return absl::InvalidArgumentError(
        absl::StrCat("Initialize: shard ", request.shard(), " of ", placement.num_shards(),
                     ": the placement does not fit its fingerprint or the shard"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Optimizer> optimizer, CreateOptimizer(request.optimizer()));
  ASSIGN_OR_RETURN(LearningRateSchedule learning_rate,
                   LearningRateSchedule::Create(request.learning_rate(), request.max_steps()));
  const absl::Duration start = clock_->Monotonic();
  BlockStore::Options options = {std::move(placement), static_cast<int>(request.shard()),
                                 std::move(optimizer), std::move(learning_rate)};
  absl::StatusOr<std::unique_ptr<BlockStore>> store =
      request.restore_prefix().empty() ? InitializeShard(std::move(options), request.seed())
                                       : RestoreShard(std::move(options), request.restore_prefix());
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

absl::StatusOr<std::shared_ptr<const ParameterHandler::Shard>> ParameterHandler::ReadyShard(
    uint64_t placement_fingerprint) const {
  MutexLock lock(&mu_);
  if (shard_ == nullptr) return absl::UnavailableError("the shard is not initialised yet");
  if (placement_fingerprint != shard_->placement_fingerprint) {
    return absl::AbortedError("the request was made for another placement of the variables");
  }
  return shard_;
}

absl::StatusOr<ByteRope> ParameterHandler::Bulk(BulkMethod method, ByteRope request) {
  absl::StatusOr<ByteRope> response = Serve(method, request);
  if (!response.ok()) return OfMethod(method, response.status());
  return response;
}

absl::StatusOr<ByteRope> ParameterHandler::Serve(BulkMethod method, const ByteRope& message) {
  ByteCursor cursor(message);
  BulkRequest request;
  ASSIGN_OR_RETURN(const size_t payload_bytes, DecodeBulkRequest(&cursor, &request));
  ASSIGN_OR_RETURN(const std::shared_ptr<const Shard> shard,
                   ReadyShard(request.placement_fingerprint));
  BulkResponse response;
  ValuePayload values;
  if (method == BulkMethod::kPull) {
    RETURN_IF_ERROR(PullBlocks(*shard->store, request, payload_bytes, &response, &values));
  } else {
    RETURN_IF_ERROR(PushBlocks(shard->store.get(), request, shard->push, cursor, &response,
                               method == BulkMethod::kPushPull ? &values : nullptr));
    pushed_bytes_ += static_cast<int64_t>(payload_bytes);
  }
  response.store_id = shard->store_id;
  response.credits = credits_.Note(request.incarnation);
  duplicate_blocks_ += response.duplicate_blocks;
  pulled_bytes_ += static_cast<int64_t>(values.size());
  std::string header = EncodeBulkResponse(response, values.size());
  return std::move(values).Finish(std::move(header));
}

absl::Status ParameterHandler::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                             v1::WriteSnapshotResponse* response) {
  std::shared_ptr<const Shard> shard;
  {
    MutexLock lock(&mu_);
    if (shard_ == nullptr) return absl::UnavailableError("the shard is not initialised yet");
    shard = shard_;
  }
  const absl::Duration start = clock_->Monotonic();
  const ShardCut cut = shard->store->Cut();
  response->set_cut_microseconds(absl::ToInt64Microseconds(clock_->Monotonic() - start));
  ASSIGN_OR_RETURN(WrittenShard written, WriteShard(*shard->store, cut, request.data_path(),
                                                    static_cast<int>(request.data_shard())));
  for (BundleIndexEntry& entry : written.entries) {
    v1::WriteSnapshotResponse::Entry* out = response->add_entries();
    out->set_key(std::move(entry.key));
    *out->mutable_entry() = std::move(entry.entry);
  }
  response->set_shard_step(cut.shard_step);
  response->set_bytes_written(written.bytes_written);
  return absl::OkStatus();
}

absl::Status ParameterHandler::GetStatus(const v1::GetShardStatusRequest& request,
                                         v1::ShardStatus* response) {
  if (!request.chief_address().empty()) {
    MutexLock lock(&mu_);
    chief_address_ = request.chief_address();
  }
  FillStatus(response);
  return absl::OkStatus();
}

void ParameterHandler::FillStatus(v1::ShardStatus* status) {
  const CreditLedger::Share share = credits_.share();
  status->set_active_clients(share.active_clients);
  status->set_credits(share.credits);
  status->set_incarnation(options_.incarnation);
  status->set_config_hash(options_.config_hash);
  status->set_pushed_bytes(pushed_bytes_);
  status->set_pulled_bytes(pulled_bytes_);
  status->set_duplicate_blocks(duplicate_blocks_);
  MutexLock lock(&mu_);
  status->set_state(state_);
  if (shard_ == nullptr) return;
  status->set_store_id(shard_->store_id);
  status->set_shard_step(shard_->store->shard_step());
  status->set_value_bytes(shard_->store->value_bytes());
  status->set_slot_bytes(shard_->store->slot_bytes());
}

absl::Status ParameterHandler::FindChief(const v1::FindChiefRequest& request,
                                         v1::FindChiefResponse* response) {
  MutexLock lock(&mu_);
  response->set_address(chief_address_);
  return absl::OkStatus();
}

absl::Status ParameterHandler::Finish(const v1::FinishShardRequest& request,
                                      v1::FinishShardResponse* response) {
  LogInfo("the job is over");
  finished_ = true;
  end_->Raise();
  return absl::OkStatus();
}

}  // namespace keelson
