// Jobs whose models have embedding tables.
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/ckpt_import.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/snapshot_chain.h"
#include "core/checkpoint/stored_tables.h"
#include "core/config/train_config.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/counted_rows.h"
#include "tests/support/local_cluster.h"

namespace keelson {
namespace {

struct TableJob {
  CountedRowsJob counted;
  std::string model_dir = FreshDirectory();
};

v1::TrainConfig ConfigOf(const TableJob& job) {
  v1::TrainConfig config;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(CountedRowsConfig(job.counted), &config));
  config.mutable_checkpoint()->set_model_dir(job.model_dir);
  const absl::Status status = FinalizeTrainConfig(&config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

TEST(TablesTest, EveryUpdateOfEveryRowIsCounted) {
  const TableJob job;
  LocalCluster cluster({3, 2, true, ConfigOf(job)});
  cluster.Start();
  cluster.ExpectDone();
  CheckAllRowCounts(job.model_dir);
  const CountedRows rows = ReadCountedRows(absl::StrCat(job.model_dir, "/model.ckpt-200"));
  EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 5u) << id;
  }
}

// The rows of a job that one worker trains for 200 steps, on two, three and one servers one after
// another.
CountedRows TrainOnChangingServers(const TableJob& job) {
  const v1::TrainConfig config = ConfigOf(job);
  for (const int servers : {2, 3}) {
    LocalCluster cluster({servers, 1, false, config});
    cluster.gate().CloseAt(50 * servers - 50);
    cluster.Start();
    cluster.WaitForStep(50 * servers - 50);
    EXPECT_EQ(cluster.StopChief().code(), absl::StatusCode::kCancelled);
    CheckAllRowCounts(job.model_dir);
  }
  LocalCluster cluster({1, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  CheckAllRowCounts(job.model_dir);
  return ReadCountedRows(absl::StrCat(job.model_dir, "/model.ckpt-200"));
}

void KillEachInTurn(const TableJob& job, CommonRows common) {
  LocalCluster cluster({2, 2, false, ConfigOf(job)});
  cluster.Start();
  cluster.WaitForStep(100);
  cluster.KillServer(0);
  cluster.StartServer(0);
  cluster.WaitForStep(250);
  cluster.KillWorker(1);
  cluster.StartWorker(1);
  cluster.WaitForStep(400);
  cluster.KillChief();
  cluster.StartChief();
  cluster.KillServer(1);
  cluster.StartServer(1);
  cluster.ExpectDone();
  CheckAllRowCounts(job.model_dir, common);
}

TEST(TablesTest, ServersAndWorkersThatDieLoseNoRowsUpdate) {
  TableJob job;
  job.counted.epochs = 20;
  KillEachInTurn(job, CommonRows::kAgree);
}

TEST(TablesTest, RowsThatExpireAndAreAdmittedAreWholeWhoeverDies) {
  TableJob job;
  job.counted.epochs = 20;
  job.counted.limits = "admit_after: 2 expire_after_steps: 45";
  KillEachInTurn(job, CommonRows::kMayDiffer);
}

TEST(TablesTest, AJobGoesOnWithAnotherNumberOfServers) {
  const TableJob job;
  const CountedRows rows = TrainOnChangingServers(job);
  EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 5u) << id;
    EXPECT_EQ(std::abs(static_cast<double>(row.value)) / kCountedRowStep, row.updates) << id;
  }
}

// A record's own id comes every 40 steps.
TEST(TablesTest, IdsThatStandStillLoseTheirRows) {
  TableJob job;
  job.counted.sequential = true;
  job.counted.limits = "expire_after_steps: 30";
  int64_t there = 0;
  for (const auto& [id, row] : TrainOnChangingServers(job)) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 1u) << id;
    if (id >= kCommonIds && row.last_step >= 170) ++there;
  }
  EXPECT_EQ(there, 30 * kCountedBatch);
}

