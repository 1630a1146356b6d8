#include "chief/lifecycle/job_start.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "chief/coordination/training.h"
#include "chief/lifecycle/round_takeover.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// The monotonic time of a wall time that is not in the future.
absl::Duration MonotonicOf(absl::Time time, const Clock* clock) {
  return clock->Monotonic() - std::max(clock->Now() - time, absl::ZeroDuration());
}

}  // namespace

absl::StatusOr<absl::Duration> JobStart::Run() {
  std::optional<Snapshotter::Restored> newest;
  RETURN_IF_ERROR(calls_.Run([&]() -> absl::Status {
    ASSIGN_OR_RETURN(newest, snapshotter_->FindNewest());
    return absl::OkStatus();
  }));
  // All servers have admitted this chief.
  const absl::Status cleaned = snapshots_->RemoveUncommitted();
  if (absl::IsAlreadyExists(cleaned)) return cleaned;
  if (!cleaned.ok()) LogWarning("files of earlier snapshots stay: ", cleaned.message());
  // After all that may take long, so that it is what the servers hold now.
  std::vector<v1::ShardStatus> shards;
  RETURN_IF_ERROR(calls_.Run([&]() -> absl::Status {
    ASSIGN_OR_RETURN(shards, servers_->Survey());
    return absl::OkStatus();
  }));
  NoteNumbers(shards);
  // Who was told an epoch before everything was restarted is known to be no member.
  if (newest.has_value()) coordinator_->start()->RaiseMemberEpoch(newest->state.member_epoch());
  const Adoption adoption =
      DecideAdoption({options_.config_hash, model_.placement.Fingerprint()}, shards,
                     newest.has_value() ? std::make_optional(newest->state) : std::nullopt);
  LogInfo(adoption.reason);
  if (adoption.adopted) {
    const absl::StatusOr<absl::Duration> saved_at = Adopt(adoption, shards);
    if (saved_at.ok() && newest.has_value()) {
      coordinator_->evaluations()->NameSnapshot(newest->step, newest->state.snapshot_id());
    }
    // DATA_LOSS: the persisted job state contradicts itself.
    if (!absl::IsDataLoss(saved_at.status())) return saved_at;
    LogError("cannot adopt the running job: ", saved_at.status().message());
  }
  RETURN_IF_ERROR(cold_start_->Run(shards));
  return clock_->Monotonic();
}

void JobStart::NoteNumbers(const std::vector<v1::ShardStatus>& shards) {
  uint32_t attempt = 0;
  uint64_t member_epoch = 0;
  for (const v1::ShardStatus& shard : shards) {
    attempt = std::max(attempt, shard.open_attempt());
    member_epoch = std::max(member_epoch, shard.member_epoch());
  }
  coordinator_->start()->RaiseAttempt(attempt);
  coordinator_->start()->RaiseMemberEpoch(member_epoch);
}

absl::StatusOr<absl::Duration> JobStart::Adopt(const Adoption& adoption,
                                               const std::vector<v1::ShardStatus>& shards) {
  ASSIGN_OR_RETURN(WorkLedger ledger,
                   adoption.from_snapshot
                       ? WorkLedger::FromState(adoption.persisted.job(), options_.work)
                       : WorkLedger::FromPersisted(adoption.persisted, options_.work));
  ledger.CountSteps(
      ModeFrom(adoption.persisted.job(), options_.config_hash, coordinator_->control()->mode())
          .batches_per_step());
  servers_->SetMaxSteps(ledger.options().KnownSteps());
  TakeRoundsOver(adoption, shards, coordinator_, servers_, *stop_);
  RETURN_IF_ERROR(leadership_->NoteConfigInUse());
  const std::string of_steps = ledger.options().OfSteps();
  ModelLocation model = model_;
  model.ps_addresses = servers_->Addresses();
  coordinator_->start()->Resume(std::move(model), std::move(ledger), adoption.persisted);
  LogInfo("training goes on: step ", coordinator_->reports()->GetStatus().step, of_steps);
  const SnapshotFigures newest = snapshotter_->figures();
  if (newest.step >= 0) coordinator_->evaluations()->SetSnapshotStep(newest.step);
  for (size_t s = 0; s < adoption.keeps.size(); ++s) {
    if (adoption.keeps[s]) {
      servers_->Keep(s, shards[s]);
    } else {
      supervisor_->RestoreFirst(s);
    }
  }
  return MonotonicOf(newest.committed, clock_);
}

}  // namespace keelson
