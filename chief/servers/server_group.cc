#include "chief/servers/server_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr absl::Duration kProbePause = absl::Milliseconds(100);
constexpr absl::Duration kCommitPause = absl::Milliseconds(50);

// How long a cut waits for the round that is being committed.
constexpr absl::Duration kCutPatience = absl::Seconds(10);

v1::ChiefHeartbeatRequest StoringRequest(const v1::PersistedJobState& persisted) {
  v1::ChiefHeartbeatRequest request;
  request.set_job_state(persisted.SerializeAsString());
  request.set_job_state_version(persisted.job().state_version());
  return request;
}

std::vector<ServerContacts::Server> NamesOf(const std::vector<ServerGroup::Server>& servers) {
  std::vector<ServerContacts::Server> names;
  for (const ServerGroup::Server& server : servers) names.push_back({server.name, server.address});
  return names;
}

}  // namespace

ServerGroup::ServerGroup(const Options& options, std::vector<Server> servers, ShardStorage* storage,
                         const Clock* clock, const StopSignal* stop)
    : options_(options),
      servers_(std::move(servers)),
      storage_(storage),
      clock_(clock),
      stop_(stop),
      contacts_(NamesOf(servers_), clock->Now()),
      term_(options.header.chief_term()),
      rounds_pool_(servers_.size() - 1) {}

absl::Status ServerGroup::Named(size_t s, const absl::Status& status) const {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name(s), ": ", status.message()));
}

absl::Status ServerGroup::ForEach(absl::FunctionRef<absl::Status(size_t)> call) {
  std::vector<absl::Status> statuses(servers_.size());
  ThreadPool pool(size() - 1);
  pool.RunAll(size(), [&](size_t s) { statuses[s] = Named(s, call(s)); });
  // ABORTED (another chief is there) takes precedence over all other errors.
  for (const absl::Status& status : statuses) {
    if (status.code() == absl::StatusCode::kAborted) return status;
  }
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status ServerGroup::WaitUntilReachable() {
  absl::Duration no_job_since = clock_->Monotonic();
  absl::Duration reported = no_job_since;
  // Servers that could not be made ready are tried again.
  contacts_.ForgiveBroken();
  // Each time all are asked: one that has answered may be another process by now.
  while (true) {
    RETURN_IF_ERROR(ForEach([this](size_t s) { return OutrankIn(s); }));
    RETURN_IF_ERROR(ForEach([this](size_t s) { return Probe(s); }));
    const std::vector<std::string> missing = Missing();
    if (missing.empty()) return absl::OkStatus();
    const absl::Duration now = clock_->Monotonic();
    const std::string holder = contacts_.HolderOfJob();
    if (!holder.empty()) no_job_since = now;
    if (now - no_job_since >= options_.startup_timeout) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(options_.startup_timeout),
                       " from ", absl::StrJoin(missing, ", ")));
    }
    if (now - reported >= options_.report_every) {
      LogWarning("still waiting for ", absl::StrJoin(missing, ", "),
                 holder.empty() ? ""
                                : absl::StrCat("; the job is running: ", holder,
                                               " holds its shard, and waits likewise"));
      reported = now;
    }
    if (stop_->WaitFor(kProbePause)) {
      return absl::CancelledError("while waiting for the parameter servers");
    }
  }
}

bool ServerGroup::HasJob(const v1::ShardStatus& found) const {
  MutexLock lock(&mu_);
  return found.state() == v1::ShardStatus::READY && found.job_state_version() > 0 &&
         found.placement_fingerprint() == shards_.placement_fingerprint();
}

v1::RequestHeader ServerGroup::Header() const {
  v1::RequestHeader header = options_.header;
  header.set_chief_term(term_);
  return header;
}

absl::Status ServerGroup::OutrankIn(size_t s) {
  v1::ShardStatus status;
  // The call that follows says what is wrong.
  if (contacts_.Met(s) || !server(s).service->GetStatus({}, &status).ok()) return absl::OkStatus();
  MutexLock lock(&term_mu_);
  if (status.chief_term() < term_) return absl::OkStatus();
  if (options_.raise_term != nullptr) {
    ASSIGN_OR_RETURN(term_, options_.raise_term(status.chief_term()));
    return absl::OkStatus();
  }
  if (!contacts_.MetAny()) term_ = status.chief_term() + 1;
  return absl::OkStatus();
}

