#include "chief/lifecycle/cold_start.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/coordination/training.h"
#include "chief/servers/adoption.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/base/trouble_log.h"
#include "core/client/services/retry.h"

namespace keelson {

absl::Status ColdStart::Run(const std::vector<v1::ShardStatus>& shards) {
  // The servers have nothing yet that would be worth waiting for.
  const StopCallback cancel(stop_, [this] { servers_->CancelFileCalls(); });
  RETURN_IF_ERROR(WaitForInheritance());
  ASSIGN_OR_RETURN(Snapshotter::Restored restored, RestoreOrBegin(shards));
  if (restored.prefix.empty()) {
    RETURN_IF_ERROR(calls_.Run([&]() -> absl::Status {
      RETURN_IF_ERROR(servers_->PrepareInitialValues());
      return servers_->Initialize(std::nullopt, coordinator_->roster()->MemberList());
    }));
  }
  // Servers keep the newest version that they have seen, so this ledger's must be higher.
  uint64_t version = restored.state.state_version();
  for (const v1::ShardStatus& shard : shards)
    version = std::max(version, shard.job_state_version());
  restored.state.set_state_version(version + 1);
  ASSIGN_OR_RETURN(WorkLedger ledger, LedgerFrom(restored.state));
  // The servers hold this configuration's model. Its first snapshot is committed only after the job
  // file has been written with it.
  RETURN_IF_ERROR(leadership_->NoteConfigInUse());
  const int64_t step = ledger.completed_steps();
  LogInfo(restored.prefix.empty() ? "training from the start"
                                  : absl::StrCat("continuing from ", restored.prefix),
          ": step ", step, ledger.options().OfSteps(),
          options_.work.stream ? ", a stream of records"
                               : absl::StrCat(", ", options_.work.num_records, " records"));
  const int64_t done = StepOfJob(shards, restored.state.job_id());
  if (done > step) {
    LogWarning("lost steps ", step + 1, " to ", done,
               ": servers had done them, and the snapshot does not have them");
  }
  coordinator_->evaluations()->NameSnapshot(step, restored.state.snapshot_id());
  coordinator_->evaluations()->SetSnapshotStep(step);
  if (restored.prefix.empty()) {
    // Snapshot 0 is written before the first push, so that it holds the initial values and no
    // steps.
    v1::JobState state = ledger.ToState();
    state.set_config_hash(options_.config_hash);
    RETURN_IF_ERROR(calls_.Run([&]() -> absl::Status {
      RETURN_IF_ERROR(MakeLostShards());
      return WriteFirst(state);
    }));
  }
  ModelLocation model = model_;
  model.ps_addresses = servers_->Addresses();
  coordinator_->start()->StartTraining(std::move(model), std::move(ledger));
  return absl::OkStatus();
}

absl::StatusOr<WorkLedger> ColdStart::LedgerFrom(const v1::JobState& state) const {
  ASSIGN_OR_RETURN(WorkLedger ledger, WorkLedger::FromState(state, options_.work));
  ledger.CountSteps(
      ModeFrom(state, options_.config_hash, coordinator_->control()->mode()).batches_per_step());
  return ledger;
}

absl::Status ColdStart::WaitForInheritance() {
  const absl::Duration until = clock_->Monotonic() + options_.startup_timeout;
  TroubleLog trouble("taking the model directory", clock_);
  while (leadership_->is_heir()) {
    const absl::Status status = leadership_->ConfirmDirectory();
    if (status.ok()) break;
    if (absl::IsAlreadyExists(status) || clock_->Monotonic() >= until) return status;
    trouble.Note(status);
    if (stop_->WaitFor(kStartPause)) return absl::CancelledError("while taking the directory");
  }
  return absl::OkStatus();
}

absl::StatusOr<Snapshotter::Restored> ColdStart::RestoreOrBegin(
    const std::vector<v1::ShardStatus>& shards) {
  const absl::Duration start = clock_->Monotonic();
  TroubleLog trouble("looking for the newest snapshot", clock_);
  const auto restore = [&](const Snapshotter::Restored& candidate) -> absl::Status {
    ASSIGN_OR_RETURN(const WorkLedger ledger, LedgerFrom(candidate.state));
    servers_->SetMaxSteps(ledger.options().KnownSteps());
    return calls_.Run(
        [&] { return servers_->Initialize(candidate.step, coordinator_->roster()->MemberList()); });
  };
  while (true) {
    const absl::Duration waited = clock_->Monotonic() - start;
    const bool patient = waited < options_.missing_patience;
    absl::StatusOr<Snapshotter::Restored> restored = snapshotter_->RestoreLatest(
        restore, patient ? MissingFiles::kError : MissingFiles::kDamage);
    absl::Status status = restored.status();
    if (restored.ok() && restored->prefix.empty()) status = CheckNothingDone(shards);
    if (status.ok()) return restored;
    const bool passing = absl::IsNotFound(status)
                             ? patient
                             : IsTransient(status) && waited < options_.startup_timeout;
    if (!passing) return status;
    trouble.Note(status);
    if (stop_->WaitFor(kStartPause)) return absl::CancelledError("while looking for snapshots");
  }
}

absl::Status ColdStart::CheckNothingDone(const std::vector<v1::ShardStatus>& shards) const {
  const int64_t at_servers = RememberedStep(shards);
  const int64_t in_file = leadership_->snapshot_step();
  if (std::max(at_servers, in_file) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      options_.model_dir, ": found no snapshot, although ",
      at_servers > 0 ? "the servers know" : "its file JOB knows", " of step ",
      std::max(at_servers, in_file), "; restore its files to train on; to begin anew, ",
      at_servers > 0 ? "restart the servers, too" : "remove that file"));
}

absl::Status ColdStart::MakeLostShards() {
  for (size_t s = 0; s < servers_->size(); ++s) {
    if (!servers_->LacksShard(s)) continue;
    ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, snapshotter_->Snapshots());
    // An error after its commit may have hidden that the first snapshot is there.
    const std::optional<int64_t> step =
        snapshots.empty() ? std::nullopt : std::make_optional<int64_t>(0);
    LogWarning(servers_->name(s), " has been restarted before training began; it gets ",
               step.has_value() ? "the values of the first snapshot" : "initial values", " again");
    const absl::Status made =
        servers_->InitializeServer(s, step, coordinator_->roster()->MemberList());
    // What was written a moment ago is out of sight.
    if (absl::IsNotFound(made)) return absl::UnavailableError(made.message());
    RETURN_IF_ERROR(made);
  }
  return absl::OkStatus();
}

absl::Status ColdStart::WriteFirst(const v1::JobState& state) {
  const absl::Status written = snapshots_->WriteState(state);
  if (!absl::IsPermissionDenied(written)) return written;
  const absl::Status directory = leadership_->ConfirmDirectory();
  if (directory.ok()) return snapshots_->WriteState(state);
  return absl::IsAlreadyExists(directory) ? directory : absl::UnavailableError(written.message());
}

}  // namespace keelson
