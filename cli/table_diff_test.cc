#include "cli/table_diff.h"

#include <limits>
#include <memory>
#include <sstream>

#include "cli/ckpt_diff.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/tensor_files/tensor_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

// Two snapshots with the table "users", as different numbers of servers write them.
class TableDiffTest : public testing::Test {
 protected:
  // What diff prints.
  std::string Diff(double tolerance = 0) {
    std::ostringstream out;
    const absl::StatusOr<bool> equal =
        DiffTensors(Open("a", a_, 1).get(), Open("b", b_, 3).get(), tolerance, &out);
    EXPECT_TRUE(equal.ok()) << equal.status();
    equal_ = equal.value_or(false);
    return out.str();
  }

  std::vector<TestTable> a_ = {UsersTable(1000)};
  std::vector<TestTable> b_ = {UsersTable(1000)};
  bool equal_ = false;

 private:
  std::unique_ptr<TensorSource> Open(const std::string& name, const std::vector<TestTable>& tables,
                                     size_t shards) {
    const std::string prefix = JoinPath(directory_, name + "/model.ckpt-1");
    EXPECT_EQ(CreateDirectories(JoinPath(directory_, name)), absl::OkStatus());
    WriteTables(FileSystem::Real(), prefix, tables, shards);
    return *OpenTensorSource(prefix);
  }

  const std::string directory_ = FreshDirectory();
};

TEST_F(TableDiffTest, EqualRowsAreEqualWhateverServersWroteThem) {
  // The states of the shards differ: they are records.
  EXPECT_EQ(Diff(), "equal: 0 of 0 tensors differ, 0 of 1 tables do; 4 records of state do\n");
  EXPECT_TRUE(equal_);
}

TEST_F(TableDiffTest, RowsAreComparedByTheirIds) {
  a_[0].rows.erase(2);
  b_[0].rows.erase(~uint64_t{3});
  b_[0].rows.erase(0);
  b_[0].rows.at(4).values[1] += 8;
  b_[0].rows.at(6).slots[0][2] += 2;
  b_[0].rows.at(8).updates = 99;
  const std::string text = Diff();
  EXPECT_FALSE(equal_);
  EXPECT_THAT(text,
              testing::ContainsRegex(
                  "table users: 2 rows only in the first \\(ids [0-9]+, [0-9]+\\); 1 row only "
                  "in the second \\(id 2\\); 3 of 997 rows in both differ \\(ids [468], "
                  "[468], [468]\\), by at most 8 in values of id 4 \\(30 and 38\\)\n"));
  EXPECT_THAT(text, testing::HasSubstr("different: 0 of 0 tensors differ, 1 of 1 tables do"));
}

TEST_F(TableDiffTest, ToleranceIsOfNumbersAlone) {
  b_[0].rows.at(4).values[1] += 0.5f;
  EXPECT_FALSE(Diff(0.001).empty());
  EXPECT_FALSE(equal_);
  Diff(0.1);
  EXPECT_TRUE(equal_);
  b_[0].rows.at(4).last_step = 77;
  Diff(0.1);
  EXPECT_FALSE(equal_);
}

TEST_F(TableDiffTest, NumbersThatAreNotFinite) {
  a_[0].rows.at(4).values[0] = std::numeric_limits<float>::quiet_NaN();
  b_[0].rows.at(4).values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(Diff(), testing::HasSubstr("equal: "));
  b_[0].rows.at(4).values[0] = 1;
  EXPECT_THAT(Diff(), testing::HasSubstr("by at most inf in values of id 4 (nan and 1)"));
}

TEST_F(TableDiffTest, StepsAndUpdatesAloneMayDiffer) {
  b_[0].rows.at(8).last_step = 99;
  EXPECT_THAT(Diff(), testing::HasSubstr("1 of 1000 rows in both differ (id 8), in their steps or "
                                         "updates alone"));
}

TEST_F(TableDiffTest, ManyIdsAreCutShort) {
  for (uint64_t id = 0; id < 20; id += 2) b_[0].rows.erase(id);
  EXPECT_THAT(Diff(),
              testing::ContainsRegex("10 rows only in the first \\(ids [0-9]+(, [0-9]+){4}, …\\)"));
}

TEST_F(TableDiffTest, SlotsDimsAndInitialValuesAreCompared) {
  b_[0].slots[1].name = "Other";
  b_[0].seed = 12;
  EXPECT_THAT(Diff(), testing::HasSubstr("table users: initial values differ, by their seeds or "
                                         "initializers; slot Sum only in the first; slot Other "
                                         "only in the second\n"));
  b_ = {UsersTable(10)};
  b_[0].spec.dim = 2;
  for (auto& [id, row] : b_[0].rows) {
    row.values.pop_back();
    row.slots[0].pop_back();
  }
  b_[0].slots[0].floats = 2;
  EXPECT_THAT(Diff(), testing::HasSubstr("table users: dims differ, 3 and 2\n"));
}

TEST(TableDiffOfChainTest, ADeltaIsComparedWithTheRowsOfItsBases) {
  const std::string directory = FreshDirectory();
  const TestTable users = WriteUsersChain(FileSystem::Real(), directory);
  const std::string whole = JoinPath(directory, "model.ckpt-9");
  WriteTables(FileSystem::Real(), whole, {users}, 2);
  std::ostringstream out;
  const auto equal = DiffTensors(OpenTensorSource(JoinPath(directory, "model.ckpt-3"))->get(),
                                 OpenTensorSource(whole)->get(), 0, &out);
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_THAT(out.str(), testing::HasSubstr(", 0 of 1 tables do"));
  const auto others = DiffTensors(OpenTensorSource(JoinPath(directory, "model.ckpt-2"))->get(),
                                  OpenTensorSource(whole)->get(), 0, &out);
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(out.str(), testing::HasSubstr(", 1 of 1 tables do"));
}

TEST_F(TableDiffTest, ATableThatOneAloneHas) {
  b_[0].spec.name = "items";
  const std::string text = Diff();
  EXPECT_THAT(text, testing::HasSubstr("table items: only in the second, 1000 rows of dim 3\n"));
  EXPECT_THAT(text, testing::HasSubstr("table users: only in the first, 1000 rows of dim 3\n"));
  EXPECT_THAT(text, testing::HasSubstr("2 of 2 tables do"));
}

}  // namespace
}  // namespace keelson