absl::Status ServerGroup::Probe(size_t s) {
  const bool met = contacts_.Met(s);
  v1::ShardStatus status;
  const absl::Status answered = ChiefHeartbeat(s, {}, &status);
  if (met && absl::IsAborted(answered)) return answered;
  // A server with another token of the job, or of another build, refuses this chief for ever.
  if (absl::IsPermissionDenied(answered) || absl::IsFailedPrecondition(answered)) return answered;
  if (absl::IsAlreadyExists(answered) && contacts_.NoteHeld(s)) {
    LogWarning("waiting for ", name(s), ": ", answered.message());
  }
  if (!answered.ok()) return absl::OkStatus();
  if (status.config_hash() == options_.config_hash) return absl::OkStatus();
  return ConfigMismatch(options_.config_hash, status.config_hash(), "the server");
}

absl::StatusOr<std::vector<v1::ShardStatus>> ServerGroup::Survey() {
  std::vector<v1::ShardStatus> shards(servers_.size());
  v1::GetShardStatusRequest request;
  request.set_with_job_state(true);
  RETURN_IF_ERROR(ForEach([&](size_t s) {
    const absl::Status answered = server(s).service->GetStatus(request, &shards[s]);
    if (!answered.ok()) contacts_.NoteMissing(s);
    return answered;
  }));
  return shards;
}

void ServerGroup::Describe(const v1::InitializeShardRequest& shards) {
  MutexLock lock(&mu_);
  shards_ = shards;
  shards_.set_config_hash(options_.config_hash);
}

absl::Status ServerGroup::Initialize(std::optional<int64_t> restore_step,
                                     const v1::MemberList& members) {
  RETURN_IF_ERROR(ForEach([&](size_t s) { return InitializeServer(s, restore_step, members); }));
  for (size_t s = 0; s < size(); ++s) contacts_.NoteWhole(s, contacts_.makings(s));
  return absl::OkStatus();
}

absl::Status ServerGroup::ChiefHeartbeat(size_t s, v1::ChiefHeartbeatRequest request,
                                         v1::ShardStatus* status) {
  *request.mutable_header() = Header();
  request.set_chief_address(options_.chief_address);
  request.set_stopping(stop_->raised());
  request.set_saved_cut(saved_cut_);
  const absl::Status answered = server(s).service->ChiefHeartbeat(request, status);
  if (answered.ok()) {
    contacts_.NoteAnswer(s, request, *status, HasJob(*status), clock_->Now());
  } else {
    contacts_.NoteSilence(s, clock_->Now());
  }
  return answered;
}

absl::Status ServerGroup::InitializeServer(size_t s, std::optional<int64_t> restore_step,
                                           const v1::MemberList& members) {
  v1::InitializeShardRequest request;
  {
    MutexLock lock(&mu_);
    request = shards_;
  }
  *request.mutable_header() = Header();
  request.set_shard(static_cast<uint32_t>(s));
  if (restore_step.has_value()) request.set_restore_step(*restore_step);
  if (const int64_t round = committed_round_; round >= 0) request.set_committed_round(round);
  *request.mutable_members() = members;
  contacts_.NoteMaking(s);
  v1::InitializeShardResponse response;
  const absl::Status status = storage_->Initialize(server(s).service, request, &response);
  if (status.ok()) {
    contacts_.NoteReady(s, response.status().store_id(), clock_->Now());
  } else {
    contacts_.NoteBroken(s);
  }
  return status;
}

absl::Status ServerGroup::PersistState(const v1::PersistedJobState& persisted) {
  const v1::ChiefHeartbeatRequest request = StoringRequest(persisted);
  return ForEach([&](size_t s) {
    v1::ShardStatus status;
    return ChiefHeartbeat(s, request, &status);
  });
}

absl::Status ServerGroup::Confirm() {
  return ForEach([&](size_t s) {
    v1::ShardStatus status;
    return ChiefHeartbeat(s, {}, &status);
  });
}

void ServerGroup::Announce(const v1::MemberList& members, const v1::PersistedJobState& persisted) {
  v1::ChiefHeartbeatRequest request = StoringRequest(persisted);
  *request.mutable_members() = members;
  const absl::Status status = ForEach([&](size_t s) {
    if (!contacts_.Answers(s)) return absl::OkStatus();
    v1::ShardStatus shard;
    return ChiefHeartbeat(s, request, &shard);
  });
  if (!status.ok())
    LogWarning("could not tell a server who belongs to the job: ", status.message());
}

absl::StatusOr<ServerGroup::Cut> ServerGroup::PrepareCut(absl::FunctionRef<void()> begin,
                                                         const CutChanges& changes) {
  Cut cut;
  // 0 stands for no cut.
  while (cut.id == 0) cut.id = RandomId();
  std::vector<v1::PrepareCutResponse> cuts(servers_.size());
  v1::PrepareCutRequest request;
  *request.mutable_header() = Header();
  request.set_cut_id(cut.id);
  request.set_keep_changes(changes.keep);
  request.set_base_cut(changes.base);
  RETURN_IF_ERROR(gate_.WithoutRounds(kCutPatience, [&]() -> absl::Status {
    begin();
    RETURN_IF_ERROR(
        ForEach([&](size_t s) { return server(s).service->PrepareCut(request, &cuts[s]); }));
    return CheckEqual(cuts);
  }));
  cut.committed_round = cuts.front().committed_round();
  RETURN_IF_ERROR(PlaceRows(cuts, &cut));
  return cut;
}

