#include "cli/ckpt_tables.h"

#include <sstream>

#include "cli/ckpt_inspect.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class CkptTablesTest : public testing::Test {
 protected:
  CkptTablesTest() { WriteTables(FileSystem::Real(), prefix_, {UsersTable(1000)}, 2); }

  std::string Row(uint64_t id) {
    std::ostringstream out;
    EXPECT_EQ(ShowRow(prefix_, "users", id, &out), absl::OkStatus());
    return out.str();
  }

  const std::string prefix_ = JoinPath(FreshDirectory(), "model.ckpt-1");
};

TEST_F(CkptTablesTest, TablesAreListed) {
  std::ostringstream out;
  ASSERT_EQ(ShowSnapshot(prefix_, &out), absl::OkStatus());
  EXPECT_THAT(out.str(), HasSubstr("table users"));
  EXPECT_THAT(out.str(), HasSubstr("rows: 1000, dim 3, slots: Adagrad [3], Sum [1]"));
}

TEST_F(CkptTablesTest, ARowIsShown) {
  EXPECT_EQ(Row(2),
            "values     15 16 17\n"
            "Adagrad    18 19 20\n"
            "Sum        21\n"
            "last step  2, before 7 other steps\n"
            "updates    3\n");
  EXPECT_THAT(Row(~uint64_t{3}), HasSubstr("values     22 23 24\n"));
  EXPECT_THAT(Row(1), HasSubstr("initial values"));
  std::ostringstream out;
  EXPECT_EQ(ShowRow(prefix_, "items", 1, &out),
            absl::NotFoundError(prefix_ + ": no table 'items'"));
}

TEST_F(CkptTablesTest, VerifyReadsTheIds) {
  std::ostringstream out;
  EXPECT_TRUE(*VerifySnapshots(prefix_, &out)) << out.str();
  // Ids of one partition are said to be of its neighbour; all checksums are right.
  WriteTables(FileSystem::Real(), prefix_, {UsersTable(1000)}, 2, [](v1::ShardState* state) {
    auto& rows = *state->mutable_tables(0)->mutable_rows();
    rows[1] += rows[0];
    rows[0] = 0;
  });
  std::ostringstream damaged;
  EXPECT_FALSE(*VerifySnapshots(prefix_, &damaged));
  EXPECT_THAT(damaged.str(), HasSubstr("tensor 'users/keys': expected ascending ids of partition"));
}

}  // namespace
}  // namespace keelson
