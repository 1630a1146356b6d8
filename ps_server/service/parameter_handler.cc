#include "ps_server/service/parameter_handler.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "ps_server/service/refuse_path.h"

namespace keelson {
namespace {

// Of a table, in a status.
constexpr size_t kHottestIds = 10;

absl::Status OfMethod(BulkMethod method, const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(absl::AsciiStrToLower(BulkMethodName(method)), ": ", status.message()));
}

}  // namespace

ParameterHandler::ParameterHandler(const Options& options, const Clock* clock, StopSignal* end)
    : options_(options),
      end_(end),
      credits_(options.credits, clock),
      files_(options.model_dir, clock, options.file_system),
      own_chiefs_(clock, options.chief_exclusive),
      chiefs_(options.chiefs != nullptr ? options.chiefs : &own_chiefs_),
      shard_(chiefs_,
             [this] {
               snapshots_.DropCut();
               waits_.WakeAll();
             }),
      limits_log_(clock),
      snapshots_(
          &files_, [this](uint64_t id) { return shard_.CurrentStore(id); }, chiefs_, &figures_,
          clock),
      initialize_({options.config_hash, options.max_shard_bytes, options.commit_threads}, &files_,
                  chiefs_, &shard_, clock),
      replicas_(options.connect_host, chiefs_, &shard_, &initialize_) {}

// ---- Calls of workers.

absl::StatusOr<ByteRope> ParameterHandler::Bulk(BulkMethod method, ByteRope request) {
  const FigureCounter::CallScope call(&figures_);
  absl::StatusOr<ByteRope> response = Serve(method, request);
  if (!response.ok()) return OfMethod(method, response.status());
  return response;
}

bool ParameterHandler::MayAnswer(BulkMethod method, const ByteRope& request,
                                 std::function<void()> wake) {
  if (method != BulkMethod::kPull) return true;
  ByteCursor cursor(request);
  BulkRequest pull;
  // Bulk says what is wrong with the others.
  const bool whole = DecodeBulkRequest(&cursor, &pull, shard_.most_entries()).ok();
  if (!whole || pull.step <= 0) return true;
  const ServedShard::Pointer shard = shard_.view().shard;
  if (shard == nullptr) return true;
  const bool goes_on = waits_.MayGoOn(
      pull.step - 1,
      [&] { return finished_ ? RoundWaits::kAnyRound : shard->store->committed().round; },
      std::move(wake));
  // If the shard was dropped before the wait began, nobody else ends that.
  if (!goes_on && shard_.view().shard != shard) waits_.WakeAll();
  return goes_on;
}

absl::StatusOr<ByteRope> ParameterHandler::Serve(BulkMethod method, const ByteRope& message) {
  snapshots_.DropExpiredCut();
  ByteCursor cursor(message);
  BulkRequest request;
  ASSIGN_OR_RETURN(const size_t payload_bytes,
                   DecodeBulkRequest(&cursor, &request, shard_.most_entries()));
  const absl::StatusOr<ServedShard::Pointer> ready = shard_.ReadyFor(request);
  if (absl::IsAborted(ready.status())) figures_.CountRefusedCall();
  RETURN_IF_ERROR(ready.status());
  const ServedShard::Shard& shard = **ready;
  BulkResponse response;
  ValuePayload values;
  RETURN_IF_ERROR(ServeCall(method, request, shard, cursor, &response, &values));
  const auto pulled_bytes = static_cast<int64_t>(values.size());
  if (method == BulkMethod::kPull) {
    figures_.CountPull(pulled_bytes);
  } else {
    figures_.CountPush(request, response, static_cast<int64_t>(payload_bytes), pulled_bytes);
  }
  response.store_id = shard.store_id;
  response.credits = credits_.Note(request.incarnation);
  std::string header = EncodeBulkResponse(response, values.size());
  return std::move(values).Finish(std::move(header));
}

absl::Status ParameterHandler::ServeCall(BulkMethod method, const BulkRequest& request,
                                         const ServedShard::Shard& shard, ByteCursor payload,
                                         BulkResponse* response, ValuePayload* values) {
  const absl::Status status =
      method == BulkMethod::kPull
          ? ServePull(shard.store.get(), request, payload, response, values)
          : ServePush(shard.store.get(), method, request, shard.push, payload, response, values);
  if (status.code() == absl::StatusCode::kAborted) figures_.CountRefusedCall();
  if (status.code() == absl::StatusCode::kFailedPrecondition) figures_.CountOutdatedPush();
  return status;
}