absl::Status ServerGroup::PlaceRows(const std::vector<v1::PrepareCutResponse>& cuts,
                                    Cut* cut) const {
  const int tables = cuts.front().table_rows_size();
  bool delta = tables > 0;
  for (size_t s = 0; s < cuts.size(); ++s) {
    if (cuts[s].table_rows_size() != tables) {
      return Named(s, absl::InternalError(absl::StrCat("expected a cut of ", tables,
                                                       " tables as at other servers, found ",
                                                       cuts[s].table_rows_size())));
    }
    delta = delta && cuts[s].changes_size() == tables;
  }
  cut->tables.assign(cuts.size(), std::vector<v1::TableRows>(static_cast<size_t>(tables)));
  if (delta) cut->changes = cut->tables;
  for (int t = 0; t < tables; ++t) {
    const auto place = [](int64_t rows, int64_t* end) { return std::exchange(*end, *end + rows); };
    int64_t rows = 0, changed = 0, erased = 0;
    for (size_t s = 0; s < cuts.size(); ++s) {
      const auto at = static_cast<size_t>(t);
      cut->tables[s][at].set_first_row(place(cuts[s].table_rows(t), &rows));
      if (!delta) continue;
      cut->changes[s][at].set_first_row(place(cuts[s].changes(t).rows(), &changed));
      cut->changes[s][at].set_first_erased(place(cuts[s].changes(t).erased(), &erased));
    }
    for (std::vector<v1::TableRows>& of_server : cut->tables) {
      of_server[static_cast<size_t>(t)].set_total_rows(rows);
    }
    for (std::vector<v1::TableRows>& of_server : cut->changes) {
      of_server[static_cast<size_t>(t)].set_total_rows(changed);
      of_server[static_cast<size_t>(t)].set_total_erased(erased);
    }
    cut->rows.all += rows;
    cut->rows.changed += changed;
  }
  return absl::OkStatus();
}

absl::Status ServerGroup::CheckEqual(const std::vector<v1::PrepareCutResponse>& cuts) {
  int64_t newest = -1;
  for (const v1::PrepareCutResponse& cut : cuts) newest = std::max(newest, cut.committed_round());
  absl::Status unequal;
  for (size_t s = 0; s < cuts.size(); ++s) {
    if (cuts[s].committed_round() == newest) continue;
    unequal.Update(absl::UnavailableError(absl::StrCat(name(s), ": expected a cut of round ",
                                                       newest, " as at other servers, found ",
                                                       cuts[s].committed_round())));
    LoseRoundAt(s, {newest}, "it was not committed there", absl::ZeroDuration(), *stop_)
        .IgnoreError();  // the next cut tells
  }
  return unequal;
}

absl::StatusOr<ServerGroup::WrittenSnapshot> ServerGroup::WriteSnapshot(
    const Cut& cut, int64_t step, size_t num_data_shards,
    const std::optional<v1::SnapshotBase>& base) {
  const auto& tables = base.has_value() ? cut.changes : cut.tables;
  std::vector<v1::WriteSnapshotResponse> responses(servers_.size());
  RETURN_IF_ERROR(ForEach([&](size_t s) {
    v1::WriteSnapshotRequest request;
    *request.mutable_header() = Header();
    request.set_step(step);
    request.set_data_shard(static_cast<uint32_t>(s));
    request.set_num_data_shards(static_cast<uint32_t>(num_data_shards));
    request.set_cut_id(cut.id);
    if (!tables.empty()) request.mutable_tables()->Add(tables[s].begin(), tables[s].end());
    if (base.has_value()) *request.mutable_base() = *base;
    return storage_->Write(server(s).service, request, &responses[s]);
  }));
  WrittenSnapshot written;
  for (v1::WriteSnapshotResponse& response : responses) {
    written.bytes += response.bytes_written();
    written.longest_cut_microseconds =
        std::max(written.longest_cut_microseconds, response.cut_microseconds());
    for (auto& entry : *response.mutable_entries()) {
      written.entries.push_back(
          {std::move(*entry.mutable_key()), std::move(*entry.mutable_entry())});
    }
  }
  return written;
}

std::pair<std::vector<size_t>, std::vector<size_t>> ServerGroup::Doubtful() const {
  std::pair<std::vector<size_t>, std::vector<size_t>> servers;
  for (size_t s = 0; s < size(); ++s) {
    (contacts_.MayLackPushes(s) ? servers.first : servers.second).push_back(s);
  }
  return servers;
}

