#include "ps_server/service/server_metrics.h"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/startup/scrape_testing.h"
#include "ps_server/service/shard_testing.h"
#include "testing/services/faulty_parameter_control.h"

namespace keelson {
namespace {

// The server's page, over HTTP.
std::map<std::string, double> Samples(const v1::ShardStatus& shard, const ServerFigures& figures) {
  Telemetry telemetry;
  const auto registration =
      telemetry.metrics.Add([&](MetricPage* page) { CollectServerMetrics(shard, figures, page); });
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  EXPECT_TRUE(page.ok()) << page.status();
  return page->samples;
}

TEST(ServerMetrics, TellFiguresUnderTheirNames) {
  ServerFigures figures;
  figures.pulls = 1;
  figures.pushes = 2;
  figures.committed_rounds = 3;
  figures.pushed_bytes = 4;
  figures.pulled_bytes = 5;
  figures.repeated_pushes = 6;
  figures.duplicate_blocks = 7;
  figures.refused_calls = 8;
  figures.outdated_pushes = 9;
  figures.calls_in_progress = 10;
  figures.snapshots = 11;
  figures.failed_snapshots = 12;
  figures.snapshot_bytes = 13;
  figures.snapshot_time = absl::Milliseconds(1400);
  figures.cut_time = absl::Microseconds(150);
  figures.longest_cut = absl::Microseconds(16);
  const std::map<std::string, double> samples = Samples(v1::ShardStatus(), figures);
  EXPECT_EQ(samples.at("keelson_ps_pulls_total"), 1);
  EXPECT_EQ(samples.at("keelson_ps_pushes_total"), 2);
  EXPECT_EQ(samples.at("keelson_ps_committed_rounds_total"), 3);
  EXPECT_EQ(samples.at("keelson_ps_pushed_bytes_total"), 4);
  EXPECT_EQ(samples.at("keelson_ps_pulled_bytes_total"), 5);
  EXPECT_EQ(samples.at("keelson_ps_repeated_pushes_total"), 6);
  EXPECT_EQ(samples.at("keelson_ps_duplicate_blocks_total"), 7);
  EXPECT_EQ(samples.at("keelson_ps_refused_calls_total"), 8);
  EXPECT_EQ(samples.at("keelson_ps_outdated_pushes_total"), 9);
  EXPECT_EQ(samples.at("keelson_ps_calls_in_progress"), 10);
  EXPECT_EQ(samples.at("keelson_ps_snapshots_total"), 11);
  EXPECT_EQ(samples.at("keelson_ps_snapshot_failures_total"), 12);
  EXPECT_EQ(samples.at("keelson_ps_snapshot_bytes_total"), 13);
  EXPECT_DOUBLE_EQ(samples.at("keelson_ps_snapshot_seconds_total"), 1.4);
  EXPECT_DOUBLE_EQ(samples.at("keelson_ps_snapshot_cut_seconds_total"), 0.00015);
  EXPECT_DOUBLE_EQ(samples.at("keelson_ps_snapshot_longest_cut_seconds"), 0.000016);
}

TEST(ServerMetrics, DescribeTheShardOnceItIsThere) {
  v1::ShardStatus shard;
  shard.set_state(v1::ShardStatus::INITIALIZING);
  shard.set_members(3);
  std::map<std::string, double> samples = Samples(shard, {});
  EXPECT_EQ(samples.at("keelson_ps_shard_ready"), 0);
  EXPECT_EQ(samples.at("keelson_ps_members"), 3);
  EXPECT_EQ(samples.count("keelson_ps_shard_step"), 0);

  shard.set_state(v1::ShardStatus::READY);
  shard.set_shard_step(17);
  shard.set_value_bytes(4096);
  shard.set_slot_bytes(8192);
  shard.set_active_clients(2);
  shard.set_credits(8);
  samples = Samples(shard, {});
  EXPECT_EQ(samples.at("keelson_ps_shard_ready"), 1);
  EXPECT_EQ(samples.at("keelson_ps_shard_step"), 17);
  EXPECT_EQ(samples.at("keelson_ps_value_bytes"), 4096);
  EXPECT_EQ(samples.at("keelson_ps_slot_bytes"), 8192);
  EXPECT_EQ(samples.at("keelson_ps_clients"), 2);
  EXPECT_EQ(samples.at("keelson_ps_credits"), 8);
}

TEST(ServerMetrics, TellOfEachTable) {
  v1::ShardStatus shard;
  shard.set_state(v1::ShardStatus::READY);
  EXPECT_EQ(Samples(shard, {}).count("keelson_ps_table_rows{table=\"users\"}"), 0);
  v1::TablePartStatus* const table = shard.add_tables();
  table->set_name("users");
  table->set_rows(5);
  table->set_bytes(640);
  table->set_refused_rows(2);
  table->set_expired_rows(3);
  table->set_ghosts(7);
  table->set_admitted_rows(4);
  table->set_evicted_rows(6);
  table->set_looked_up(100);
  table->set_looked_up_absent(20);
  const std::map<std::string, double> samples = Samples(shard, {});
  EXPECT_EQ(samples.at("keelson_ps_table_rows{table=\"users\"}"), 5);
  EXPECT_EQ(samples.at("keelson_ps_table_bytes{table=\"users\"}"), 640);
  EXPECT_EQ(samples.at("keelson_ps_table_refused_rows_total{table=\"users\"}"), 2);
  EXPECT_EQ(samples.at("keelson_ps_table_expired_rows_total{table=\"users\"}"), 3);
  EXPECT_EQ(samples.at("keelson_ps_table_ghosts{table=\"users\"}"), 7);
  EXPECT_EQ(samples.at("keelson_ps_table_admitted_rows_total{table=\"users\"}"), 4);
  EXPECT_EQ(samples.at("keelson_ps_table_evicted_rows_total{table=\"users\"}"), 6);
  EXPECT_EQ(samples.at("keelson_ps_table_looked_up_total{table=\"users\"}"), 100);
  EXPECT_EQ(samples.at("keelson_ps_table_looked_up_absent_total{table=\"users\"}"), 20);
}

TEST(ServerMetrics, AskTheHandler) {
  StopSignal end;
  ParameterHandler handler({}, Clock::Real(), &end);
  Telemetry telemetry;
  const auto registration = AddServerMetrics(&telemetry.metrics, &handler);
  const absl::StatusOr<Exposition> page = Scrape(telemetry);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->samples.at("keelson_ps_shard_ready"), 0);
  EXPECT_EQ(page->samples.at("keelson_ps_pushes_total"), 0);
}

// A process that serves shard 1, keeps a copy of shard 0, and has nothing of shard 2 yet.
class SeveralShardsTest : public testing::Test {
 protected:
  SeveralShardsTest() {
    v1::InitializeShardResponse response;
    EXPECT_TRUE(host_.handler.Initialize(InitializeRequest(placement_, 0), &response).ok());
    EXPECT_TRUE(shards_.at(1)->Initialize(InitializeRequest(placement_, 1), &response).ok());
    v1::ReplicateShardRequest copy;
    *copy.mutable_start() = InitializeRequest(placement_, 0);
    copy.set_from("host:1");
    EXPECT_TRUE(shards_.at(0)->ReplicateShard(copy, &response).ok());
  }
  std::map<std::string, double> Samples() {
    const absl::StatusOr<Exposition> page = Scrape(telemetry_);
    EXPECT_TRUE(page.ok()) << page.status();
    return page->samples;
  }
  ParameterHandler::Options Options() {
    ParameterHandler::Options options = {.incarnation = 9, .config_hash = kTestConfigHash};
    options.connect_host = [this](const std::string&) {
      return std::make_unique<FaultyParameterControl>(&host_.handler);
    };
    return options;
  }

