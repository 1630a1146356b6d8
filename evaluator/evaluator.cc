#include "evaluator/evaluator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/config/train_config.h"

namespace keelson {
namespace {

constexpr char kDirectory[] = "eval";
constexpr char kMetricsFile[] = "metrics.jsonl";
constexpr char kLoss[] = "loss";

// The loss first.
std::vector<std::pair<std::string, double>> Scalars(const EvaluationRecord& record) {
  std::vector<std::pair<std::string, double>> scalars(record.metrics.begin(), record.metrics.end());
  std::stable_partition(scalars.begin(), scalars.end(),
                        [](const auto& scalar) { return scalar.first == kLoss; });
  return scalars;
}

std::string Describe(const EvaluationRecord& record) {
  std::string text = absl::StrCat("step ", record.step, ":");
  for (const auto& [name, value] : Scalars(record)) absl::StrAppend(&text, " ", name, "=", value);
  absl::StrAppend(&text, " (", record.examples, " examples in ", record.seconds, " s)");
  return text;
}

bool MaySkip(const absl::Status& status) {
  return status.code() == absl::StatusCode::kNotFound ||
         status.code() == absl::StatusCode::kDataLoss;
}

absl::Status FinalSnapshotMissing(const std::string& model_dir, int64_t step) {
  return absl::NotFoundError(absl::StrCat(
      model_dir, ": the job is done, but its final snapshot of step ", step, " is not there"));
}

}  // namespace

Evaluator::Evaluator(EvaluatorOptions options, ChiefService* chief, Device* device,
                     const Dataset* eval, const Clock* clock, const StopSignal* stop)
    : options_(std::move(options)),
      chief_(chief),
      device_(device),
      eval_(eval),
      clock_(clock),
      stop_(stop),
      directory_(FileSystem::Real(), options_.config.checkpoint().model_dir(), clock) {}

absl::Status Evaluator::Run() {
  RETURN_IF_ERROR(Prepare());
  if (chief_ != nullptr) JoinChief();
  RETURN_IF_ERROR(AcknowledgeEarlier());
  const absl::Status status = Watch();
  if (link_ != nullptr) link_->Leave();
  return status;
}

absl::Status Evaluator::Prepare() {
  RETURN_IF_ERROR(RequireModelDir(options_.config));
  ASSIGN_OR_RETURN(scorer_, SnapshotScorer::Create(options_.config, device_, eval_, clock_, stop_));
  const std::string directory = JoinPath(directory_.model_dir(), kDirectory);
  RETURN_IF_ERROR(CreateDirectories(directory));
  ASSIGN_OR_RETURN(log_, MetricsLog::Open(JoinPath(directory, kMetricsFile)));
  for (const auto& [step, record] : log_->records()) Show(record);
  ASSIGN_OR_RETURN(events_, EventWriter::Create(directory, clock_));
  return absl::OkStatus();
}

void Evaluator::JoinChief() {
  ChiefLink::Options options;
  options.membership.self = options_.self;
  options.new_incarnation = options_.new_incarnation;
  options.membership.config_hash = options_.config_hash;
  options.membership.peer = options_.peer;
  options.heartbeat_interval = options_.heartbeat_interval;
  options.closing_interval = std::min(options_.heartbeat_interval, options_.poll_interval);
  link_ = std::make_unique<ChiefLink>(options, chief_, clock_);
}

absl::Status Evaluator::AcknowledgeEarlier() {
  if (link_ == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory_.List());
  for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
    const EvaluationRecord* record = log_->Find(snapshot->step);
    if (record == nullptr) continue;
    link_->Acknowledge(record->step, record->metrics);
    break;
  }
  return absl::OkStatus();
}

absl::Status Evaluator::Watch() {
  while (!stop_->raised()) {
    ASSIGN_OR_RETURN(const Ending ending, LookForEnding());
    ASSIGN_OR_RETURN(const std::optional<SnapshotInfo> next, NextSnapshot(ending));
    if (next.has_value()) {
      RETURN_IF_ERROR(ScoreSnapshot(*next, next->step == ending.final_step));
      continue;
    }
    if (ending.done) {
      if (log_->Contains(*ending.final_step)) return absl::OkStatus();
      RETURN_IF_ERROR(AwaitFinalSnapshot(*ending.final_step));
    }
    stop_->WaitFor(options_.poll_interval);
  }
  return absl::CancelledError("by a signal");
}