std::vector<absl::Status> ServerGroup::CommitAt(const std::vector<size_t>& at, const Round& round,
                                                bool only_ask, const StopSignal& stop) {
  std::vector<absl::Status> statuses(at.size());
  v1::CommitRoundRequest request = RequestOf(round);
  request.set_only_ask(only_ask);
  MutexLock lock(&rounds_mu_);
  rounds_pool_.RunAll(at.size(), [&](size_t i) {
    const uint64_t makings = contacts_.makings(at[i]);
    statuses[i] = CallCommitRound(at[i], request, absl::InfiniteDuration(), stop);
    if (!statuses[i].ok() || only_ask) return;
    contacts_.NoteWhole(at[i], makings);
    NoteCommittedRound(round.step);
  });
  return statuses;
}

absl::Status ServerGroup::CommitRound(const Round& round, const StopSignal& stop,
                                      absl::FunctionRef<void()> committed) {
  const RoundGate::Round turn(&gate_);
  const auto [doubtful, sure] = Doubtful();
  // Alone it need not be asked.
  if (doubtful.size() > 1 && committed_round_ < round.step) {
    for (const absl::Status& answer : CommitAt(doubtful, round, /*only_ask=*/true, stop)) {
      RETURN_IF_ERROR(answer);
    }
  }
  std::vector<std::pair<size_t, absl::Status>> refusals;
  for (const std::vector<size_t>& at : {doubtful, sure}) {
    const std::vector<absl::Status> answers = CommitAt(at, round, /*only_ask=*/false, stop);
    for (size_t i = 0; i < at.size(); ++i) {
      if (absl::IsFailedPrecondition(answers[i])) {
        refusals.emplace_back(at[i], answers[i]);
      } else {
        RETURN_IF_ERROR(answers[i]);
      }
    }
    // It can be begun again.
    if (!refusals.empty() && committed_round_ < round.step) return refusals.front().second;
  }
  for (const auto& [s, refusal] : refusals) {
    RETURN_IF_ERROR(LoseRoundAt(s, round, refusal.message(), absl::InfiniteDuration(), stop));
  }
  committed();
  return absl::OkStatus();
}

v1::CommitRoundRequest ServerGroup::RequestOf(const Round& round) const {
  v1::CommitRoundRequest request;
  *request.mutable_header() = Header();
  request.set_round(round.step);
  request.set_attempt(round.attempt);
  request.set_contributions(round.contributions);
  return request;
}

absl::Status ServerGroup::CommitRoundAt(size_t s, const Round& round, absl::Duration patience,
                                        const StopSignal& stop) {
  return CallCommitRound(s, RequestOf(round), patience, stop);
}

absl::Status ServerGroup::LoseRoundAt(size_t s, const Round& round, absl::string_view why,
                                      absl::Duration patience, const StopSignal& stop) {
  LogWarning("step ", round.step, " is lost at ", name(s), ": ", why);
  v1::CommitRoundRequest request = RequestOf(round);
  request.set_lost(true);
  return CallCommitRound(s, request, patience, stop);
}

void ServerGroup::NoteCommittedRound(int64_t round) {
  int64_t known = committed_round_;
  while (known < round && !committed_round_.compare_exchange_weak(known, round)) {
  }
}

absl::Status ServerGroup::CallCommitRound(size_t s, const v1::CommitRoundRequest& request,
                                          absl::Duration patience, const StopSignal& stop) {
  const absl::Duration until = clock_->Monotonic() + patience;
  while (true) {
    v1::CommitRoundRequest addressed = request;
    addressed.set_store_id(contacts_.store_id(s));
    v1::CommitRoundResponse response;
    const absl::Status status = server(s).service->CommitRound(addressed, &response);
    const bool unknown = status.code() == absl::StatusCode::kUnavailable ||
                         status.code() == absl::StatusCode::kDeadlineExceeded;
    if (!unknown || clock_->Monotonic() >= until) return Named(s, status);
    if (stop.WaitFor(kCommitPause)) return absl::CancelledError("while a step was committed");
  }
}

void ServerGroup::CancelFileCalls() {
  for (const Server& server : servers_) server.service->CancelFileCalls();
}

void ServerGroup::Finish() {
  const absl::Status status = ForEach([&](size_t s) {
    v1::FinishShardRequest request;
    *request.mutable_header() = Header();
    v1::FinishShardResponse response;
    const absl::Status status = server(s).service->Finish(request, &response);
    if (status.ok()) contacts_.NoteEnd(s, clock_->Now());
    return status;
  });
  if (!status.ok()) LogWarning("could not tell a server that the job is over: ", status.message());
}

}  // namespace keelson
