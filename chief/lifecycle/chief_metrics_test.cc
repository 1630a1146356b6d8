#include "chief/lifecycle/chief_metrics.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/cluster/figures.h"
#include "core/startup/scrape_testing.h"

namespace keelson {
namespace {

// The chief's page, over HTTP.
std::map<std::string, double> Samples(const CoordinatorStatus& status,
                                      const SnapshotFigures& snapshots = {}) {
  Telemetry telemetry;
  const auto registration = telemetry.metrics.Add(
      [&](MetricPage* page) { CollectChiefMetrics(status, snapshots, page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  EXPECT_TRUE(page.ok()) << page.status();
  return page->samples;
}

TEST(ChiefMetrics, SayWhereTheJobIs) {
  CoordinatorStatus status;
  status.phase = JobPhase::kTraining;
  status.step = 120;
  status.max_steps = 1000;
  status.epoch = 1.5;
  status.evaluated_step = 100;
  status.evaluation = {{"accuracy", 0.97}};
  status.mode.kind = ConsistencyMode::kBoundedStaleness;
  status.mode.staleness = 4;
  const std::map<std::string, double> samples = Samples(status);
  EXPECT_EQ(samples.at("keelson_chief_phase{phase=\"training\"}"), 1);
  EXPECT_EQ(samples.at("keelson_chief_phase{phase=\"finishing\"}"), 0);
  EXPECT_EQ(samples.at("keelson_chief_mode{mode=\"ssp:4\"}"), 1);
  EXPECT_EQ(samples.at("keelson_chief_staleness_bound"), 4);
  EXPECT_EQ(samples.at("keelson_chief_global_step"), 120);
  EXPECT_EQ(samples.at("keelson_chief_max_steps"), 1000);
  EXPECT_EQ(samples.at("keelson_chief_epoch"), 1.5);
  EXPECT_EQ(samples.at("keelson_chief_evaluated_step"), 100);
  EXPECT_EQ(samples.at("keelson_chief_evaluation{metric=\"accuracy\"}"), 0.97);
}

TEST(ChiefMetrics, SayHowFarAStreamIs) {
  CoordinatorStatus status;
  status.stream.emplace();
  status.stream->set_done_records(120);
  status.stream->set_known_records(240);
  const std::map<std::string, double> samples = Samples(status);
  EXPECT_EQ(samples.at("keelson_chief_stream_done_records"), 120);
  EXPECT_EQ(samples.at("keelson_chief_stream_known_records"), 240);
  EXPECT_EQ(samples.count("keelson_chief_max_steps"), 0);
}

TEST(ChiefMetrics, LeaveOutWhatIsNotKnownYet) {
  const std::map<std::string, double> samples = Samples({});
  EXPECT_EQ(samples.at("keelson_chief_phase{phase=\"waiting_for_servers\"}"), 1);
  for (const char* name :
       {"keelson_chief_staleness_bound", "keelson_chief_loss", "keelson_chief_steps_per_second",
        "keelson_chief_evaluated_step", "keelson_chief_snapshot_step",
        "keelson_chief_snapshot_timestamp_seconds", "keelson_chief_snapshot_write_seconds"}) {
    EXPECT_EQ(samples.count(name), 0) << name;
  }
}

TEST(ChiefMetrics, TellRatesOfTheNewestInterval) {
  CoordinatorStatus status;
  status.newest.set_loss(0.25);
  status.newest.set_steps_per_second(80);
  status.newest.set_examples_per_second(2560);
  const std::map<std::string, double> samples = Samples(status);
  EXPECT_EQ(samples.at("keelson_chief_loss"), 0.25);
  EXPECT_EQ(samples.at("keelson_chief_steps_per_second"), 80);
  EXPECT_EQ(samples.at("keelson_chief_examples_per_second"), 2560);
}

TEST(ChiefMetrics, TellNoLossOfAnIntervalWithoutOne) {
  CoordinatorStatus status;
  status.newest.set_loss(std::nan(""));
  status.newest.set_steps_per_second(80);
  const std::map<std::string, double> samples = Samples(status);
  EXPECT_EQ(samples.count("keelson_chief_loss"), 0);
  EXPECT_EQ(samples.at("keelson_chief_steps_per_second"), 80);
}

TEST(ChiefMetrics, TellWhatEachWorkerReported) {
  CoordinatorStatus status;
  v1::WorkerFigures& figures = status.workers[{Role::kWorker, 0}];
  figures.set_steps(1);
  figures.set_examples(2);
  figures.set_staleness_sum(3);
  figures.set_staleness_max(33);
  figures.set_push_retries(4);
  figures.set_bytes_pushed(5);
  figures.set_bytes_pulled(6);
  figures.set_pull_seconds(0.5);
  figures.set_input_seconds(1.5);
  figures.set_compute_seconds(2.5);
  figures.set_push_seconds(3.5);
  figures.set_credit_wait_seconds(4.5);
  figures.set_non_finite_losses(8);
  status.workers[{Role::kWorker, 1}].set_steps(7);
  status.workers[{Role::kEvaluator, 0}] = {};
  const std::map<std::string, double> samples = Samples(status);
  const auto sample = [&](const std::string& name) {
    return samples.at("keelson_chief_worker_" + name + "{task=\"worker-0\"}");
  };
  EXPECT_EQ(sample("steps_total"), 1);
  EXPECT_EQ(sample("examples_total"), 2);
  EXPECT_EQ(sample("staleness_total"), 3);
  EXPECT_EQ(sample("staleness_max"), 33);
  EXPECT_EQ(sample("push_retries_total"), 4);
  EXPECT_EQ(sample("pushed_bytes_total"), 5);
  EXPECT_EQ(sample("pulled_bytes_total"), 6);
  EXPECT_EQ(sample("credit_wait_seconds_total"), 4.5);
  EXPECT_EQ(sample("non_finite_losses_total"), 8);
  const auto seconds = [&](const std::string& kind) {
    return samples.at("keelson_chief_worker_step_seconds_total{task=\"worker-0\",kind=\"" + kind +
                      "\"}");
  };
  EXPECT_EQ(seconds("pull"), 0.5);
  EXPECT_EQ(seconds("input"), 1.5);
  EXPECT_EQ(seconds("compute"), 2.5);
  EXPECT_EQ(seconds("push"), 3.5);
  EXPECT_EQ(samples.at("keelson_chief_worker_steps_total{task=\"worker-1\"}"), 7);
  EXPECT_EQ(samples.count("keelson_chief_worker_steps_total{task=\"evaluator-0\"}"), 0);
}

TEST(ChiefMetrics, HaveEveryFigureOfAWorker) {
  CoordinatorStatus status;
  status.workers[{Role::kWorker, 0}].set_steps(1);
  const std::map<std::string, double> samples = Samples(status);
  for (const Figure& figure : WorkerFigures()) {
    const v1::FigureOptions& options = figure.options();
    if (options.metric().empty()) continue;
    std::string labels = "task=\"worker-0\"";
    if (!options.kind().empty()) absl::StrAppend(&labels, ",kind=\"", options.kind(), "\"");
    EXPECT_TRUE(
        samples.contains(absl::StrCat("keelson_chief_worker_", options.metric(), "{", labels, "}")))
        << figure.name();
  }
}

TEST(ChiefMetrics, CountMembersByRoleAndState) {
  const auto member = [](Role role, int index, Member::State state, int restarts) {
    Member member;
    member.task = {role, index};
    member.state = state;
    member.restarts = restarts;
    return member;
  };
  CoordinatorStatus status;
  status.members = {
      member(Role::kWorker, 0, Member::kAlive, 0), member(Role::kWorker, 1, Member::kAlive, 2),
      member(Role::kWorker, 2, Member::kLost, 0), member(Role::kEvaluator, 0, Member::kLeft, 0)};
  const std::map<std::string, double> samples = Samples(status);
  EXPECT_EQ(samples.at("keelson_chief_members{role=\"worker\",state=\"alive\"}"), 2);
  EXPECT_EQ(samples.at("keelson_chief_members{role=\"worker\",state=\"lost\"}"), 1);
  EXPECT_EQ(samples.at("keelson_chief_members{role=\"worker\",state=\"replaced\"}"), 0);
  EXPECT_EQ(samples.at("keelson_chief_members{role=\"evaluator\",state=\"left\"}"), 1);
  EXPECT_EQ(samples.at("keelson_chief_member_restarts_total{task=\"worker-1\"}"), 2);
}

TEST(ChiefMetrics, DescribeSnapshots) {
  SnapshotFigures snapshots;
  snapshots.step = 100;
  snapshots.committed = absl::FromUnixSeconds(1'700'000'000);
  snapshots.written = 2;
  snapshots.failures = 3;
  snapshots.error = "disk full";
  snapshots.write_time = absl::Milliseconds(250);
  snapshots.bytes = 4096;
  snapshots.longest_cut_microseconds = 12;
  std::map<std::string, double> samples = Samples({}, snapshots);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_step"), 100);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_timestamp_seconds"), 1'700'000'000);
  EXPECT_EQ(samples.at("keelson_chief_snapshots_total"), 2);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_failures_total"), 3);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_failing"), 1);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_write_seconds"), 0.25);
  EXPECT_EQ(samples.at("keelson_chief_snapshot_bytes"), 4096);
  EXPECT_DOUBLE_EQ(samples.at("keelson_chief_snapshot_cut_seconds"), 12e-6);
  snapshots.error.clear();
  EXPECT_EQ(Samples({}, snapshots).at("keelson_chief_snapshot_failing"), 0);
}

std::map<std::string, double> IntervalSamples(const v1::CheckpointConfig& checkpoint) {
  Telemetry telemetry;
  const auto registration =
      telemetry.metrics.Add([&](MetricPage* page) { CollectSnapshotInterval(checkpoint, page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  EXPECT_TRUE(page.ok()) << page.status();
  return page->samples;
}

TEST(ChiefMetrics, SayHowOftenASnapshotIsDue) {
  using ::testing::ElementsAre;
  using ::testing::Pair;
  v1::CheckpointConfig checkpoint;
  checkpoint.set_save_seconds(600);
  EXPECT_THAT(IntervalSamples(checkpoint),
              ElementsAre(Pair("keelson_chief_snapshot_interval_seconds", 600)));
  checkpoint.set_save_seconds(0);
  checkpoint.set_save_steps(500);
  EXPECT_THAT(IntervalSamples(checkpoint),
              ElementsAre(Pair("keelson_chief_snapshot_interval_steps", 500)));
}

}  // namespace
}  // namespace keelson