absl::StatusOr<Evaluator::Ending> Evaluator::LookForEnding() {
  Ending ending;
  if (link_ != nullptr) {
    const JobView view = link_->View();
    RETURN_IF_ERROR(view.error);
    ending.done = dismissed_ = view.phase == v1::DONE;
    ending.final_step = view.final_step;
    // The chief waits for its members to leave, also if the final snapshot is yet to be scored.
    if (dismissed_) link_->Leave();
    if (dismissed_ || view.reachable) return ending;
  }
  ASSIGN_OR_RETURN(const std::optional<int64_t> marked, DoneMarkerStep());
  if (marked.has_value()) ending = {true, *marked};
  return ending;
}

absl::StatusOr<std::optional<int64_t>> Evaluator::DoneMarkerStep() {
  const absl::StatusOr<std::optional<DoneMarker>> marker = directory_.ReadDoneMarker();
  // Removed just now, by a chief that goes on.
  if (marker.status().code() == absl::StatusCode::kNotFound) return std::nullopt;
  RETURN_IF_ERROR(marker.status());
  if (!marker->has_value()) return std::nullopt;
  if ((*marker)->config_hash == options_.config_hash) return (*marker)->step;
  if (!foreign_marker_reported_) {
    LogInfo(directory_.model_dir(), ": the DONE marker is of configuration ",
            HashToString((*marker)->config_hash), ", this is ", HashToString(options_.config_hash),
            ": waiting for the end of this job");
    foreign_marker_reported_ = true;
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<SnapshotInfo>> Evaluator::NextSnapshot(const Ending& ending) const {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory_.List());
  for (const SnapshotInfo& snapshot : snapshots) {
    if (log_->Contains(snapshot.step)) continue;
    const bool is_final = snapshot.step == ending.final_step;
    const bool optional = dismissed_ || skipped_.count(snapshot.step) > 0;
    if (is_final || !optional) return snapshot;
  }
  return std::nullopt;
}

absl::Status Evaluator::ScoreSnapshot(const SnapshotInfo& snapshot, bool is_final) {
  const absl::StatusOr<EvaluationRecord> record = Score(snapshot);
  if (record.ok()) return Publish(*record);
  if (is_final || !MaySkip(record.status())) return record.status();
  LogWarning("skipping the snapshot of step ", snapshot.step, ": ", record.status().ToString());
  skipped_.insert(snapshot.step);
  return absl::OkStatus();
}

absl::StatusOr<EvaluationRecord> Evaluator::Score(const SnapshotInfo& snapshot) {
  const auto lease =
      SnapshotLease::Take(options_.lease_files, snapshot.prefix, options_.self.ToString(), clock_);
  if (lease.ok()) return scorer_->Score(snapshot, lease->get());
  if (absl::IsNotFound(lease.status())) return lease.status();
  LogWarning("reading the snapshot of step ", snapshot.step,
             " without a lease: ", lease.status().message());
  return scorer_->Score(snapshot, nullptr);
}

absl::Status Evaluator::Publish(const EvaluationRecord& record) {
  RETURN_IF_ERROR(events_->AddScalars(record.step, Scalars(record)));
  RETURN_IF_ERROR(events_->Flush());
  RETURN_IF_ERROR(log_->Append(record));
  LogInfo(Describe(record));
  Show(record);
  if (link_ != nullptr) link_->Acknowledge(record.step, record.metrics);
  return absl::OkStatus();
}

void Evaluator::Show(const EvaluationRecord& record) const {
  if (options_.on_evaluation != nullptr) options_.on_evaluation(record);
}

absl::Status Evaluator::AwaitFinalSnapshot(int64_t step) {
  const absl::Duration now = clock_->Monotonic();
  if (!final_awaited_since_.has_value()) final_awaited_since_ = now;
  if (now - *final_awaited_since_ < options_.final_snapshot_patience) return absl::OkStatus();
  return FinalSnapshotMissing(directory_.model_dir(), step);
}

}  // namespace keelson
