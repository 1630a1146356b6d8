// Jobs whose models have embedding tables.
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_tables.h"
#include "core/config/train_config.h"
#include "core/table/row_id.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace keelson {
namespace {

constexpr int kRecords = 640;
// Every record has the ids below this, and one of its own.
constexpr uint64_t kCommonIds = 40;
// learning_rate.base * optimizer.clip_value: the labels are far away, so every push that has an id
// moves its row by exactly this, whatever its value is.
constexpr double kCountedStep = 0x1p-24;

struct TableJob {
  std::string model_dir = FreshDirectory();
  std::string optimizer = "sgd {} clip_value: 0.0009765625";
  std::string mode;  // of consistency
  int64_t epochs = 5;
};

std::string WriteRecords() {
  std::string text;
  for (int record = 0; record < kRecords; ++record) {
    absl::StrAppend(&text, "1000000");
    for (uint64_t id = 0; id < kCommonIds; ++id) absl::StrAppend(&text, " ", id, ":1");
    absl::StrAppend(&text, " ", (uint64_t{1} << 63) + record, ":1\n");
  }
  const std::string directory = FreshDirectory();
  EXPECT_TRUE(WriteFileAtomically(absl::StrCat(directory, "/records"), text).ok());
  return directory;
}

v1::TrainConfig ConfigOf(const TableJob& job) {
  v1::TrainConfig config;
  const bool parsed = google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(R"(
        model {
          features { name: "features" bag { weighted: true } }
          tables { name: "weights" dim: 1 }
          layers {
            name: "score"
            inputs: "features"
            embedding_bag { table: "weights" combiner: SUM }
          }
          loss { kind: MEAN_SQUARED_ERROR label: "label" }
        }
        initial_values { groups { variables: "weights" constant {} } }
        learning_rate { base: 0.00006103515625 }
        data { libsvm {} train_files: "records" eval_files: "records" }
        train { batch_size: 16 seed: 3 summary_steps: 10 max_loss: 1e30 epochs: )",
                   job.epochs, " } checkpoint { save_steps: 40 model_dir: '", job.model_dir,
                   "' } optimizer { ", job.optimizer, " }",
                   job.mode.empty() ? "" : absl::StrCat("consistency { mode { ", job.mode, " } }")),
      &config);
  EXPECT_TRUE(parsed);
  config.mutable_data()->set_data_dir(WriteRecords());
  const absl::Status status = FinalizeTrainConfig(&config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

struct CountedRow {
  float value = 0;
  uint32_t updates = 0;
};
using CountedRows = std::map<uint64_t, CountedRow>;

// The rows of a snapshot, of which every checksum is verified.
CountedRows ReadRows(const std::string& prefix) {
  CountedRows rows;
  const auto bundle = BundleReader::Open(prefix);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  const absl::Status verified = (*bundle)->VerifyAll();
  EXPECT_TRUE(verified.ok()) << verified;
  const auto tables = StoredTables::Open(bundle->get());
  EXPECT_TRUE(tables.ok()) << tables.status();
  const StoredTable* const table = tables->Find("weights");
  EXPECT_NE(table, nullptr);
  if (table == nullptr) return rows;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    TableColumns columns;
    const absl::Status read = tables->Read(*table, {}, p, &columns);
    EXPECT_TRUE(read.ok()) << read;
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      rows[columns.ids[i]] = {columns.values[i], columns.updates[i]};
    }
  }
  return rows;
}

// The pushes that each shard had counted in a snapshot.
std::vector<int64_t> PushesOf(const std::string& prefix) {
  const auto bundle = BundleReader::Open(prefix);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  std::vector<int64_t> pushes;
  for (const TensorInfo& tensor : (*bundle)->List()) {
    if (!absl::StartsWith(tensor.name, "_keelson/shard-")) continue;
    const auto state =
        ParseShardState((*bundle)->ReadString(tensor.name).value(), prefix, tensor.name);
    EXPECT_TRUE(state.ok()) << state.status();
    pushes.push_back(state->shard_step());
  }
  return pushes;
}

