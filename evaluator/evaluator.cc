#include "evaluator/evaluator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/config/train_config.h"
#include "evaluator/early_stopping.h"
#include "evaluator/snapshot_scorer.h"

namespace keelson {
namespace {

constexpr char kClaimsDirectory[] = "eval/claims";

bool MaySkip(const absl::Status& status) {
  return status.code() == absl::StatusCode::kNotFound ||
         status.code() == absl::StatusCode::kDataLoss;
}

absl::Time StartOf(const EvaluationRecord& record) {
  return record.wall_time - absl::Seconds(record.seconds);
}

// Evaluations are written where they could be written at the start. What is missing or read-only
// there now is storage that is away for a while, so that a restart helps.
absl::Status AsPassing(const absl::Status& status) {
  const bool passing = absl::IsNotFound(status) || absl::IsPermissionDenied(status);
  return passing ? absl::UnavailableError(status.message()) : status;
}

// `why`: the error of the last try to read it; OK: it is not named.
absl::Status FinalSnapshotMissing(const std::string& model_dir, int64_t step,
                                  const absl::Status& why) {
  return absl::NotFoundError(
      absl::StrCat(model_dir, ": the job is done, but its final snapshot of step ", step,
                   " is not there", why.ok() ? "" : ": ", why.message()));
}

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options, ChiefService* chief, Device* device,
                     const Dataset* eval, const Clock* clock, const StopSignal* stop)
    : Evaluator(
          options, chief,
          [config = options.config, files = options.file_system, device, eval, clock, stop] {
            return SnapshotScorer::Create(config, device, eval, clock, stop, files);
          },
          clock, stop) {}

Evaluator::Evaluator(EvaluatorOptions options, ChiefService* chief, ScorerFactory make_scorer,
                     const Clock* clock, const StopSignal* stop)
    : options_(std::move(options)),
      chief_(chief),
      make_scorer_(std::move(make_scorer)),
      clock_(clock),
      stop_(stop),
      directory_(options_.file_system, options_.config.checkpoint().model_dir(), clock),
      schedule_(options_.config.evaluation(), clock),
      claims_(JoinPath(directory_.model_dir(), kClaimsDirectory), options_.self.ToString(), clock,
              options_.file_system),
      ending_watch_(&directory_, options_.config_hash, options_.final_snapshot_patience, clock),
      final_trouble_("scoring the final snapshot", clock),
      final_awaited_(options_.final_snapshot_patience, clock),
      others_awaited_(options_.final_snapshot_patience, clock) {}

absl::Status Evaluator::Run() {
  const absl::Status status = RunUntilStopped();
  if (status.ok() || absl::IsCancelled(status) || !stop_->raised()) return status;
  // Such as storage that hung when the signal came: who was asked to stop has stopped.
  LogWarning("while stopping: ", status.message());
  return absl::CancelledError("by a signal");
}

absl::Status Evaluator::RunUntilStopped() {
  RETURN_IF_ERROR(Prepare());
  // From here on a model directory that is away for a while is no bad configuration.
  LogInfo("evaluating ", directory_.model_dir(), " on ", scorer_->num_records(), " records, ",
          scorer_->computes());
  if (chief_ != nullptr) JoinChief();
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, LookForSnapshots());
  AcknowledgeEarlier(snapshots);
  const absl::Status status = Watch();
  if (link_ != nullptr) link_->Leave();
  return status;
}

absl::Status Evaluator::Prepare() {
  RETURN_IF_ERROR(RequireModelDir(options_.config));
  ASSIGN_OR_RETURN(scorer_, make_scorer_());
  EvaluationOutputs::Options outputs;
  outputs.self = options_.self;
  outputs.file_system = options_.file_system;
  outputs.config = options_.config;
  outputs.variables = scorer_->variables();
  outputs.export_files = options_.export_files;
  outputs.lease_files = options_.lease_files;
  ASSIGN_OR_RETURN(outputs_, EvaluationOutputs::Open(std::move(outputs), &directory_, clock_));
  if (options_.self.index == 0) scorer_->WriteForDashboard(directory_.model_dir());
  scored_ = std::make_unique<ScoredSnapshots>(&directory_, outputs_.get());
  for (const auto& [step, record] : outputs_->records()) {
    schedule_.Begun(StartOf(record));
    Show(record, /*scored_here=*/false);
  }
  const absl::Status cleaned = claims_.RemoveStale();
  if (!cleaned.ok()) LogWarning("claims of snapshots: ", cleaned.message());
  return absl::OkStatus();
}

void Evaluator::JoinChief() {
  ChiefLink::Options options;
  options.membership.self = options_.self;
  options.new_membership = options_.new_membership;
  options.membership.config_hash = options_.config_hash;
  options.membership.peer = options_.peer;
  options.membership.device = scorer_->computes();
  options.heartbeat_interval = options_.heartbeat_interval;
  options.closing_interval = std::min(options_.heartbeat_interval, options_.poll_interval);
  link_ = std::make_unique<ChiefLink>(options, chief_, clock_);
}

