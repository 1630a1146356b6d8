#include "core/checkpoint/stored_tables.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/table_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTablesPrefix[] = "/job/model.ckpt-1";

class StoredTablesTest : public testing::Test {
 protected:
  StoredTablesTest() { EXPECT_TRUE(files_.CreateDirectories("/job").ok()); }

  void Write(size_t shards, const ChangeState& change = nullptr) {
    WriteTables(&files_, kTablesPrefix, {table_}, shards, change);
    auto bundle = BundleReader::Open(kTablesPrefix, &files_);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    bundle_ = *std::move(bundle);
  }
  std::map<uint64_t, TestRow> ReadAll(RowPartitionRun partitions) {
    std::map<uint64_t, TestRow> rows;
    const auto stored = StoredTables::Open(bundle_.get(), partitions);
    EXPECT_TRUE(stored.ok()) << stored.status();
    const StoredTable* const table = stored->Find("users");
    EXPECT_EQ(stored->CheckColumns(*table, table_.slots, &missing_), absl::OkStatus());
    for (uint32_t p = partitions.first; p < partitions.first + partitions.count; ++p) {
      TableColumns columns;
      EXPECT_EQ(stored->Read(*table, table_.slots, p, &columns), absl::OkStatus());
      AddTestRows(columns, &rows);
    }
    return rows;
  }
  void ExpectDamaged(const absl::Status& status, const std::string& text) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), HasSubstr(kTablesPrefix));
  }
  absl::Status ReadPartition(uint32_t partition) {
    const auto stored = StoredTables::Open(bundle_.get());
    if (!stored.ok()) return stored.status();
    TableColumns columns;
    return stored->Read(*stored->Find("users"), table_.slots, partition, &columns);
  }
  uint32_t PartitionOf(uint64_t id) { return RowPartitionOf(MixId(id, TableSalt("users"))); }

  MemoryFileSystem files_;
  TestTable table_ = UsersTable(1000);
  std::unique_ptr<BundleReader> bundle_;
  std::vector<std::string> missing_;
};

TEST_F(StoredTablesTest, RowsComeBackWhateverTheNumberOfShards) {
  for (const size_t shards : {1, 2, 3, 7, 300}) {
    SCOPED_TRACE(shards);
    Write(shards);
    EXPECT_EQ(ReadAll({0, kRowPartitions}), table_.rows);
    EXPECT_THAT(missing_, IsEmpty());
    std::map<uint64_t, TestRow> parts = ReadAll({0, 85});
    parts.merge(ReadAll({85, 171}));
    EXPECT_EQ(parts, table_.rows);
  }
}

TEST_F(StoredTablesTest, SaysWhatTheTablesAre) {
  Write(2);
  const auto stored = StoredTables::Open(bundle_.get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->tables().size(), 1u);
  const StoredTable& table = stored->tables()[0];
  EXPECT_EQ(table.spec.name, "users");
  EXPECT_EQ(table.spec.dim, 3);
  EXPECT_EQ(table.total_rows, 1000);
  EXPECT_EQ(stored->steps_done(), 10);
  EXPECT_EQ(stored->Find("items"), nullptr);
  const std::vector<TableSlot> slots = stored->SlotsOf(table);
  ASSERT_EQ(slots.size(), 2u);
  EXPECT_EQ(slots[0].name, "Adagrad");
  EXPECT_EQ(slots[0].floats, 3);
  EXPECT_EQ(slots[1].name, "Sum");
  EXPECT_EQ(slots[1].floats, 1);
}

TEST_F(StoredTablesTest, KnowsWhatEachPartitionHadApplied) {
  Write(3);
  const auto stored = StoredTables::Open(bundle_.get(), {100, 50});
  ASSERT_TRUE(stored.ok()) << stored.status();
  for (const uint32_t partition : {100u, 149u}) {
    const auto applied = stored->AppliedBy(partition);
    ASSERT_EQ(applied.size(), 1u);
    EXPECT_EQ(applied[0].incarnation(), 7u);
    EXPECT_EQ(applied[0].sequence(), partition);
  }
}

class StoredChainTest : public StoredTablesTest {
 protected:
  StoredChainTest() {
    table_ = WriteUsersChain(&files_, "/job");
    Open("/job/model.ckpt-3");
  }
  void Open(const std::string& prefix) {
    auto bundle = BundleReader::Open(prefix, &files_);
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    bundle_ = *std::move(bundle);
  }
};

