// How a chief's job begins: it adopts the cluster that is running, or starts the servers over.
#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief.h"
#include "chief/reporting/run_files.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/base/trouble_log.h"
#include "core/client/services/retry.h"

namespace keelson {
namespace {

// The limit for one server's commit: a server that ends now is restored once the job goes on.
constexpr absl::Duration kRoundPatience = absl::Seconds(5);

// The pause before a server that did not answer is asked again.
constexpr absl::Duration kServerPause = absl::Milliseconds(200);

// The monotonic time of a wall time that is not in the future.
absl::Duration MonotonicOf(absl::Time time, const Clock* clock) {
  return clock->Monotonic() - std::max(clock->Now() - time, absl::ZeroDuration());
}

}  // namespace

absl::Status Chief::StartOrAdopt(const Placement& placement) {
  LogInfo("placement:");
  std::printf("%s", placement.ToTable().c_str());
  std::fflush(stdout);
  DescribeRun(placement);
  std::vector<v1::ShardStatus> shards;
  RETURN_IF_ERROR(CallServers([&]() -> absl::Status {
    ASSIGN_OR_RETURN(shards, servers_.Survey());
    return absl::OkStatus();
  }));
  uint32_t attempt = 0;
  uint64_t member_epoch = 0;
  for (const v1::ShardStatus& shard : shards) {
    attempt = std::max(attempt, shard.open_attempt());
    member_epoch = std::max(member_epoch, shard.member_epoch());
  }
  coordinator_.RaiseAttempt(attempt);
  coordinator_.RaiseMemberEpoch(member_epoch);
  std::optional<Snapshotter::Restored> newest;
  RETURN_IF_ERROR(CallServers([&]() -> absl::Status {
    ASSIGN_OR_RETURN(newest, snapshotter_.FindNewest());
    return absl::OkStatus();
  }));
  // All servers have admitted this chief.
  const absl::Status cleaned = snapshots_.RemoveUncommitted();
  if (absl::IsAlreadyExists(cleaned)) return cleaned;
  if (!cleaned.ok()) LogWarning("files of earlier snapshots stay: ", cleaned.message());
  // Who was told an epoch before everything was restarted is known to be no member.
  if (newest.has_value()) coordinator_.RaiseMemberEpoch(newest->state.member_epoch());
  const Adoption adoption =
      DecideAdoption({options_.config_hash, placement.Fingerprint()}, shards,
                     newest.has_value() ? std::make_optional(newest->state) : std::nullopt);
  LogInfo(adoption.reason);
  if (adoption.adopted) {
    const absl::Status status = Adopt(placement, adoption, shards);
    if (status.ok() && newest.has_value()) {
      coordinator_.NameSnapshot(newest->step, newest->state.snapshot_id());
    }
    // DATA_LOSS: the persisted job state contradicts itself.
    if (status.code() != absl::StatusCode::kDataLoss) return status;
    LogError("cannot adopt the running job: ", status.message());
  }
  return StartOver(placement, shards);
}

void Chief::DescribeRun(const Placement& placement) {
  absl::Status written =
      WriteRunFiles(options_.config, placement, servers_.States(), options_.file_system);
  written.Update(reporter_->DescribeRun(options_.config));
  if (!written.ok()) LogError("the run's description: ", written.message());
}

absl::Status Chief::CallServers(absl::FunctionRef<absl::Status()> call) {
  const absl::Duration until = clock_->Monotonic() + options_.startup_timeout;
  TroubleLog trouble("starting the servers", clock_);
  while (true) {
    const absl::Status status = call();
    if (!IsTransient(status) || clock_->Monotonic() >= until) return status;
    trouble.Note(status);
    if (stop_.WaitFor(kServerPause)) return absl::CancelledError("while starting the servers");
    RETURN_IF_ERROR(servers_.WaitUntilReachable());
  }
}

absl::Status Chief::Adopt(const Placement& placement, const Adoption& adoption,
                          const std::vector<v1::ShardStatus>& shards) {
  ASSIGN_OR_RETURN(WorkLedger ledger, adoption.from_snapshot
                                          ? WorkLedger::FromState(adoption.persisted.job(), Work())
                                          : WorkLedger::FromPersisted(adoption.persisted, Work()));
  FinishRounds(adoption, shards);
  coordinator_.Resume({placement, ps_addresses_}, std::move(ledger), adoption.persisted);
  LogInfo("training goes on: step ", coordinator_.GetStatus().step, " of ", max_steps_);
  const SnapshotFigures newest = snapshotter_.figures();
  if (newest.step >= 0) coordinator_.SetSnapshotStep(newest.step);
  saved_at_ = MonotonicOf(newest.committed, clock_);
  for (size_t s = 0; s < adoption.keeps.size(); ++s) {
    if (adoption.keeps[s]) {
      servers_.Keep(s, shards[s]);
    } else {
      supervisor_.RestoreFirst(s);
    }
  }
  return absl::OkStatus();
}

// Commits at all servers the rounds that the predecessor had begun to commit.
void Chief::FinishRounds(const Adoption& adoption, const std::vector<v1::ShardStatus>& shards) {
  ServerGroup::Round newest = {-1};
  for (size_t s = 0; s < shards.size(); ++s) {
    const v1::ShardStatus& shard = shards[s];
    if (!adoption.keeps[s] || shard.committed_round() < newest.step) continue;
    if (shard.committed_round() > newest.step) newest = {shard.committed_round()};
    newest.contributions = std::max(newest.contributions, shard.committed_contributions());
  }
  if (newest.step < 0) return;
  coordinator_.NoteCommittedRounds(newest.step);
  servers_.NoteCommittedRound(newest.step);
  for (size_t s = 0; s < shards.size(); ++s) {
    const v1::ShardStatus& shard = shards[s];
    if (!adoption.keeps[s] || shard.committed_round() >= newest.step) continue;
    absl::Status status = absl::FailedPreconditionError("it does not have the pushes");
    if (shard.open_round() == newest.step) {
      newest.attempt = shard.open_attempt();
      status = servers_.CommitRoundAt(s, newest, kRoundPatience, stop_);
    }
    if (!absl::IsFailedPrecondition(status)) continue;
    servers_.LoseRoundAt(s, newest, status.message(), kRoundPatience, stop_)
        .IgnoreError();  // a cut tells
  }
}

absl::StatusOr<Snapshotter::Restored> Chief::RestoreOrBegin(
    const std::vector<v1::ShardStatus>& shards) {
  const absl::Duration start = clock_->Monotonic();
  TroubleLog trouble("looking for the newest snapshot", clock_);
  const auto restore = [&](const Snapshotter::Restored& candidate) -> absl::Status {
    RETURN_IF_ERROR(WorkLedger::FromState(candidate.state, Work()).status());
    return CallServers(
        [&] { return servers_.Initialize(candidate.step, coordinator_.MemberList()); });
  };
  while (true) {
    const absl::Duration waited = clock_->Monotonic() - start;
    const bool patient = waited < options_.missing_patience;
    absl::StatusOr<Snapshotter::Restored> restored =
        snapshotter_.RestoreLatest(restore, patient ? MissingFiles::kError : MissingFiles::kDamage);
    absl::Status status = restored.status();
    if (restored.ok() && restored->prefix.empty()) status = CheckNothingDone(shards);
    if (status.ok()) return restored;
    const bool passing = absl::IsNotFound(status)
                             ? patient
                             : IsTransient(status) && waited < options_.startup_timeout;
    if (!passing) return status;
    trouble.Note(status);
    if (stop_.WaitFor(kServerPause)) return absl::CancelledError("while looking for snapshots");
  }
}

absl::Status Chief::CheckNothingDone(const std::vector<v1::ShardStatus>& shards) const {
  const int64_t at_servers = RememberedStep(shards);
  const int64_t in_file = leadership_.snapshot_step();
  if (std::max(at_servers, in_file) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      directory_.model_dir(), ": found no snapshot, although ",
      at_servers > 0 ? "the servers know" : "its file JOB knows", " of step ",
      std::max(at_servers, in_file), "; restore its files to train on; to begin anew, ",
      at_servers > 0 ? "restart the servers, too" : "remove that file"));
}