void Evaluator::AcknowledgeEarlier(const std::vector<SnapshotInfo>& snapshots) {
  for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
    const EvaluationRecord* record = scored_->EvaluationOf(snapshot->step);
    if (record == nullptr) continue;
    return Acknowledge(*record);
  }
}

absl::Status Evaluator::Watch() {
  while (!stop_->raised()) {
    ASSIGN_OR_RETURN(const bool finished, WatchOnce());
    if (finished) return absl::OkStatus();
  }
  return absl::CancelledError("by a signal");
}

absl::StatusOr<bool> Evaluator::WatchOnce() {
  ASSIGN_OR_RETURN(const Ending ending, ending_watch_.Look(link_.get()));
  RETURN_IF_ERROR(TakeOthersRecords());
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, LookForSnapshots());
  ConsiderStopping(ending);
  TakeFinal(ending);
  RETURN_IF_ERROR(ending_watch_.CheckForeignMarker(ending, snapshots, outputs_->records().size()));
  ASSIGN_OR_RETURN(const std::optional<SnapshotInfo> next, NextSnapshot(snapshots, ending));
  if (next.has_value()) {
    ASSIGN_OR_RETURN(const bool scored, ScoreSnapshot(*next, next->step == ending.final_step));
    if (scored) return false;
  }
  if (ending.done) {
    ASSIGN_OR_RETURN(const bool finished, Finished(*ending.final_step));
    if (finished) return true;
  }
  stop_->WaitFor(options_.poll_interval);
  return false;
}

absl::StatusOr<std::vector<SnapshotInfo>> Evaluator::LookForSnapshots() {
  return scored_->Look([this](int64_t step) { return ForgetAfter(step); });
}

absl::Status Evaluator::ForgetAfter(int64_t step) {
  const auto& records = outputs_->records();
  const auto later = std::distance(records.upper_bound(step), records.end());
  if (later == 0) return absl::OkStatus();
  LogWarning("training has gone back: the newest snapshot is of step ", step, ", so ", later,
             " evaluations of later steps are dropped");
  if (link_ != nullptr) link_->ForgetAfter(step);
  acknowledged_.reset();
  return AsPassing(outputs_->ForgetAfter(step));
}

absl::Status Evaluator::TakeOthersRecords() {
  // Claims are read before the records: an evaluator writes its record before it releases its
  // claim.
  const absl::StatusOr<std::map<int64_t, ClaimInfo>> held = claims_.HeldByOthers();
  const auto others = outputs_->TakeOthers();
  RETURN_IF_ERROR(AsPassing(others.status()));
  for (const auto& [step, record] : *others) {
    schedule_.Begun(StartOf(record));
    Show(record, /*scored_here=*/false);
  }
  claimed_by_others_.clear();
  if (!held.ok()) return absl::OkStatus();
  for (const auto& [step, claim] : *held) {
    if (scored_->EvaluationOf(step) != nullptr) continue;
    schedule_.Begun(claim.begun);
    claimed_by_others_.emplace(step, claim);
  }
  return absl::OkStatus();
}

void Evaluator::ConsiderStopping(const Ending& ending) {
  const v1::EvaluationConfig& evaluation = options_.config.evaluation();
  const bool over = ending.done || ending.final_step.has_value();
  if (stopping_ || over || options_.self.index != 0 || !evaluation.has_early_stopping()) return;
  int64_t end = claimed_by_others_.empty() ? std::numeric_limits<int64_t>::max()
                                           : claimed_by_others_.begin()->first;
  end = std::min(end, scored_->FirstUnscored().value_or(end));
  const std::optional<EarlyStop> stop =
      JudgeEarlyStopping(evaluation.early_stopping(), outputs_->records(), end);
  if (!stop.has_value()) return;
  stopping_ = true;
  LogInfo(stop->reason, ", as of step ", stop->step,
          link_ == nullptr ? "; there is no chief to end training" : "; asking the chief to end");
  if (link_ != nullptr) link_->EndTraining(stop->reason);
}

void Evaluator::TakeFinal(const Ending& ending) {
  if (ending.final_step.has_value()) {
    const EvaluationRecord* record = scored_->EvaluationOf(*ending.final_step);
    if (record != nullptr) {
      outputs_->TakeFinal(record->step);
      // The evaluator that scored it may have crashed before it told the chief.
      Acknowledge(*record);
    }
  }
  // The chief waits for its members to leave, even if the final snapshot is not scored yet.
  if (ending.dismissed) link_->Leave();
}

