#include "chief/reporter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/summary/metrics_line.h"

namespace keelson {
namespace {

constexpr absl::Duration kStatusInterval = absl::Milliseconds(500);
constexpr absl::Duration kFiguresInterval = absl::Seconds(2);

const char* PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kWaitingForServers:
      return "WAITING_FOR_SERVERS";
    case JobPhase::kTraining:
      return "TRAINING";
    case JobPhase::kFinishing:
      return "FINISHING";
    case JobPhase::kEvaluating:
      return "EVALUATING";
    case JobPhase::kDone:
      return "DONE";
    case JobPhase::kFailed:
      return "FAILED";
  }
  return "";
}

// Means and rates of what lies between two reports; means are not a number without steps.
Coordinator::Figures FiguresOf(const WorkerReport& older, const WorkerReport& newer,
                               absl::Duration interval) {
  const double seconds = absl::ToDoubleSeconds(interval);
  const auto steps = static_cast<double>(newer.steps - older.steps);
  const auto mean = [&](double sum) { return steps == 0 ? std::nan("") : sum / steps; };
  Coordinator::Figures figures;
  figures.loss = mean(newer.loss_sum - older.loss_sum);
  figures.steps_per_second = steps / seconds;
  figures.examples_per_second = static_cast<double>(newer.examples - older.examples) / seconds;
  figures.staleness = mean(static_cast<double>(newer.staleness_sum - older.staleness_sum));
  figures.credit_wait_seconds = mean(newer.credit_wait_seconds - older.credit_wait_seconds);
  figures.input_seconds = mean(newer.input_seconds - older.input_seconds);
  figures.pull_seconds = mean(newer.pull_seconds - older.pull_seconds);
  figures.compute_seconds = mean(newer.compute_seconds - older.compute_seconds);
  figures.push_seconds = mean(newer.push_seconds - older.push_seconds);
  figures.pushed_bytes_per_second =
      static_cast<double>(newer.bytes_pushed - older.bytes_pushed) / seconds;
  figures.pulled_bytes_per_second =
      static_cast<double>(newer.bytes_pulled - older.bytes_pulled) / seconds;
  return figures;
}

nlohmann::json MembersToJson(const std::vector<Member>& members) {
  nlohmann::json list = nlohmann::json::array();
  for (const Member& member : members) {
    list.push_back({{"task", member.task.ToString()},
                    {"peer", member.peer},
                    {"state", std::string(MemberStateName(member.state))},
                    {"restarts", member.restarts}});
  }
  return list;
}

