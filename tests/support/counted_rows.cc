#include "tests/support/counted_rows.h"

#include <cmath>
#include <cstddef>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/stored_tables.h"
#include "core/table/row_id.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

std::string WriteRecords() {
  std::string text;
  for (int record = 0; record < kCountedRecords; ++record) {
    absl::StrAppend(&text, "1000000");
    for (uint64_t id = 0; id < kCommonIds; ++id) absl::StrAppend(&text, " ", id, ":1");
    absl::StrAppend(&text, " ", (uint64_t{1} << 63) + record, ":1\n");
  }
  const std::string directory = FreshDirectory();
  EXPECT_TRUE(WriteFileAtomically(absl::StrCat(directory, "/records"), text).ok());
  return directory;
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

size_t ShardOf(uint64_t id, size_t shards) {
  const size_t partition = RowPartitionOf(MixId(id, TableSalt("weights")));
  size_t shard = 0;
  while (kRowPartitions * (shard + 1) / shards <= partition) ++shard;
  return shard;
}

}  // namespace

std::string CountedRowsConfig(const CountedRowsJob& job) {
  return absl::StrCat(
      R"(
    model {
      features { name: "features" bag { weighted: true } }
      tables { name: "weights" dim: 1 )",
      job.limits, R"( }
      layers {
        name: "score"
        inputs: "features"
        embedding_bag { table: "weights" combiner: SUM }
      }
      loss { kind: MEAN_SQUARED_ERROR label: "label" }
    }
    initial_values { groups { variables: "weights" constant {} } }
    learning_rate { base: 0.00006103515625 }
    data { libsvm {} train_files: "records" eval_files: "records" data_dir: ")",
      WriteRecords(), job.sequential ? R"(" sequential: true)" : "\"", R"( }
    evaluation { final_timeout_seconds: 60 }
    train { batch_size: )",
      kCountedBatch, " seed: 3 summary_steps: 10 max_loss: 1e30 ",
      job.max_steps > 0 ? absl::StrCat("max_steps: ", job.max_steps)
                        : absl::StrCat("epochs: ", job.epochs),
      " } checkpoint { save_steps: ", job.save_steps, " keep_max: ", job.keep_max,
      " full_every: ", job.full_every, " } optimizer { ", job.optimizer, " }",
      job.mode.empty() ? "" : absl::StrCat("consistency { mode { ", job.mode, " } }"));
}

CountedRows ReadCountedRows(const std::string& prefix) {
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
  std::vector<std::string> missing;
  const absl::Status columns_fit = tables->CheckColumns(*table, {}, &missing);
  EXPECT_TRUE(columns_fit.ok()) << columns_fit;
  if (!columns_fit.ok()) return rows;
  for (uint32_t p = 0; p < kRowPartitions; ++p) {
    TableColumns columns;
    const absl::Status read = tables->Read(*table, {}, p, &columns);
    EXPECT_TRUE(read.ok()) << read;
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      rows[columns.ids[i]] = {columns.values[i], columns.updates[i], columns.last_steps[i]};
    }
  }
  return rows;
}

std::vector<int64_t> CommonRowUpdates(const std::string& prefix) {
  std::vector<int64_t> updates(PushesOf(prefix).size(), 0);
  for (const auto& [id, row] : ReadCountedRows(prefix)) {
    if (id < kCommonIds) updates[ShardOf(id, updates.size())] = row.updates;
  }
  return updates;
}

void CheckRowCounts(const std::string& prefix, CommonRows common) {
  SCOPED_TRACE(prefix);
  const std::vector<int64_t> pushes = PushesOf(prefix);
  std::map<size_t, uint32_t> updates;  // by shard
  for (const auto& [id, row] : ReadCountedRows(prefix)) {
    EXPECT_EQ(std::abs(static_cast<double>(row.value)) / kCountedRowStep, row.updates) << id;
    if (id >= kCommonIds) continue;
    const size_t shard = ShardOf(id, pushes.size());
    if (common == CommonRows::kAgree) {
      EXPECT_EQ(updates.emplace(shard, row.updates).first->second, row.updates) << id;
    }
    EXPECT_GE(pushes[shard], row.updates) << id;
  }
}

void CheckAllRowCounts(const std::string& model_dir, CommonRows common) {
  const auto snapshots = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  EXPECT_FALSE(snapshots->empty());
  for (const SnapshotInfo& snapshot : *snapshots) CheckRowCounts(snapshot.prefix, common);
}

}  // namespace keelson