absl::Status ParameterHandler::FindChief(const v1::FindChiefRequest& request,
                                         v1::FindChiefResponse* response) {
  response->set_address(record_.address());
  return absl::OkStatus();
}

ChiefSign ParameterHandler::chief_sign() const {
  return {chiefs_->Silence(), chief_stopping_, !replica_ && Unsaved(shard_.view().shard)};
}

bool ParameterHandler::Unsaved(const ServedShard::Pointer& shard) const {
  if (!shard_.leaving() || shard == nullptr) return false;
  const std::optional<uint64_t> saved = snapshots_.SavedChanges(*shard->store);
  return !saved.has_value() || !shard->store->EndsWith(*saved);
}

bool ParameterHandler::CloseIfSaved() {
  const ServedShard::Pointer shard = shard_.view().shard;
  if (shard == nullptr || replica_) return true;
  const std::optional<uint64_t> saved = snapshots_.SavedChanges(*shard->store);
  return saved.has_value() && shard->store->EndIfSaved(*saved);
}

// ---- Calls of the chief.

absl::Status ParameterHandler::ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                              v1::ShardStatus* response) {
  RETURN_IF_ERROR(chiefs_->Admit("ChiefHeartbeat", request.header()));
  AwaitCommitsOfOthers(request.header().incarnation());
  snapshots_.DropCutOfOthers(request.header().incarnation());
  chief_stopping_ = request.stopping();
  replica_ = false;
  if (request.has_members()) shard_.TakeMembers(request.header().incarnation(), request.members());
  record_.Take(request);
  snapshots_.DropExpiredCut();
  snapshots_.NoteSaved(request.saved_cut());
  FillStatus(response);
  return absl::OkStatus();
}

void ParameterHandler::AwaitCommitsOfOthers(uint64_t chief) {
  if (attended_by_.load() == chief) return;
  MutexLock lock(&commit_mu_);
  attended_by_ = chief;
}

absl::Status ParameterHandler::CommitRound(const v1::CommitRoundRequest& request,
                                           v1::CommitRoundResponse* response) {
  RETURN_IF_ERROR(chiefs_->Admit("CommitRound", request.header()));
  ASSIGN_OR_RETURN(const ServedShard::Pointer shard, shard_.Current(request.store_id()));
  MutexLock lock(&commit_mu_);
  // Another chief may have come during the wait, and have been told which round was committed.
  RETURN_IF_ERROR(chiefs_->Admit("CommitRound", request.header()));
  RETURN_IF_ERROR(Commit(request, shard->store.get()));
  waits_.WakeUpTo(shard->store->committed().round);
  response->set_shard_step(shard->store->shard_step());
  return absl::OkStatus();
}

absl::Status ParameterHandler::Commit(const v1::CommitRoundRequest& request, ShardStore* store) {
  if (commit_pool_ == nullptr) {
    commit_pool_ = std::make_unique<ThreadPool>(options_.commit_threads - 1);
  }
  if (request.lost()) {
    store->SkipRounds({request.round(), request.contributions()});
    return absl::OkStatus();
  }
  const RoundId round = {request.round(), request.attempt()};
  if (request.only_ask()) return store->MayCommit(round, request.contributions());
  const bool repeated = request.round() <= store->committed().round;
  RETURN_IF_ERROR(store->CommitRound(round, request.contributions(), commit_pool_.get()));
  if (!repeated) figures_.CountCommittedRound();
  return absl::OkStatus();
}

absl::Status ParameterHandler::Initialize(const v1::InitializeShardRequest& request,
                                          v1::InitializeShardResponse* response) {
  RETURN_IF_ERROR(initialize_.Initialize(request));
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::InitializeStreamed(const v1::InitializeChunk& first,
                                                  ChunkSource next,
                                                  v1::InitializeShardResponse* response) {
  RETURN_IF_ERROR(initialize_.InitializeStreamed(first, next));
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::ReplicateShard(const v1::ReplicateShardRequest& request,
                                              v1::InitializeShardResponse* response) {
  RETURN_IF_ERROR(replicas_.ReplicateShard(request));
  replica_ = true;
  FillStatus(response->mutable_status());
  return absl::OkStatus();
}

absl::Status ParameterHandler::ReplicateRound(const v1::ReplicateRoundRequest& request,
                                              v1::ReplicateRoundResponse*) {
  RETURN_IF_ERROR(replicas_.ReplicateRound(request));
  replica_ = true;
  return absl::OkStatus();
}

absl::Status ParameterHandler::ReadShard(const v1::ReadShardRequest& request, ShardSink sink) {
  return replicas_.ReadShard(request, sink);
}

absl::Status ParameterHandler::ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) {
  return replicas_.ReadRound(request, part);
}

absl::Status ParameterHandler::WriteSnapshot(const v1::WriteSnapshotRequest& request,
                                             v1::WriteSnapshotResponse* response) {
  RETURN_IF_ERROR(RefusePath("WriteSnapshot", request, /*field=*/2));
  return snapshots_.Write(request, response);
}

absl::Status ParameterHandler::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                              ByteSink sink, v1::WriteSnapshotResponse* response) {
  return snapshots_.Stream(request, sink, response);
}