absl::Status Chief::WaitForInheritance() {
  const absl::Duration until = clock_->Monotonic() + options_.startup_timeout;
  TroubleLog trouble("taking the model directory", clock_);
  while (leadership_.is_heir()) {
    const absl::Status status = leadership_.ConfirmDirectory();
    if (status.ok()) break;
    if (absl::IsAlreadyExists(status) || clock_->Monotonic() >= until) return status;
    trouble.Note(status);
    if (stop_.WaitFor(kServerPause)) return absl::CancelledError("while taking the directory");
  }
  return absl::OkStatus();
}

absl::Status Chief::WriteFirst(const v1::JobState& state) {
  const absl::Status written = snapshots_.WriteState(state);
  if (!absl::IsPermissionDenied(written)) return written;
  const absl::Status directory = leadership_.ConfirmDirectory();
  if (directory.ok()) return snapshots_.WriteState(state);
  return absl::IsAlreadyExists(directory) ? directory : absl::UnavailableError(written.message());
}

absl::Status Chief::StartOver(const Placement& placement,
                              const std::vector<v1::ShardStatus>& shards) {
  // The servers have nothing yet that would be worth waiting for.
  const StopCallback cancel(&stop_, [this] { servers_.CancelFileCalls(); });
  RETURN_IF_ERROR(WaitForInheritance());
  ASSIGN_OR_RETURN(Snapshotter::Restored restored, RestoreOrBegin(shards));
  if (restored.prefix.empty()) {
    RETURN_IF_ERROR(
        CallServers([&] { return servers_.Initialize(std::nullopt, coordinator_.MemberList()); }));
  }
  // Servers keep the newest version that they have seen, so this ledger's must be higher.
  uint64_t version = restored.state.state_version();
  for (const v1::ShardStatus& shard : shards)
    version = std::max(version, shard.job_state_version());
  restored.state.set_state_version(version + 1);
  ASSIGN_OR_RETURN(WorkLedger ledger, WorkLedger::FromState(restored.state, Work()));
  const int64_t step = ledger.completed_steps();
  LogInfo(restored.prefix.empty() ? "training from the start"
                                  : absl::StrCat("continuing from ", restored.prefix),
          ": step ", step, " of ", max_steps_, ", ", options_.train_records, " records");
  coordinator_.NameSnapshot(step, restored.state.snapshot_id());
  coordinator_.SetSnapshotStep(step);
  saved_at_ = clock_->Monotonic();
  if (restored.prefix.empty()) {
    // Snapshot 0 is written before the first push, so that it holds the initial values and no
    // steps.
    v1::JobState state = ledger.ToState();
    state.set_config_hash(options_.config_hash);
    RETURN_IF_ERROR(CallServers([&] { return WriteFirst(state); }));
  }
  coordinator_.StartTraining({placement, ps_addresses_}, std::move(ledger));
  return absl::OkStatus();
}

v1::InitializeShardRequest Chief::ShardsOf(const Placement& placement) const {
  v1::InitializeShardRequest request;
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  *request.mutable_optimizer() = options_.config.optimizer();
  *request.mutable_learning_rate() = options_.config.learning_rate();
  request.set_max_steps(max_steps_);
  request.set_seed(options_.config.train().seed());
  request.set_reject_non_finite(options_.config.transfer().reject_non_finite());
  *request.mutable_stale_gradients() = options_.config.consistency().stale_gradients();
  return request;
}

WorkOptions Chief::Work() const {
  return {max_steps_, options_.train_records, options_.config.train().batch_size(), RandomId() | 1};
}

}  // namespace keelson