TEST(TablesTest, IdsThatComeWithinTheStepsOfExpiryKeepTheirRows) {
  TableJob job;
  job.counted.sequential = true;
  job.counted.limits = "expire_after_steps: 40";
  for (const auto& [id, row] : TrainOnChangingServers(job)) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 5u) << id;
  }
}

TEST(TablesTest, IdsGetRowsWhenTheyHaveComeOftenEnough) {
  TableJob job;
  job.counted.limits = "admit_after: 3";
  const CountedRows rows = TrainOnChangingServers(job);
  EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
  for (const auto& [id, row] : rows) EXPECT_EQ(row.updates, id < kCommonIds ? 198u : 3u) << id;
}

TEST(TablesTest, IdsThatComeTooSeldomGetNoRows) {
  TableJob job;
  job.counted.sequential = true;
  job.counted.limits = "admit_after: 2 expire_after_steps: 30";
  EXPECT_EQ(TrainOnChangingServers(job).size(), kCommonIds);
}

// Which snapshots of a directory are deltas.
int CountDeltas(const std::string& model_dir) {
  const auto snapshots = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  EXPECT_TRUE(snapshots.ok()) << snapshots.status();
  int deltas = 0;
  for (const SnapshotInfo& snapshot : *snapshots) {
    const auto bundle = BundleReader::Open(snapshot.prefix);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    const auto base = BaseOf(**bundle);
    EXPECT_TRUE(base.ok()) << base.status();
    deltas += base->has_value();
  }
  return deltas;
}

int64_t NewestStep(const std::string& model_dir) {
  const auto snapshots = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  EXPECT_TRUE(snapshots.ok()) << snapshots.status();
  return snapshots->empty() ? 0 : snapshots->back().step;
}

constexpr uint32_t kDeltasEpochs = 40;
constexpr uint32_t kDeltasSteps = kDeltasEpochs * kCountedRecords / kCountedBatch;

// The rows of a job that has written at least three deltas on two servers, and three on three, and
// ended on one.
CountedRows TrainInDeltas(TableJob* job) {
  // Rounds are granted one by one, so few rows change between two snapshots on a fast machine too.
  job->counted.mode = "synchronous { replicas_to_aggregate: 1 }";
  job->counted.epochs = kDeltasEpochs;
  job->counted.save_steps = 2;
  job->counted.keep_max = 0;
  job->counted.full_every = 5;
  const std::string& model_dir = job->model_dir;
  const v1::TrainConfig config = ConfigOf(*job);
  for (const int servers : {2, 3}) {
    const int64_t begin = NewestStep(model_dir);
    LocalCluster cluster({servers, 1, false, config});
    const auto train_to = [&](int64_t steps) {
      cluster.gate().CloseAt(steps);
      if (steps == 45) cluster.Start();
      cluster.WaitForSnapshot(begin + steps - 1);
    };
    const int deltas = CountDeltas(model_dir) + 3;
    for (int64_t steps = 45; steps < 600 && CountDeltas(model_dir) < deltas; steps += 5) {
      train_to(steps);
    }
    EXPECT_GE(CountDeltas(model_dir), deltas);
    EXPECT_EQ(cluster.StopChief().code(), absl::StatusCode::kCancelled);
    CheckAllRowCounts(model_dir);
  }
  LocalCluster cluster({1, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  CheckAllRowCounts(model_dir);
  return ReadCountedRows(absl::StrCat(model_dir, "/model.ckpt-", kDeltasSteps));
}

// All rows, then a few between a snapshot and the next one.
TEST(TablesTest, DeltasHaveEveryUpdateOnAnyNumberOfServers) {
  TableJob job;
  const CountedRows rows = TrainInDeltas(&job);
  EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? kDeltasSteps : kDeltasEpochs) << id;
  }
}

// The ids that the deltas of a directory say were erased.
int64_t CountErased(const std::string& model_dir) {
  const auto snapshots = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  EXPECT_TRUE(snapshots.ok()) << snapshots.status();
  int64_t erased = 0;
  for (const SnapshotInfo& snapshot : *snapshots) {
    const auto bundle = BundleReader::Open(snapshot.prefix);
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    const auto tables = StoredTables::Open(bundle->get());
    EXPECT_TRUE(tables.ok()) << tables.status();
    erased += tables->Find("weights")->total_erased;
  }
  return erased;
}