TEST_F(StoredChainTest, HasTheRowsOfAllLinksButErasedOnes) {
  EXPECT_EQ(ReadAll({0, kRowPartitions}), table_.rows);
  EXPECT_THAT(missing_, IsEmpty());
  std::map<uint64_t, TestRow> parts = ReadAll({0, 85});
  parts.merge(ReadAll({85, 171}));
  EXPECT_EQ(parts, table_.rows);
  const auto stored = StoredTables::Open(bundle_.get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  const StoredTable& table = stored->tables()[0];
  EXPECT_EQ(table.AllRows(), static_cast<int64_t>(table_.rows.size()));
  EXPECT_LT(table.total_rows, 10);
  EXPECT_EQ(stored->SlotsOf(table).size(), 2u);
  ASSERT_NE(stored->base(), nullptr);
  EXPECT_EQ(stored->base()->bundle().prefix(), "/job/model.ckpt-2");
  EXPECT_EQ(stored->base_name()->snapshot_id(), 102u);
  ASSERT_NE(stored->base()->base(), nullptr);
  EXPECT_EQ(stored->base()->base()->base(), nullptr);
}

TEST_F(StoredChainTest, ASlotThatTheChainLacksIsNamedOnceAndInitial) {
  table_.slots.push_back({"Other", 1, 0.5f});
  for (auto& [id, row] : table_.rows) row.slots.push_back({0.5f});
  EXPECT_EQ(ReadAll({0, kRowPartitions}), table_.rows);
  EXPECT_THAT(missing_, ElementsAre("users/Other"));
}

TEST_F(StoredChainTest, ABaseThatIsAnotherSnapshotIsNamed) {
  WriteTables(&files_, "/job/model.ckpt-1", {UsersTable(500)}, 2, nullptr,
              {TestSnapshotName(1, 77)});
  const absl::Status status = StoredTables::Open(bundle_.get()).status();
  EXPECT_EQ(status, absl::DataLossError(
                        "/job/model.ckpt-2: is a delta on the snapshot 0000000000000065 of step 1: "
                        "expected it in /job/model.ckpt-1, found the snapshot 000000000000004d of "
                        "step 1"));
}

TEST_F(StoredChainTest, ABaseThatIsMissingIsNamed) {
  ASSERT_TRUE(files_.Remove("/job/model.ckpt-1.index").ok());
  const absl::Status status = StoredTables::Open(bundle_.get()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("/job/model.ckpt-2: is a delta on the snapshot 0000000000000065 of step 1"));
}

TEST_F(StoredChainTest, ABaseWithoutTheTableIsDamage) {
  TestTable other = UsersTable(500);
  other.seed = 12;
  WriteTables(&files_, "/job/model.ckpt-1", {other}, 2, nullptr, {TestSnapshotName(1, 101)});
  const auto stored = StoredTables::Open(bundle_.get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(
      stored->CheckColumns(stored->tables()[0], table_.slots, &missing_),
      absl::DataLossError("/job/model.ckpt-2: table users: expected the same table in its base "
                          "/job/model.ckpt-1, found another"));
}

TEST_F(StoredChainTest, RowsThatAreMissingAreNoticed) {
  WriteTables(&files_, "/job/model.ckpt-1", {UsersTable(400)}, 2, nullptr,
              {TestSnapshotName(1, 101)});
  absl::Status status;
  for (uint32_t p = 0; p < kRowPartitions; ++p) status.Update(ReadPartition(p));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("with those of its base, found"));
}

TEST_F(StoredChainTest, AStateThatMakesNoSenseIsDamage) {
  const auto change = [](v1::ShardState* state) {
    *state->mutable_base() = TestSnapshotName(2, 102);
  };
  WriteTables(&files_, "/job/model.ckpt-3", {table_}, 2, change, {TestSnapshotName(3, 103)});
  Open("/job/model.ckpt-3");
  EXPECT_EQ(StoredTables::Open(bundle_.get()).status(),
            absl::DataLossError("/job/model.ckpt-3: _keelson/shard-0-of-2: table users: what has "
                                "changed since step 2 makes no sense"));
}

TEST_F(StoredChainTest, MoreRowsThanThereCanBeAreDamage) {
  // Their sum over the partitions would overflow.
  const auto change = [](v1::ShardState* state) {
    state->mutable_tables(0)->set_all_rows(0, int64_t{1} << 51);
  };
  TestLink link = {TestSnapshotName(3, 103), TestSnapshotName(2, 102), {{}}, {{}}};
  WriteTables(&files_, "/job/model.ckpt-3", {table_}, 2, change, link);
  Open("/job/model.ckpt-3");
  EXPECT_EQ(StoredTables::Open(bundle_.get()).status(),
            absl::DataLossError("/job/model.ckpt-3: _keelson/shard-0-of-2: table users: what has "
                                "changed since step 2 makes no sense"));
}

TEST_F(StoredChainTest, AChainThatIsACircleEndsAtItsSecondLink) {
  // A delta on itself.
  TestLink link = {TestSnapshotName(3, 103), TestSnapshotName(3, 103), {{}}, {{}}};
  for (const auto& [id, row] : table_.rows) link.all[0].insert(id);
  WriteTables(&files_, "/job/model.ckpt-3", {table_}, 2, nullptr, link);
  Open("/job/model.ckpt-3");
  const absl::Status status = StoredTables::Open(bundle_.get()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("/job/model.ckpt-3: the snapshot 0000000000000067 of step 3 is a delta on "
                "the snapshot 0000000000000067 of step 3: expected one of an earlier step"));
}

TEST_F(StoredTablesTest, AnEmptyTableHasEmptyTensors) {
  table_.rows.clear();
  Write(3);
  EXPECT_EQ(bundle_->Info("users/values")->shape, Shape({0, 3}));
  EXPECT_THAT(ReadAll({0, kRowPartitions}), IsEmpty());
}

TEST_F(StoredTablesTest, AMissingSlotStartsWithItsInitialValue) {
  Write(2);
  table_.slots.push_back({"Adam_1", 1, 0.75f});
  for (auto& [id, row] : table_.rows) row.slots.push_back({0.75f});
  EXPECT_EQ(ReadAll({0, kRowPartitions}), table_.rows);
  EXPECT_THAT(missing_, ElementsAre("users/Adam_1"));
}

TEST_F(StoredTablesTest, ASlotOfAnotherShapeIsNamed) {
  Write(2);
  const auto stored = StoredTables::Open(bundle_.get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  const absl::Status status =
      stored->CheckColumns(*stored->Find("users"), {{"Adagrad", 1, 0}}, &missing_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("tensor 'users/Adagrad': expected float32 of shape [1000, 1], found float32 "
                "of shape [1000, 3]"));
}

TEST_F(StoredTablesTest, ATableThatHasBecomeAnotherIsNamed) {
  Write(2);
  const auto stored = StoredTables::Open(bundle_.get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  const StoredTable& table = *stored->Find("users");
  EXPECT_EQ(stored->CheckSame(table, table_.spec, 11), absl::OkStatus());
  const auto expect = [&](const TableSpec& spec, uint64_t seed, const std::string& text) {
    const absl::Status status = stored->CheckSame(table, spec, seed);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(": table users: " + text));
  };
  TableSpec other = table_.spec;
  other.dim = 4;
  expect(other, 11, "dim: expected 4, found 3");
  expect(table_.spec, 12, "seed of the initial values: expected 12, found 11");
  other = table_.spec;
  other.initializer = {Initializer::Kind::kNormal, 0, 2};
  expect(other, 11,
         "initial values: expected normal with mean 0 and standard deviation 2, found uniform from "
         "-0.5 to 0.5");
}

TEST_F(StoredTablesTest, ABundleOfDenseVariablesHasNone) {
  WriteTables(&files_, kTablesPrefix, {}, 2, [](v1::ShardState* state) { state->Clear(); });
  const auto bundle = BundleReader::Open(kTablesPrefix, &files_);
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const auto stored = StoredTables::Open(bundle->get());
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_THAT(stored->tables(), IsEmpty());
}

TEST_F(StoredTablesTest, StatesThatContradictEachOtherAreDamage) {
  const auto expect = [&](const ChangeState& change, const std::string& text) {
    Write(2, change);
    ExpectDamaged(StoredTables::Open(bundle_.get()).status(), text);
  };
  const auto second = [](auto change) {
    return [change](v1::ShardState* state) {
      if (state->first_row_partition() > 0) change(state);
    };
  };
  expect(second([](v1::ShardState* state) { state->clear_tables(); }),
         "tensor 'users/keys': where the rows of partition 128 are is not said");
  expect(second([](v1::ShardState* state) {
           state->mutable_tables(0)->set_first_row(state->tables(0).first_row() - 1);
         }),
         "where the rows of partition 128 are");
  expect(second([](v1::ShardState* state) { state->mutable_tables(0)->set_dim(4); }),
         "table users: is another one in other shards");
  expect(second([](v1::ShardState* state) { state->set_first_row_partition(127); }),
         "expected 128 partitions of rows from 128 on, found 128 from 127 on");
  expect([](v1::ShardState* state) { state->mutable_tables(0)->mutable_rows()->RemoveLast(); },
         "table users: expected 128 numbers of rows, found 127");
  expect([](v1::ShardState* state) { state->mutable_tables(0)->set_rows(5, -1); }, "make no sense");
  expect([](v1::ShardState* state) { state->set_first_row_partition(200); },
         "partitions of rows: expected up to at most 256, found up to 328");
}

TEST_F(StoredTablesTest, IdsOutOfOrderOrOfAnotherPartitionAreDamage) {
  // The ids of a partition, as the writer is given them, in another order.
  table_ = UsersTable(1000);
  const uint32_t partition = PartitionOf(0);
  for (const bool swap : {true, false}) {
    std::vector<BundleIndexEntry> entries;
    TableColumns columns = ColumnsOf(table_, partition);
    if (swap) {
      std::swap(columns.ids[0], columns.ids[1]);
    } else {
      columns.ids.back() = ColumnsOf(table_, partition + 1).ids.back();
    }
    TestTable only;
    only.spec = table_.spec;
    only.seed = table_.seed;
    only.slots = table_.slots;
    AddTestRows(ColumnsOf(table_, partition), &only.rows);
    // The state of a table that has just these rows.
    table_.rows = only.rows;
    Write(1);
    auto writer = BundleDataWriter::Create(&files_, DataPath(kTablesPrefix, 0, 1), 0);
    ASSERT_TRUE(writer.ok());
    ASSERT_EQ(WriteTableColumns("users", 3, table_.slots, columns, {0, columns.rows()},
                                writer->get(), [] { return absl::OkStatus(); }),
              absl::OkStatus());
    ASSERT_TRUE(
        (*writer)
            ->AddString("_keelson/shard-0-of-1", *bundle_->ReadString("_keelson/shard-0-of-1"))
            .ok());
    ASSERT_EQ(WriteBundleIndex(&files_, kTablesPrefix, 1, *(*writer)->Finish()), absl::OkStatus());
    bundle_ = *BundleReader::Open(kTablesPrefix, &files_);
    ExpectDamaged(ReadPartition(partition),
                  absl::StrCat("tensor 'users/keys': expected ascending ids of partition ",
                               partition, ", found"));
    table_ = UsersTable(1000);
  }
}

TEST_F(StoredTablesTest, EachDamagedColumnIsNamed) {
  Write(1);
  const std::string path = DataPath(kTablesPrefix, 0, 1);
  const uint32_t partition = PartitionOf(0);
  for (const std::string column : {"keys", "values", "Adagrad", "Sum", "last_step", "updates"}) {
    const std::string name = "users/" + column;
    const StoredTensor tensor = bundle_->contents().tensors.find(name)->second;
    const auto first = bundle_->contents().tensors.find("users/keys")->second.slices.size();
    ASSERT_EQ(tensor.slices.size(), first);
    Write(1);
    std::string content = files_.ReadVersioned(path, 1 << 30)->content;
    for (const StoredSlice& slice : tensor.slices) {
      // A bit that leaves ids in their order is not needed: checksums come first.
      content[slice.offset] = static_cast<char>(content[slice.offset] ^ 1);
    }
    auto file = files_.OpenForAppend(path, /*truncate=*/true);
    ASSERT_TRUE((*file)->Append(content).ok());
    ASSERT_TRUE((*file)->Close().ok());
    bundle_ = *BundleReader::Open(kTablesPrefix, &files_);
    ExpectDamaged(ReadPartition(partition), absl::StrCat("tensor '", name, "' in bytes ["));
    Write(1);
  }
}

}  // namespace
}  // namespace keelson