  const Placement placement_ = TestPlacement(3);
  TestServer host_;  // of shard 0
  StopSignal end_;
  ShardHandlers shards_{{1, 0, 2}, Options(), Clock::Real(), &end_};
  Telemetry telemetry_;
  const MetricRegistry::Registration registration_ =
      AddServerMetrics(&telemetry_.metrics, &shards_);
};

TEST_F(SeveralShardsTest, AreTold) {
  const std::map<std::string, double> samples = Samples();
  EXPECT_EQ(samples.at("keelson_ps_shard_replica{shard=\"1\"}"), 0);
  EXPECT_EQ(samples.at("keelson_ps_shard_replica{shard=\"0\"}"), 1);
  for (const int shard : {0, 1}) {
    const std::string label = absl::StrCat("{shard=\"", shard, "\"}");
    EXPECT_EQ(samples.at("keelson_ps_shard_ready" + label), 1);
    EXPECT_EQ(samples.at("keelson_ps_value_bytes" + label),
              StatusOf(shards_.at(static_cast<size_t>(shard))).value_bytes());
    EXPECT_EQ(samples.at("keelson_ps_pushes_total" + label), 0);
  }
  EXPECT_EQ(samples.count("keelson_ps_shard_ready{shard=\"2\"}"), 0);
  EXPECT_EQ(samples.count("keelson_ps_pushes_total{shard=\"2\"}"), 0);
}

TEST_F(SeveralShardsTest, WhatWasDoneForOneThatHasMovedStaysCounted) {
  Announce(shards_.at(0), {});
  ASSERT_TRUE(CallBulk(shards_.at(0), BulkMethod::kPush, PushOf(placement_, 0, 1, 1)).ok());
  EXPECT_EQ(Samples().at("keelson_ps_shard_replica{shard=\"0\"}"), 0) << "its chief calls here";
  v1::FinishShardRequest moved;
  *moved.mutable_header() = HeaderOf(kTestChief);
  moved.set_moved(true);
  v1::FinishShardResponse response;
  ASSERT_TRUE(shards_.at(0)->Finish(moved, &response).ok());
  const std::map<std::string, double> samples = Samples();
  EXPECT_EQ(samples.count("keelson_ps_shard_ready{shard=\"0\"}"), 0);
  EXPECT_EQ(samples.at("keelson_ps_pushes_total{shard=\"0\"}"), 1);
}

TEST(ServerMetrics, StalenessIsByTask) {
  ServerFigures figures;
  figures.staleness.resize(2);
  figures.staleness[0] = {{Role::kWorker, 0}, {5, 0, 1}, 2};
  figures.staleness[1] = {{Role::kWorker, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 2}, 300};
  const std::map<std::string, double> samples = Samples(v1::ShardStatus(), figures);
  const auto bucket = [&](const std::string& task, const std::string& bound) {
    return samples.at("keelson_ps_staleness_bucket{task=\"" + task + "\",le=\"" + bound + "\"}");
  };
  EXPECT_EQ(bucket("worker-0", "0"), 5);
  EXPECT_EQ(bucket("worker-0", "1"), 5);
  EXPECT_EQ(bucket("worker-0", "2"), 6);
  EXPECT_EQ(bucket("worker-0", "+Inf"), 6);
  EXPECT_EQ(bucket("worker-1", "64"), 0);
  EXPECT_EQ(bucket("worker-1", "+Inf"), 2);
  EXPECT_EQ(samples.at("keelson_ps_staleness_sum{task=\"worker-1\"}"), 300);
}

}  // namespace
}  // namespace keelson
