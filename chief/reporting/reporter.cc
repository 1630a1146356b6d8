#include "chief/reporting/reporter.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/cluster/figures.h"
#include "core/config/run_description.h"
#include "core/summary/event_handover.h"
#include "core/summary/metrics_line.h"

namespace keelson {
namespace {

constexpr char kStatusFile[] = "status.json";
constexpr absl::Duration kStatusInterval = absl::Milliseconds(500);
constexpr absl::Duration kFiguresInterval = absl::Seconds(2);

// A worker that completes no step for this long counts as stopped, however long its steps take.
constexpr absl::Duration kWorkerPatience = absl::Seconds(10);
constexpr uint64_t kMaxStatusBytes = uint64_t{16} << 20;

using Figures = std::vector<std::pair<std::string, double>>;

// For a line on standard output, and for TensorBoard, which groups tags by what is before the "/".
void AddFigures(const v1::TrainingFigures& figures, Figures* line, Figures* scalars) {
  line->insert(line->end(), {{"steps_per_second", figures.steps_per_second()},
                             {"examples_per_second", figures.examples_per_second()},
                             {"staleness", figures.staleness()},
                             {"credit_wait_seconds", figures.credit_wait_seconds()}});
  scalars->insert(scalars->end(),
                  {{"speed/steps_per_second", figures.steps_per_second()},
                   {"speed/examples_per_second", figures.examples_per_second()},
                   {"exchange/staleness", figures.staleness()},
                   {"exchange/credit_wait_seconds", figures.credit_wait_seconds()},
                   {"exchange/pushed_bytes_per_second", figures.pushed_bytes_per_second()},
                   {"exchange/pulled_bytes_per_second", figures.pulled_bytes_per_second()}});
}

}  // namespace

std::unique_ptr<Reporter> Reporter::Create(Options options, const Clock* clock,
                                           JobReports* reports) {
  std::unique_ptr<EventWriter> events =
      EventWriter::CreateLazily(options.model_dir, clock, options.file_system);
  options.chief.since = clock->Now();
  // Without a readable status file of a predecessor, the job begins here.
  const absl::StatusOr<std::string> predecessor = ReadBoundedFile(
      JoinPath(options.model_dir, kStatusFile), kMaxStatusBytes, options.file_system);
  options.chief = AfterPredecessor(options.chief, predecessor.value_or(""));
  return std::unique_ptr<Reporter>(
      new Reporter(std::move(options), std::move(events), clock, reports));
}

Reporter::Reporter(Options options, std::unique_ptr<EventWriter> events, const Clock* clock,
                   JobReports* reports)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      reports_(reports),
      tasks_(kFiguresInterval, kWorkerPatience),
      history_(options_.model_dir, clock, options_.file_system),
      event_trouble_("events", clock),
      histogram_trouble_("gradients", clock),
      history_trouble_("tasks/events", clock),
      status_trouble_("status.json", clock) {}

absl::Status Reporter::DescribeRun(const v1::TrainConfig& config) {
  RETURN_IF_ERROR(WriteRunDescription(config, events_.get()));
  return events_->Flush();
}

void Reporter::Update() {
  const CoordinatorStatus status = reports_->GetStatus();
  const std::vector<ServerView> servers = Servers();
  // Until the first step is done only the marks are set: a restored job does not start at step 0,
  // and the time until the workers have joined is not training time.
  const bool trains = status.max_steps > 0 || status.stream.has_value();
  if (trains && (!summary_.has_value() || status.totals.steps() == 0)) {
    BeginMeasuring(status);
  }
  if (clock_->Monotonic() - histograms_taken_ >= kFiguresInterval) TakeHistograms();
  if (summary_.has_value()) {
    MeasureFigures(status);
    WriteLossPoints(status);
    PrintNewEvaluation(status);
    history_trouble_.Note(history_.Update(status, servers));
  }
  tasks_.Update(clock_->Monotonic(), status.workers, servers);
  if (clock_->Monotonic() - status_written_ >= kStatusInterval) WriteStatusFile(status, servers);
}

void Reporter::BeginMeasuring(const CoordinatorStatus& status) {
  // Steps may have been done before this first look.
  const int64_t start = std::max<int64_t>(status.step - status.totals.steps(), 0);
  if (!summary_.has_value()) event_trouble_.Note(events_->AddSessionStart(start));
  summary_ = {clock_->Monotonic(), status.step, status.totals};
  figures_ = summary_;
}

void Reporter::TakeHistograms() {
  histograms_taken_ = clock_->Monotonic();
  histogram_trouble_.Note(
      TakeEvents(JoinPath(options_.model_dir, "gradients"), options_.file_system, events_.get()));
}

void Reporter::WriteEnd(const CoordinatorStatus& status) {
  const bool done = status.phase == JobPhase::kDone;
  if (end_written_ || (!done && status.phase != JobPhase::kFailed)) return;
  end_written_ = true;
  event_trouble_.Note(events_->AddSessionEnd(done));
}

void Reporter::Finish() {
  Update();
  TakeHistograms();
  CoordinatorStatus status = reports_->GetStatus();
  // The figures of the last interval may be of steps long before the last ones.
  if (status.recent_loss != 0) status.newest.set_loss(status.recent_loss);
  reports_->SetFigures(status.newest);
  const std::vector<ServerView> servers = Servers();
  const std::optional<LossCurve::Point> rest = reports_->TakeLastLossPoint();
  if (summary_.has_value() && rest.has_value()) WriteSummary({*rest}, status);
  history_trouble_.Note(history_.Finish(status, servers));
  WriteEnd(status);
  WriteStatusFile(status, servers);
}

std::vector<ServerView> Reporter::Servers() const {
  return options_.servers == nullptr ? std::vector<ServerView>() : options_.servers();
}

bool Reporter::Advanced(const Mark& mark, const CoordinatorStatus& status) {
  return status.step > mark.step && status.totals.steps() > mark.totals.steps();
}

v1::TrainingFigures Reporter::FiguresSince(const Mark& mark,
                                           const CoordinatorStatus& status) const {
  const absl::Duration interval = clock_->Monotonic() - mark.time;
  v1::TrainingFigures figures = FiguresBetween(mark.totals, status.totals, interval);
  figures.set_steps_per_second(static_cast<double>(status.step - mark.step) /
                               absl::ToDoubleSeconds(interval));
  return figures;
}

void Reporter::MeasureFigures(const CoordinatorStatus& status) {
  const absl::Duration now = clock_->Monotonic();
  if (now - figures_->time < kFiguresInterval || !Advanced(*figures_, status)) return;
  reports_->SetFigures(FiguresSince(*figures_, status));
  figures_ = {now, status.step, status.totals};
}

void Reporter::WriteLossPoints(const CoordinatorStatus& status) {
  std::vector<LossCurve::Point> points;
  while (const auto point = reports_->TakeLossPoint()) points.push_back(*point);
  if (!points.empty()) WriteSummary(points, status);
}

void Reporter::PrintNewEvaluation(const CoordinatorStatus& status) {
  // A chief that takes a job over knows the step of the newest evaluation, but not its scores.
  if (status.evaluated_step <= printed_evaluation_ || status.evaluation.empty()) return;
  printed_evaluation_ = status.evaluated_step;
  Figures metrics = {{"step", static_cast<double>(status.evaluated_step)}};
  for (const auto& [name, value] : status.evaluation) {
    metrics.emplace_back(absl::StrCat("eval_", name), value);
  }
  std::printf("%s\n", FormatMetricsLine(clock_->Now(), metrics).c_str());
  std::fflush(stdout);
}

void Reporter::WriteSummary(const std::vector<LossCurve::Point>& points,
                            const CoordinatorStatus& status) {
  const absl::Duration now = clock_->Monotonic();
  // A job may end before there was anything to compare with.
  v1::TrainingFigures figures;
  const bool measured = Advanced(*summary_, status) && now > summary_->time;
  if (measured) figures = FiguresSince(*summary_, status);
  absl::Status written;
  for (const LossCurve::Point& point : points) {
    const double rate = options_.learning_rate(point.step - 1);
    Figures line = {
        {"step", static_cast<double>(point.step)}, {"loss", point.loss}, {"learning_rate", rate}};
    Figures scalars = {{"loss", point.loss}, {"learning_rate", rate}};
    if (measured) AddFigures(figures, &line, &scalars);
    for (const auto& [name, mean] : reports_->TakeLogged(point.step)) {
      scalars.emplace_back(name, mean);
      if (name.find_first_of(" =") == std::string::npos) line.emplace_back(name, mean);
    }
    std::printf("%s\n", FormatMetricsLine(clock_->Now(), line).c_str());
    written.Update(events_->AddScalars(point.step, scalars));
  }
  std::fflush(stdout);
  written.Update(events_->Flush());
  event_trouble_.Note(written);
  summary_ = {now, status.step, status.totals};
}

void Reporter::WriteStatusFile(const CoordinatorStatus& status,
                               const std::vector<ServerView>& servers) {
  status_written_ = clock_->Monotonic();
  const SnapshotFigures snapshots =
      options_.snapshots == nullptr ? SnapshotFigures() : options_.snapshots();
  StatusReport report = {clock_->Now(), options_.chief, status, tasks_, servers, snapshots, {}};
  if (status.phase == JobPhase::kWaitingForServers && options_.missing_servers != nullptr) {
    report.missing_servers = options_.missing_servers();
  }
  report.learning_rate = options_.learning_rate(std::max<int64_t>(status.step - 1, 0));
  report.steps_per_epoch =
      options_.batches_per_epoch / static_cast<double>(status.mode.batches_per_step());
  report.expected_members = options_.expected_members;
  status_trouble_.Note(WriteFileAtomically(JoinPath(options_.model_dir, kStatusFile),
                                           StatusJson(report) + "\n", options_.file_system));
}

}  // namespace keelson