absl::StatusOr<bool> Evaluator::Finished(int64_t final_step) {
  if (scored_->EvaluationOf(final_step) != nullptr) {
    const bool others_at_work = options_.self.index == 0 && !claimed_by_others_.empty();
    return !others_at_work || others_awaited_.IsOver();
  }
  if (claimed_by_others_.count(final_step) > 0) {
    final_awaited_.Reset();
  } else if (final_awaited_.IsOver()) {
    return FinalSnapshotMissing(directory_.model_dir(), final_step, final_missing_);
  }
  return false;
}

absl::StatusOr<std::optional<SnapshotInfo>> Evaluator::NextSnapshot(
    const std::vector<SnapshotInfo>& snapshots, const Ending& ending) {
  std::map<int64_t, SnapshotInfo> by_step;
  std::vector<Candidate> candidates;
  for (const SnapshotInfo& snapshot : snapshots) {
    const bool is_final = snapshot.step == ending.final_step;
    const bool unwanted = ending.dismissed || skipped_.contains({snapshot.step, snapshot.time});
    if (unwanted && !is_final) continue;
    const bool taken = scored_->EvaluationOf(snapshot.step) != nullptr ||
                       claimed_by_others_.count(snapshot.step) > 0;
    candidates.push_back({snapshot.step, taken});
    by_step[snapshot.step] = snapshot;
  }
  const std::optional<int64_t> step = schedule_.Next(candidates, ending.final_step);
  if (!step.has_value()) return std::nullopt;
  return by_step.at(*step);
}

absl::StatusOr<bool> Evaluator::ScoreSnapshot(const SnapshotInfo& snapshot, bool is_final) {
  const auto claim = claims_.Take(snapshot.step);
  if (absl::IsAlreadyExists(claim.status())) return false;
  if (!claim.ok() && !unclaimed_reported_) {
    LogWarning("scoring without claims, so other evaluators may score the same snapshots: ",
               claim.status().message());
    unclaimed_reported_ = true;
  }
  // Another evaluator may just have scored it.
  RETURN_IF_ERROR(TakeOthersRecords());
  scored_->Identify({snapshot});
  if (scored_->EvaluationOf(snapshot.step) != nullptr) return true;
  final_missing_ = absl::OkStatus();
  RETURN_IF_ERROR(ScoreClaimed(snapshot, is_final));
  return final_missing_.ok();
}

absl::Status Evaluator::ScoreClaimed(const SnapshotInfo& snapshot, bool is_final) {
  const auto lease =
      SnapshotLease::Take(options_.lease_files, snapshot.prefix, options_.self.ToString(), clock_);
  absl::Status status = lease.status();
  if (!status.ok() && !absl::IsNotFound(status)) {
    LogWarning("reading the snapshot of step ", snapshot.step,
               " without a lease: ", status.message());
  }
  if (!absl::IsNotFound(status)) {
    WeightHistograms histograms;
    Scorer::VariableCallback on_variable;
    if (options_.config.train().histogram_steps() > 0) {
      on_variable = [&histograms](const VariableSpec& variable, absl::Span<const float> values) {
        histograms.emplace_back(absl::StrCat("weights/", variable.name), Histogram());
        histograms.back().second.Add(values);
      };
    }
    const absl::StatusOr<ScoredSnapshot> scored =
        scorer_->Score(snapshot, lease.ok() ? lease->get() : nullptr, on_variable);
    if (scored.ok()) return Publish(snapshot, *scored, histograms, is_final);
    status = scored.status();
  }
  if (is_final && absl::IsNotFound(status)) {
    final_trouble_.Note(status);
    final_missing_ = status;
    return absl::OkStatus();
  }
  if (is_final || !MaySkip(status)) return status;
  LogWarning("skipping the snapshot of step ", snapshot.step, ": ", status.ToString());
  skipped_.insert({snapshot.step, snapshot.time});
  return absl::OkStatus();
}

absl::Status Evaluator::Publish(const SnapshotInfo& snapshot, const ScoredSnapshot& scored,
                                const WeightHistograms& histograms, bool is_final) {
  RETURN_IF_ERROR(AsPassing(outputs_->Publish(snapshot, scored, histograms)));
  scored_->NoteScored(snapshot, scored.record.snapshot_id);
  schedule_.Begun(StartOf(scored.record));
  Show(scored.record, /*scored_here=*/true);
  // The final export is written before the chief ends the job.
  if (is_final) outputs_->TakeFinal(snapshot.step);
  Acknowledge(scored.record);
  return absl::OkStatus();
}

void Evaluator::Show(const EvaluationRecord& record, bool scored_here) const {
  if (options_.on_evaluation != nullptr) options_.on_evaluation(record, scored_here);
}

void Evaluator::Acknowledge(const EvaluationRecord& record) {
  const std::pair<int64_t, uint64_t> scored = {record.step, record.snapshot_id};
  if (link_ == nullptr || scored == acknowledged_) return;
  link_->Acknowledge(record);
  acknowledged_ = scored;
}

}  // namespace keelson