// A record's own id comes every 40 steps, and loses its row before; on the way from two servers to
// three and to one, rows are in the whole snapshot that a delta has erased, and come back.
TEST(TablesTest, RowsThatHaveExpiredStayGoneInDeltasOnAnyNumberOfServers) {
  TableJob job;
  job.counted.sequential = true;
  job.counted.limits = "expire_after_steps: 30";
  int64_t there = 0;
  for (const auto& [id, row] : TrainInDeltas(&job)) {
    EXPECT_EQ(row.updates, id < kCommonIds ? kDeltasSteps : 1u) << id;
    if (id >= kCommonIds && row.last_step >= kDeltasSteps - 30) ++there;
  }
  EXPECT_EQ(there, 30 * kCountedBatch);
  EXPECT_GT(CountErased(job.model_dir), 100);
}

TEST(TablesTest, AServerThatDiesBetweenDeltasLosesNoRowsUpdate) {
  TableJob job;
  job.counted.epochs = 20;
  job.counted.save_steps = 2;
  job.counted.full_every = 5;
  LocalCluster cluster({2, 2, false, ConfigOf(job)});
  cluster.Start();
  for (const int64_t step : {100, 200, 300}) {
    cluster.WaitForStep(step);
    cluster.KillServer(0);
    cluster.StartServer(0);
  }
  cluster.ExpectDone();
  CheckAllRowCounts(job.model_dir);
}

// The rows after the job's last step.
CountedRows Train(const TableJob& job, int servers, int workers, int64_t steps) {
  LocalCluster cluster({servers, workers, false, ConfigOf(job)});
  cluster.Start();
  cluster.ExpectDone();
  return ReadCountedRows(absl::StrCat(job.model_dir, "/model.ckpt-", steps));
}

TEST(TablesTest, RowsHaveTheSameBitsOnAnyNumberOfServers) {
  const auto values = [](int servers) {
    TableJob job;
    job.counted.optimizer = "adam {}";
    std::map<uint64_t, float> values;
    for (const auto& [id, row] : Train(job, servers, 1, 200)) values[id] = row.value;
    return values;
  };
  const std::map<uint64_t, float> one = values(1);
  EXPECT_EQ(values(3), one);
  EXPECT_NE(one.at(0), one.at(uint64_t{1} << 63));
}

TEST(TablesTest, RoundsUpdateEachRowOncePerStep) {
  TableJob job;
  job.counted.mode = "synchronous { replicas_to_aggregate: 2 total_replicas: 3 }";
  // A step has the records of two batches.
  const CountedRows rows = Train(job, 2, 3, 100);
  CheckAllRowCounts(job.model_dir);
  for (uint64_t id = 0; id < kCommonIds; ++id) EXPECT_EQ(rows.at(id).updates, 100u) << id;
}

TEST(TablesTest, AJobTrainsOnWithImportedRows) {
  const TableJob first;
  const CountedRows trained = Train(first, 2, 1, 200);
  const TableJob second;
  const std::string config_path = FreshDirectory() + "/config.textproto";
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(ConfigOf(second), &text));
  ASSERT_EQ(WriteFileAtomically(config_path, text), absl::OkStatus());
  ImportOptions options;
  options.source = first.model_dir;
  options.model_dir = second.model_dir;
  options.config_path = config_path;
  std::ostringstream out;
  ASSERT_EQ(ImportTensors(options, &out), absl::OkStatus());
  const CountedRows rows = Train(second, 3, 1, 200);
  EXPECT_EQ(rows.size(), trained.size());
  for (const auto& [id, row] : rows) {
    // As often moved again, from where they were.
    EXPECT_EQ(row.updates, trained.at(id).updates) << id;
    EXPECT_EQ(row.value, 2 * trained.at(id).value) << id;
  }
}

}  // namespace
}  // namespace keelson