absl::Status ParameterHandler::Finish(const v1::FinishShardRequest& request,
                                      v1::FinishShardResponse* response) {
  RETURN_IF_ERROR(chiefs_->Admit("Finish", request.header()));
  if (request.moved()) {
    shard_.Drop();
    return absl::OkStatus();
  }
  LogInfo("the job is over");
  finished_ = true;
  waits_.WakeAll();
  end_->Raise();
  return absl::OkStatus();
}

// ---- Calls of any client.

absl::Status ParameterHandler::GetStatus(const v1::GetShardStatusRequest& request,
                                         v1::ShardStatus* response) {
  // A chief asks for the state of a shard that it finds in a process which obeys it already.
  AwaitCommitsOfOthers(chiefs_->incarnation());
  FillStatus(response);
  response->clear_incarnation();
  if (request.with_job_state()) record_.FillJobState(response);
  return absl::OkStatus();
}

void ParameterHandler::FillStatus(v1::ShardStatus* status) {
  const CreditLedger::Share share = credits_.share();
  status->set_active_clients(share.active_clients);
  status->set_credits(share.credits);
  status->set_incarnation(options_.incarnation);
  status->set_config_hash(options_.config_hash.value_or(0));
  status->set_takes_any_config(!options_.config_hash.has_value());
  const ServerFigures figures = figures_.figures();
  status->set_pushed_bytes(figures.pushed_bytes);
  status->set_pulled_bytes(figures.pulled_bytes);
  status->set_duplicate_blocks(figures.duplicate_blocks);
  status->set_refused_pushes(figures.refused_calls);
  status->set_committed_round(-1);
  status->set_chief_term(chiefs_->term());
  status->set_job_state_version(record_.state_version());
  const ServedShard::View view = shard_.view();
  status->set_state(view.state);
  status->set_asked_to_stop(shard_.leaving());
  status->set_member_epoch(view.member_epoch);
  status->set_members(static_cast<int32_t>(view.members));
  if (view.shard == nullptr) return;
  status->set_config_hash(view.shard->config_hash);
  const ShardStore& store = *view.shard->store;
  status->set_leaving(Unsaved(view.shard));
  status->set_store_id(view.shard->store_id);
  status->set_placement_fingerprint(view.shard->placement_fingerprint);
  status->set_shard(static_cast<uint32_t>(store.shard()));
  status->set_shard_step(store.shard_step());
  status->set_value_bytes(store.value_bytes());
  status->set_slot_bytes(store.slot_bytes());
  const CommittedRound committed = store.committed();
  status->set_committed_round(committed.round);
  status->set_committed_contributions(committed.contributions);
  const RoundId open = store.open_round();
  status->set_open_round(open.round);
  status->set_open_attempt(open.attempt);
  if (store.tables() == nullptr) return;
  const std::vector<TableSize> sizes = store.tables()->Sizes();
  limits_log_.Note(*store.tables(), sizes);
  for (size_t t = 0; t < sizes.size(); ++t) {
    const TableSize& size = sizes[t];
    v1::TablePartStatus* const part = status->add_tables();
    part->set_name(store.tables()->tables()[t].spec.name);
    part->set_rows(size.rows);
    part->set_bytes(size.bytes);
    part->set_refused_rows(size.refused_rows);
    part->set_expired_rows(size.expired_rows);
    part->set_ghosts(size.ghosts);
    part->set_admitted_rows(size.admitted_rows);
    part->set_evicted_rows(size.evicted_rows);
    part->set_looked_up(size.looked_up);
    part->set_looked_up_absent(size.looked_up_absent);
    for (const HotIds::Count& hot : store.tables()->Hottest(t, kHottestIds)) {
      v1::TablePartStatus::HotId* const out = part->add_hottest();
      out->set_id(hot.id);
      out->set_pushes(hot.count);
      out->set_error(hot.error);
    }
  }
}

}  // namespace keelson
