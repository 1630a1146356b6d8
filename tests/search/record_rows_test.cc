#include "tests/search/record_rows.h"

#include <algorithm>
#include <memory>

#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/shard_state.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr char kRowsPrefix[] = "/model.ckpt-1";
constexpr int64_t kRecords = 4;

// A snapshot of one server, after each of the first three records was pushed once.
class RecordRowsTest : public testing::Test {
 protected:
  RecordRowsTest() : variable_{1, 1, 1, 0} {
    for (const uint32_t partition : kCountedPartitions) partitions_.push_back(partition);
    for (size_t p = 0; p < partitions_.size(); ++p) {
      AddRow(p, records_.IdsOf(0)[2 * p], 3, 3);
      for (int64_t record = 0; record < 3; ++record) {
        AddRow(p, records_.IdsOf(record)[2 * p + 1], 1, 1);
      }
    }
  }

  struct Row {
    uint64_t id = 0;
    std::vector<float> values;
    uint32_t updates = 0;
  };
  void AddRow(size_t partition, uint64_t id, float value, uint32_t updates) {
    rows_[partitions_[partition]].push_back(
        {id, std::vector<float>(kRecordTableDim, value), updates});
  }

  int64_t steps_done_ = 0;

  std::unique_ptr<BundleReader> Written() {
    v1::ShardState state;
    state.set_format(2);
    state.add_variables("dense/bias");
    state.add_blocks()->set_num_elements(kRecords);
    state.set_num_row_partitions(kRowPartitions);
    state.set_steps_done(steps_done_);
    v1::ShardState::Table* const table = state.add_tables();
    table->set_name(kRecordTable);
    table->set_dim(kRecordTableDim);
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      table->add_rows(static_cast<int64_t>(rows_[p].size()));
      table->set_total_rows(table->total_rows() + table->rows(static_cast<int>(p)));
    }
    auto writer = BundleDataWriter::Create(&files_, DataPath(kRowsPrefix, 0, 1), 0);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ((*writer)->AddString(ShardStateName(0, 1), state.SerializeAsString()),
              absl::OkStatus());
    EXPECT_EQ(
        (*writer)->BeginSlice("dense/bias", Shape({kRecords}), 0, kRecords, BundleDtype::kFloat32),
        absl::OkStatus());
    EXPECT_EQ((*writer)->AppendValues(absl::MakeConstSpan(variable_)), absl::OkStatus());
    EXPECT_EQ((*writer)->EndSlice(), absl::OkStatus());
    WriteRows(table->total_rows(), writer->get());
    auto entries = (*writer)->Finish();
    EXPECT_TRUE(entries.ok()) << entries.status();
    EXPECT_EQ(WriteBundleIndexTo(&files_, IndexPath(kRowsPrefix), 1, *std::move(entries)),
              absl::OkStatus());
    auto reader = BundleReader::Open(kRowsPrefix, &files_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }

  void WriteRows(int64_t total, BundleDataWriter* writer) {
    int64_t first = 0;
    for (auto& [partition, rows] : rows_) {
      std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.id < b.id; });
      TableColumns columns;
      columns.Clear(0);
      for (const Row& row : rows) {
        columns.ids.push_back(row.id);
        columns.values.insert(columns.values.end(), row.values.begin(), row.values.end());
        columns.last_steps.push_back(0);
        columns.updates.push_back(row.updates);
      }
      EXPECT_EQ(WriteTableColumns(kRecordTable, kRecordTableDim, {}, columns, {first, total},
                                  writer, [] { return absl::OkStatus(); }),
                absl::OkStatus());
      first += columns.rows();
    }
  }

  // What is wrong with it; empty: nothing.
  std::string Check() {
    const std::unique_ptr<BundleReader> reader = Written();
    const auto counts = records_.ReadCounts(*reader, 1);
    if (!counts.ok()) return counts.status().ToString();
    return CheckShardSums(*reader, *counts, kRecords, 1,
                          [](const std::string&, double sum) { return sum; });
  }

  // The rows of the first counted partition, whose common row is `common()`.
  std::vector<Row>& rows() { return rows_[partitions_[0]]; }
  Row& common() {
    return *std::find_if(rows().begin(), rows().end(),
                         [&](const Row& row) { return row.id == records_.IdsOf(0)[0]; });
  }

  MemoryFileSystem files_;
  const RecordRows records_ = RecordRows(kRecords);
  std::vector<float> variable_;
  std::vector<uint32_t> partitions_;
  std::map<uint32_t, std::vector<Row>> rows_;  // by partition
};