nlohmann::json SnapshotsToJson(const SnapshotFigures& figures, absl::Time now) {
  nlohmann::json json = {{"write_seconds", absl::ToDoubleSeconds(figures.write_time)},
                         {"bytes", figures.bytes},
                         {"cut_microseconds", figures.longest_cut_microseconds},
                         {"written", figures.written},
                         {"failures", figures.failures},
                         {"error", figures.error}};
  if (figures.step >= 0) json["age_seconds"] = absl::ToDoubleSeconds(now - figures.committed);
  return json;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Reporter>> Reporter::Create(Options options, const Clock* clock,
                                                           Coordinator* coordinator) {
  ASSIGN_OR_RETURN(std::unique_ptr<EventWriter> events,
                   EventWriter::Create(options.model_dir, clock, options.file_system));
  return std::unique_ptr<Reporter>(
      new Reporter(std::move(options), std::move(events), clock, coordinator));
}

Reporter::Reporter(Options options, std::unique_ptr<EventWriter> events, const Clock* clock,
                   Coordinator* coordinator)
    : options_(std::move(options)),
      events_(std::move(events)),
      clock_(clock),
      coordinator_(coordinator),
      event_trouble_("events", clock),
      status_trouble_("status.json", clock) {}

void Reporter::Update() {
  const Coordinator::Status status = coordinator_->GetStatus();
  // Until the first step is done only the marks are set: a restored job does not start at step 0,
  // and the time until the workers are there is not training time.
  if (status.max_steps > 0 && (!summary_.has_value() || status.totals.steps == 0)) {
    summary_ = {clock_->Monotonic(), status.totals};
    figures_ = summary_;
  }
  if (summary_.has_value()) {
    MeasureFigures(status);
    std::vector<LossCurve::Point> points;
    while (const auto point = coordinator_->TakeLossPoint()) points.push_back(*point);
    if (!points.empty()) WriteSummary(points, status);
  }
  if (clock_->Monotonic() - status_written_ >= kStatusInterval) WriteStatusFile(status);
}

void Reporter::Finish() {
  Update();
  const Coordinator::Status status = coordinator_->GetStatus();
  const std::optional<LossCurve::Point> rest = coordinator_->TakeLastLossPoint();
  if (summary_.has_value() && rest.has_value()) WriteSummary({*rest}, status);
  WriteStatusFile(status);
}

void Reporter::MeasureFigures(const Coordinator::Status& status) {
  const absl::Duration now = clock_->Monotonic();
  const bool steps = status.totals.steps > figures_->totals.steps;
  if (now - figures_->time < kFiguresInterval || !steps) return;
  coordinator_->SetFigures(FiguresOf(figures_->totals, status.totals, now - figures_->time));
  figures_ = {now, status.totals};
}

void Reporter::WriteSummary(const std::vector<LossCurve::Point>& points,
                            const Coordinator::Status& status) {
  const absl::Duration now = clock_->Monotonic();
  const Coordinator::Figures figures =
      FiguresOf(summary_->totals, status.totals, now - summary_->time);
  absl::Status written;
  for (const LossCurve::Point& point : points) {
    const double rate = options_.learning_rate.At(point.step - 1);
    const std::string line =
        FormatMetricsLine(clock_->Now(), {{"step", static_cast<double>(point.step)},
                                          {"loss", point.loss},
                                          {"learning_rate", rate},
                                          {"steps_per_second", figures.steps_per_second},
                                          {"examples_per_second", figures.examples_per_second},
                                          {"staleness", figures.staleness},
                                          {"credit_wait_seconds", figures.credit_wait_seconds}});
    std::printf("%s\n", line.c_str());
    written.Update(
        events_->AddScalars(point.step, {{"loss", point.loss},
                                         {"learning_rate", rate},
                                         {"global_step/sec", figures.steps_per_second},
                                         {"examples/sec", figures.examples_per_second},
                                         {"staleness", figures.staleness},
                                         {"credit_wait_seconds", figures.credit_wait_seconds},
                                         {"pushed_bytes/sec", figures.pushed_bytes_per_second},
                                         {"pulled_bytes/sec", figures.pulled_bytes_per_second}}));
  }
  std::fflush(stdout);
  written.Update(events_->Flush());
  event_trouble_.Note(written);
  summary_ = {now, status.totals};
}

void Reporter::WriteStatusFile(const Coordinator::Status& status) {
  status_written_ = clock_->Monotonic();
  nlohmann::json json = {{"phase", PhaseName(status.phase)},
                         {"step", status.step},
                         {"max_steps", status.max_steps},
                         {"epoch", status.epoch},
                         {"snapshot_step", status.snapshot_step},
                         {"error", status.error},
                         {"members", MembersToJson(status.members)},
                         {"mode", coordinator_->mode().ToString()}};
  if (options_.snapshots != nullptr) {
    json["snapshot"] = SnapshotsToJson(options_.snapshots(), clock_->Now());
  }
  if (status.phase == JobPhase::kWaitingForServers && options_.missing_servers != nullptr) {
    json["waiting_for"] = options_.missing_servers();
  }
  const Coordinator::Figures& newest = status.newest;
  if (newest.steps_per_second > 0) {
    if (std::isfinite(newest.loss)) json["loss"] = newest.loss;
    json["steps_per_second"] = newest.steps_per_second;
    json["examples_per_second"] = newest.examples_per_second;
    json["staleness"] = newest.staleness;
    json["credit_wait_seconds"] = newest.credit_wait_seconds;
    json["step_seconds"] = {{"input", newest.input_seconds},
                            {"pull", newest.pull_seconds},
                            {"compute", newest.compute_seconds},
                            {"push", newest.push_seconds}};
    json["pushed_bytes_per_second"] = newest.pushed_bytes_per_second;
    json["pulled_bytes_per_second"] = newest.pulled_bytes_per_second;
    json["eta_seconds"] =
        static_cast<double>(std::max<int64_t>(status.max_steps - status.step, 0)) /
        newest.steps_per_second;
  }
  // A text that is not UTF-8 (an error with a file's name) must not end the chief.
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  status_trouble_.Note(WriteFileAtomically(JoinPath(options_.model_dir, "status.json"), text + "\n",
                                           options_.file_system));
}

}  // namespace keelson
