// The whole measurement of tables, with few rows for a short time. What it finds says nothing; that
// it finds everything does.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "bench/rows/row_roles.h"
#include "bench/rows/row_scenario.h"
#include "core/base/exit_code.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/program_run.h"

namespace keelson::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kHangLimit = absl::Seconds(240);

TEST(RowBenchSmokeTest, MeasuresEverything) {
  const std::string directory = FreshDirectory();
  const ProgramRun run = RunProgram("ps_bench",
                                    {"--quick", "--repeat=1", "--seconds=0.02", "rows",
                                     "--rows=52000", "--directory=" + directory},
                                    {}, kHangLimit);
  ASSERT_EQ(run.exit_code, kExitDone) << run.log;
  std::vector<std::string> texts = {"Bytes of a row", "Training while", "Rows that expire",
                                    "server with rows"};
  for (const RowScenario& scenario : RowScenarios()) texts.push_back(scenario.Text());
  for (const std::string& text : texts) EXPECT_THAT(run.log, HasSubstr(text));
  // 26 fields of 2000 rows: all of them are in the snapshot.
  EXPECT_THAT(run.log, HasSubstr("\n52000 "));
  EXPECT_EQ(absl::StrContains(run.log, "without Redis"), !RedisIsInstalled()) << run.log;
  EXPECT_THAT(*FileSystem::Real()->List(directory), IsEmpty());
}

TEST(RowBenchSmokeTest, ScenariosAreChosenByName) {
  const ProgramRun run =
      RunProgram("ps_bench",
                 {"--quick", "--repeat=1", "--seconds=0.02", "--scenarios=rows-p*", "rows",
                  "--rows=5200", "--without_redis"},
                 {}, kHangLimit);
  ASSERT_EQ(run.exit_code, kExitDone) << run.log;
  EXPECT_THAT(run.log, HasSubstr("rows-pull"));
  EXPECT_THAT(run.log, HasSubstr("rows-push"));
  EXPECT_THAT(run.log, Not(HasSubstr("rows-fused")));
  EXPECT_THAT(run.log, Not(HasSubstr("snapshots")));
}

}  // namespace
}  // namespace keelson::bench