TEST_F(RecordRowsTest, GivesEveryRecordRowsInTheCountedPartitions) {
  const uint64_t salt = TableSalt(kRecordTable);
  for (int64_t record = 0; record < kRecords; ++record) {
    const std::vector<uint64_t> ids = records_.IdsOf(record);
    ASSERT_EQ(ids.size(), 2 * kCountedPartitions.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(RowPartitionOf(MixId(ids[i], salt)), kCountedPartitions[i / 2]);
      if (i % 2 == 0) {
        EXPECT_EQ(ids[i], records_.IdsOf(0)[i]);
      }
    }
  }
}

TEST_F(RecordRowsTest, ReadsCounts) {
  EXPECT_EQ(Check(), "");
  const auto counts = records_.ReadCounts(*Written(), 1);
  ASSERT_TRUE(counts.ok()) << counts.status();
  for (const RowCounts& partition : *counts) {
    EXPECT_EQ(partition.common, 3);
    EXPECT_EQ(partition.own, (std::vector<float>{1, 1, 1, 0}));
  }
}

// The last step of all rows is 0.
TEST_F(RecordRowsTest, ARowThatHasExpiredCountsNothing) {
  steps_done_ = 9;
  rows().pop_back();
  const auto expires_later = RecordRows(kRecords, 9).ReadCounts(*Written(), 1);
  ASSERT_TRUE(expires_later.ok()) << expires_later.status();
  EXPECT_EQ(expires_later->front().common, 3);
  const auto expired = RecordRows(kRecords, 8).ReadCounts(*Written(), 1);
  ASSERT_TRUE(expired.ok()) << expired.status();
  EXPECT_EQ(expired->front().common, 0);
  EXPECT_EQ(expired->front().own, std::vector<float>(kRecords));
}

TEST_F(RecordRowsTest, NoticesAnElementThatDiffers) {
  common().values[1] = 2;
  EXPECT_NE(Check(), "");
}

TEST_F(RecordRowsTest, NoticesARowThatWasUpdatedOftenerThanItSays) {
  common().updates = 2;
  EXPECT_NE(Check(), "");
}

TEST_F(RecordRowsTest, NoticesAnOwnRowThatIsMissing) {
  std::vector<Row>& rows = this->rows();
  const uint64_t own = records_.IdsOf(1)[1];
  rows.erase(std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == own; }));
  EXPECT_NE(Check(), "");
}

TEST_F(RecordRowsTest, NoticesARowOfNoRecord) {
  uint64_t id = 0;
  while (RowPartitionOf(MixId(id, TableSalt(kRecordTable))) != 11) ++id;
  rows_[11].push_back({id, std::vector<float>(kRecordTableDim, 1), 1});
  EXPECT_NE(Check(), "");
}

TEST_F(RecordRowsTest, NoticesAPushThatAPartitionLacks) {
  std::vector<Row>& rows = this->rows();
  const uint64_t own = records_.IdsOf(1)[1];
  rows.erase(std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == own; }));
  common().values.assign(kRecordTableDim, 2);
  common().updates = 2;
  EXPECT_EQ(records_.ReadCounts(*Written(), 1).status(), absl::OkStatus());
  EXPECT_NE(Check(), "") << "the other partitions and the variable have it";
}

TEST_F(RecordRowsTest, NoticesAPushThatAVariableLacks) {
  variable_[2] = 0;
  EXPECT_NE(Check(), "");
}

TEST(ReadRows, NoticesWhatNoPushLeaves) {
  const std::vector<float> rows = {4, 4, 4, 1, 1, 1};
  EXPECT_EQ(CheckReadRows(rows, 1), "");
  EXPECT_NE(CheckReadRows({4, 4, 3, 1, 1, 1}, 1), "") << "half an update";
  EXPECT_NE(CheckReadRows({4, 4, 4, 1.5, 1.5, 1.5}, 1), "");
  EXPECT_EQ(CheckReadRows({4, 4, 4, 1.5, 1.5, 1.5}, 0.5), "");
  EXPECT_NE(CheckReadRows({4, 4, 4, 5, 5, 5}, 1), "") << "of more pushes than all";
  EXPECT_EQ(CheckReadRows({4, 4, 4, 5, 5, 5}, 1, /*expire=*/true), "");
}

}  // namespace
}  // namespace keelson
