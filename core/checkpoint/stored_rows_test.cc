#include "core/checkpoint/stored_rows.h"

#include <algorithm>
#include <map>

#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/table/initial_rows.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// In files that are mapped, and in those that cannot be.
class StoredRowsTest : public testing::TestWithParam<bool> {
 protected:
  StoredRowsTest() {
    EXPECT_TRUE(files()->CreateDirectories(directory_).ok());
    WriteTables(files(), prefix_, {table_}, 2);
    auto stored = StoredRows::Open(prefix_, files());
    EXPECT_TRUE(stored.ok()) << stored.status();
    stored_ = *std::move(stored);
  }
  FileSystem* files() { return GetParam() ? FileSystem::Real() : &memory_; }
  const StoredTable& users() { return *stored_->tables().Find("users"); }

  // Ids with rows and without, in row order.
  std::vector<uint64_t> InRowOrder(std::vector<uint64_t> ids) {
    const uint64_t salt = TableSalt("users");
    std::sort(ids.begin(), ids.end(), [salt](uint64_t a, uint64_t b) {
      return std::pair(RowPartitionOf(MixId(a, salt)), a) <
             std::pair(RowPartitionOf(MixId(b, salt)), b);
    });
    return ids;
  }
  std::vector<uint64_t> SomeIds() {
    std::vector<uint64_t> ids;
    for (const auto& [id, row] : table_.rows) {
      if (id % 3 == 0) ids.push_back(id);
    }
    for (uint64_t id = 10'000; id < 10'500; ++id) ids.push_back(id);
    ids.push_back(uint64_t{1} << 63);
    return ids;
  }
  void ExpectRows(const std::vector<uint64_t>& ids, const StoredRows::Wanted& wanted) {
    RowMatrix matrix;
    ASSERT_EQ(stored_->Read(users(), ids, wanted, &matrix), absl::OkStatus());
    const InitialRows initial(table_.spec.initializer, table_.seed, TableSalt("users"));
    for (size_t i = 0; i < ids.size(); ++i) {
      SCOPED_TRACE(ids[i]);
      const auto row = table_.rows.find(ids[i]);
      ASSERT_EQ(matrix.present[i], row != table_.rows.end());
      std::vector<float> expected(3);
      initial.Fill(ids[i], absl::MakeSpan(expected));
      for (const TableSlot& slot : wanted.slots) {
        expected.insert(expected.end(), slot.floats, slot.initial_value);
      }
      if (matrix.present[i]) {
        expected = row->second.values;
        for (size_t s = 0; s < wanted.slots.size(); ++s) {
          const auto& slot = row->second.slots[s];
          expected.insert(expected.end(), slot.begin(), slot.end());
        }
      }
      const auto begin = matrix.rows.begin() + static_cast<int64_t>(i * matrix.floats);
      ASSERT_EQ(std::vector<float>(begin, begin + static_cast<int64_t>(matrix.floats)), expected);
      if (!wanted.counters) continue;
      EXPECT_EQ(matrix.last_steps[i], matrix.present[i] ? row->second.last_step : 0);
      EXPECT_EQ(matrix.updates[i], matrix.present[i] ? row->second.updates : 0);
    }
  }

  MemoryFileSystem memory_;
  const std::string directory_ = FreshDirectory();
  const std::string prefix_ = JoinPath(directory_, "model.ckpt-1");
  TestTable table_ = UsersTable(4000);
  std::unique_ptr<StoredRows> stored_;
};

TEST_P(StoredRowsTest, FindsRowsAndComputesAbsentOnes) { ExpectRows(InRowOrder(SomeIds()), {}); }

TEST_P(StoredRowsTest, ReadsSlotsAndCounters) {
  ExpectRows(InRowOrder(SomeIds()), {table_.slots, /*counters=*/true});
}

TEST_P(StoredRowsTest, TakesIdsInAnyOrder) {
  std::vector<uint64_t> ids = InRowOrder(SomeIds());
  std::reverse(ids.begin(), ids.end());
  ExpectRows(ids, {table_.slots, /*counters=*/true});
  ExpectRows({}, {});
  ExpectRows({~uint64_t{0}}, {});
}

TEST_P(StoredRowsTest, ASlotThatIsNotStoredIsInitial) {
  const std::vector<TableSlot> slots = {{"Other", 3, 0.5f}, {"Sum", 1, 0}};
  RowMatrix matrix;
  ASSERT_EQ(stored_->Read(users(), {0}, {slots}, &matrix), absl::OkStatus());
  const TestRow& row = table_.rows.at(0);
  EXPECT_THAT(matrix.rows, testing::ElementsAre(row.values[0], row.values[1], row.values[2], 0.5f,
                                                0.5f, 0.5f, row.slots[1][0]));
}

TEST_P(StoredRowsTest, DamageIsFoundInWhatIsTouched) {
  const StoredTensor& values = stored_->bundle().contents().tensors.find("users/values")->second;
  const std::string path = DataPath(prefix_, 0, 2);
  auto file = files()->OpenForRead(path);
  ASSERT_TRUE(file.ok());
  std::string content((*file)->size(), '\0');
  ASSERT_TRUE((*file)->Read(0, content.size(), content.data()).ok());
  content[values.slices[0].offset] = static_cast<char>(content[values.slices[0].offset] ^ 1);
  auto damaged = files()->OpenForAppend(path, /*truncate=*/true);
  ASSERT_TRUE((*damaged)->Append(content).ok());
  ASSERT_TRUE((*damaged)->Close().ok());
  stored_ = *StoredRows::Open(prefix_, files());
  RowMatrix matrix;
  const absl::Status status = stored_->Read(users(), InRowOrder(SomeIds()), {}, &matrix);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor 'users/values' in bytes ["));
}

TEST_P(StoredRowsTest, LooksThroughAChain) {
  table_ = WriteUsersChain(files(), directory_);
  auto stored = StoredRows::Open(JoinPath(directory_, "model.ckpt-3"), files());
  ASSERT_TRUE(stored.ok()) << stored.status();
  stored_ = *std::move(stored);
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < 500; ++id) ids.insert(ids.end(), {id, ~id});
  ExpectRows(InRowOrder(ids), {table_.slots, /*counters=*/true});
  // From what has been checked, and in any order.
  ExpectRows(ids, {table_.slots, /*counters=*/true});
}

INSTANTIATE_TEST_SUITE_P(Mapped, StoredRowsTest, testing::Bool());

}  // namespace
}  // namespace keelson
