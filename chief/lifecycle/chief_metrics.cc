#include "chief/lifecycle/chief_metrics.h"

#include <cmath>
#include <map>
#include <utility>

#include "chief/lifecycle/chief.h"
#include "core/startup/figure_metrics.h"

namespace keelson {
namespace {

constexpr std::pair<JobPhase, const char*> kPhases[] = {
    {JobPhase::kWaitingForServers, "waiting_for_servers"},
    {JobPhase::kTraining, "training"},
    {JobPhase::kFinishing, "finishing"},
    {JobPhase::kEvaluating, "evaluating"},
    {JobPhase::kDone, "done"},
    {JobPhase::kFailed, "failed"},
};

constexpr Member::State kMemberStates[] = {Member::kAway, Member::kAlive, Member::kLost,
                                           Member::kLeft, Member::kReplaced};

void AddCounter(absl::string_view name, absl::string_view help, int64_t value, MetricPage* page) {
  page->Counter(name, help).Add(static_cast<double>(value));
}

void AddGauge(absl::string_view name, absl::string_view help, double value, MetricPage* page) {
  page->Gauge(name, help).Add(value);
}

void CollectJob(const CoordinatorStatus& status, MetricPage* page) {
  MetricFamily& phases = page->Gauge("keelson_chief_phase", "1 for the phase that the job is in.");
  for (const auto& [phase, name] : kPhases) {
    phases.Add(status.phase == phase ? 1 : 0, {{"phase", name}});
  }
  page->Gauge("keelson_chief_mode", "Always 1; the label is the mode in force.")
      .Add(1, {{"mode", status.mode.ToString()}});
  if (status.mode.kind == ConsistencyMode::kBoundedStaleness) {
    AddGauge("keelson_chief_staleness_bound",
             "Steps that a worker may be ahead of the slowest one.",
             static_cast<double>(status.mode.staleness), page);
  }
  AddGauge("keelson_chief_global_step", "Steps that are completed.",
           static_cast<double>(status.step), page);
  if (status.stream.has_value()) {
    AddGauge("keelson_chief_stream_done_records", "Records of the stream that are done.",
             static_cast<double>(status.stream->done_records()), page);
    AddGauge("keelson_chief_stream_known_records", "Records of the stream's files so far.",
             static_cast<double>(status.stream->known_records()), page);
  }
  // Not where a stream's end alone ends the job: shares of 0 make no sense.
  if (status.max_steps > 0 || !status.stream.has_value()) {
    AddGauge("keelson_chief_max_steps", "Steps at which the job is done.",
             static_cast<double>(status.max_steps), page);
  }
  AddGauge("keelson_chief_epoch", "Passes over the training records.", status.epoch, page);
  if (status.evaluated_step >= 0) {
    AddGauge("keelson_chief_evaluated_step", "Step of the newest snapshot that was scored.",
             static_cast<double>(status.evaluated_step), page);
    MetricFamily& scores = page->Gauge("keelson_chief_evaluation", "Its scores.");
    for (const auto& [metric, value] : status.evaluation) scores.Add(value, {{"metric", metric}});
  }
}

void CollectRates(const v1::TrainingFigures& newest, MetricPage* page) {
  if (newest.steps_per_second() <= 0) return;
  if (!std::isnan(newest.loss())) {
    AddGauge("keelson_chief_loss", "Mean training loss of the newest interval.", newest.loss(),
             page);
  }
  AddGauge("keelson_chief_steps_per_second", "Steps per second in the newest interval.",
           newest.steps_per_second(), page);
  AddGauge("keelson_chief_examples_per_second", "Examples per second in the newest interval.",
           newest.examples_per_second(), page);
}

void CollectMembers(const std::vector<Member>& members, MetricPage* page) {
  std::map<Role, std::map<Member::State, int>> counts;
  MetricFamily& restarts = page->Counter("keelson_chief_member_restarts_total",
                                         "Memberships of the task before its present one.");
  for (const Member& member : members) {
    ++counts[member.task.role][member.state];
    restarts.Add(member.restarts, {{"task", member.task.ToString()}});
  }
  MetricFamily& family = page->Gauge("keelson_chief_members", "Tasks by role and state.");
  for (auto& [role, of_role] : counts) {
    for (const Member::State state : kMemberStates) {
      family.Add(of_role[state], {{"role", std::string(RoleName(role))},
                                  {"state", std::string(MemberStateName(state))}});
    }
  }
}

void CollectSnapshots(const SnapshotFigures& snapshots, MetricPage* page) {
  AddCounter("keelson_chief_snapshots_total", "Snapshots that were written.", snapshots.written,
             page);
  AddCounter("keelson_chief_snapshot_failures_total", "Snapshots that failed.", snapshots.failures,
             page);
  AddGauge("keelson_chief_snapshot_failing", "1: the last try failed.",
           snapshots.error.empty() ? 0 : 1, page);
  if (snapshots.step >= 0) {
    AddGauge("keelson_chief_snapshot_step", "Step of the newest snapshot.",
             static_cast<double>(snapshots.step), page);
    AddGauge("keelson_chief_snapshot_timestamp_seconds",
             "When the newest snapshot was there, since the epoch.",
             absl::ToDoubleSeconds(snapshots.committed - absl::UnixEpoch()), page);
  }
  if (snapshots.written > 0) {
    AddGauge("keelson_chief_snapshot_write_seconds", "Time that writing the last snapshot took.",
             absl::ToDoubleSeconds(snapshots.write_time), page);
    AddGauge("keelson_chief_snapshot_bytes", "Size of the last snapshot.",
             static_cast<double>(snapshots.bytes), page);
    AddGauge("keelson_chief_snapshot_cut_seconds",
             "Longest time for which pushes waited at a server for the last snapshot.",
             static_cast<double>(snapshots.longest_cut_microseconds) * 1e-6, page);
  }
}

}  // namespace

void CollectChiefMetrics(const CoordinatorStatus& status, const SnapshotFigures& snapshots,
                         MetricPage* page) {
  CollectJob(status, page);
  CollectRates(status.newest, page);
  for (const auto& [task, figures] : status.workers) {
    // Evaluators report too, but never work.
    if (task.role == Role::kEvaluator) continue;
    CollectReportedFigures(task.ToString(), figures, page);
  }
  CollectMembers(status.members, page);
  CollectSnapshots(snapshots, page);
}

void CollectSnapshotInterval(const v1::CheckpointConfig& checkpoint, MetricPage* page) {
  if (checkpoint.save_steps() > 0) {
    AddGauge("keelson_chief_snapshot_interval_steps", "A snapshot is due each time after so many.",
             static_cast<double>(checkpoint.save_steps()), page);
  } else {
    AddGauge("keelson_chief_snapshot_interval_seconds", "A snapshot is due so often.",
             static_cast<double>(checkpoint.save_seconds()), page);
  }
}

MetricRegistry::Registration AddChiefMetrics(MetricRegistry* registry, Chief* chief,
                                             const v1::CheckpointConfig& checkpoint) {
  return registry->Add([chief, checkpoint](MetricPage* page) {
    CollectChiefMetrics(chief->coordinator()->reports()->GetStatus(), chief->snapshot_figures(),
                        page);
    CollectSnapshotInterval(checkpoint, page);
  });
}

}  // namespace keelson