// Checks the arithmetic of a snapshot: each row has moved once for each of its updates, and those
// that every push has were updated equally often in each shard, and no more often than the shard
// had counted pushes. (It may have counted more: a shard that is restored goes on from the highest
// count of all.)
void CheckCounts(const std::string& prefix) {
  SCOPED_TRACE(prefix);
  const std::vector<int64_t> pushes = PushesOf(prefix);
  std::map<size_t, uint32_t> updates;  // by shard
  for (const auto& [id, row] : ReadRows(prefix)) {
    EXPECT_EQ(std::abs(static_cast<double>(row.value)) / kCountedStep, row.updates) << id;
    if (id >= kCommonIds) continue;
    const size_t partition = RowPartitionOf(MixId(id, TableSalt("weights")));
    size_t shard = 0;
    while (kRowPartitions * (shard + 1) / pushes.size() <= partition) ++shard;
    EXPECT_EQ(updates.emplace(shard, row.updates).first->second, row.updates) << id;
    EXPECT_GE(pushes[shard], row.updates) << id;
  }
}

void CheckAllSnapshots(const std::string& model_dir) {
  const auto snapshots = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  EXPECT_FALSE(snapshots->empty());
  for (const SnapshotInfo& snapshot : *snapshots) CheckCounts(snapshot.prefix);
}

TEST(TablesTest, EveryUpdateOfEveryRowIsCounted) {
  const TableJob job;
  LocalCluster cluster({3, 2, true, ConfigOf(job)});
  cluster.Start();
  cluster.ExpectDone();
  CheckAllSnapshots(job.model_dir);
  const CountedRows rows = ReadRows(absl::StrCat(job.model_dir, "/model.ckpt-200"));
  EXPECT_EQ(rows.size(), kCommonIds + kRecords);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 5u) << id;
  }
}

TEST(TablesTest, ServersAndWorkersThatDieLoseNoRowsUpdate) {
  TableJob job;
  job.epochs = 20;
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
  CheckAllSnapshots(job.model_dir);
}

TEST(TablesTest, AJobGoesOnWithAnotherNumberOfServers) {
  const TableJob job;
  const v1::TrainConfig config = ConfigOf(job);
  for (const int servers : {2, 3}) {
    LocalCluster cluster({servers, 1, false, config});
    cluster.gate().CloseAt(50 * servers - 50);
    cluster.Start();
    cluster.WaitForStep(50 * servers - 50);
    EXPECT_EQ(cluster.StopChief().code(), absl::StatusCode::kCancelled);
    CheckAllSnapshots(job.model_dir);
  }
  LocalCluster cluster({1, 1, false, config});
  cluster.Start();
  cluster.ExpectDone();
  const CountedRows rows = ReadRows(absl::StrCat(job.model_dir, "/model.ckpt-200"));
  EXPECT_EQ(rows.size(), kCommonIds + kRecords);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? 200u : 5u) << id;
    EXPECT_EQ(std::abs(static_cast<double>(row.value)) / kCountedStep, row.updates) << id;
  }
}

// The rows after the job's last step.
CountedRows Train(const TableJob& job, int servers, int workers, int64_t steps) {
  LocalCluster cluster({servers, workers, false, ConfigOf(job)});
  cluster.Start();
  cluster.ExpectDone();
  return ReadRows(absl::StrCat(job.model_dir, "/model.ckpt-", steps));
}

TEST(TablesTest, RowsHaveTheSameBitsOnAnyNumberOfServers) {
  const auto values = [](int servers) {
    TableJob job;
    job.optimizer = "adam {}";
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
  job.mode = "synchronous { replicas_to_aggregate: 2 total_replicas: 3 }";
  // A step has the records of two batches.
  const CountedRows rows = Train(job, 2, 3, 100);
  CheckAllSnapshots(job.model_dir);
  for (uint64_t id = 0; id < kCommonIds; ++id) EXPECT_EQ(rows.at(id).updates, 100u) << id;
}

}  // namespace
}  // namespace keelson
