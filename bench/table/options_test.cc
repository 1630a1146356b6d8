#include "bench/table/options.h"

#include <variant>
#include <vector>

#include "core/base/exit_code.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

std::variant<TableBenchOptions, int> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "table_bench");
  return ParseTableBenchOptions(static_cast<int>(flags.size()), flags.data());
}

TEST(TableBenchOptionsTest, QuickMeansFewRowsUnlessTheyAreGiven) {
  EXPECT_EQ(std::get<TableBenchOptions>(Parse({})).rows, 10'000'000u);
  EXPECT_TRUE(std::get<TableBenchOptions>(Parse({})).peers);
  EXPECT_EQ(std::get<TableBenchOptions>(Parse({"--quick"})).rows, 1'000'000u);
  EXPECT_EQ(std::get<TableBenchOptions>(Parse({"--quick"})).repeat, 3);
  const auto given =
      std::get<TableBenchOptions>(Parse({"--quick", "--rows=20000", "--repeat=2", "--alone"}));
  EXPECT_EQ(given.rows, 20'000u);
  EXPECT_EQ(given.repeat, 2);
  EXPECT_FALSE(given.peers);
}

TEST(TableBenchOptionsTest, OthersAreRefused) {
  for (const char* flag : {"--rows=5", "--repeat=0", "--unknown"}) {
    EXPECT_EQ(std::get<int>(Parse({flag})), kExitPermanent) << flag;
  }
  EXPECT_EQ(std::get<int>(Parse({"--help"})), 0);
}

}  // namespace
}  // namespace keelson::bench
