// The whole program, with few workers for a short time. What it measures there says nothing; that
// it measures everything does.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kHangLimit = absl::Seconds(240);

struct Outcome {
  int exit_code = -1;
  std::string output;
  nlohmann::json report;
};

Outcome RunChiefBench(const std::vector<std::string>& flags,
                      const std::map<std::string, std::string>& environment = {}) {
  const char* const folder = std::getenv("KEELSON_BINARY_DIR");
  EXPECT_NE(folder, nullptr) << "KEELSON_BINARY_DIR: expected the folder of the programs";
  const std::string directory = FreshDirectory();
  const std::string json_path = JoinPath(directory, "report.json");
  Process::Command command;
  command.argv = {JoinPath(folder == nullptr ? "." : folder, "chief_bench"), "--servers=2",
                  "--workers=4", absl::StrCat("--json=", json_path)};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  command.environment = environment;
  command.log_path = JoinPath(directory, "log");
  const auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return {};
  Outcome outcome;
  outcome.exit_code = (*process)->Wait(kHangLimit).value_or(-1);
  outcome.output = (*process)->Log();
  outcome.report = nlohmann::json::parse(ReadFile(json_path).value_or(""), nullptr,
                                         /*allow_exceptions=*/false);
  return outcome;
}

TEST(ChiefBenchSmokeTest, MeasuresBothModes) {
  const Outcome outcome = RunChiefBench({"--seconds=0.5", "--repeat=1", "--call_rate=100"});
  EXPECT_EQ(outcome.exit_code, kExitDone) << outcome.output;
  ASSERT_TRUE(outcome.report.is_object()) << outcome.output;
  const nlohmann::json result = outcome.report["results"][0];
  EXPECT_EQ(result["workers"], 4);
  EXPECT_EQ(result["errors"].size(), 0) << result["errors"];
  const nlohmann::json async = result["asynchronous"];
  EXPECT_GT(async["acquire_work"]["p99_us"], 0);
  EXPECT_GT(async["calls"]["Heartbeat"]["answered"], 0);
  EXPECT_GT(async["memory"]["resident_bytes"], 0);
  EXPECT_GT(async["job_state_bytes"], 0);
  EXPECT_GT(result["synchronous"]["rounds"], 0);
  for (const char* title : {"for one call", "asynchronous mode", "Synchronous rounds"}) {
    EXPECT_TRUE(absl::StrContains(outcome.output, title)) << title << "\n" << outcome.output;
  }
}

TEST(ChiefBenchSmokeTest, MeasuresTheMemoryOfManyLives) {
  const Outcome outcome = RunChiefBench({"--life=2.5", "--lives=2"});
  EXPECT_EQ(outcome.exit_code, kExitDone) << outcome.output;
  ASSERT_TRUE(outcome.report.is_object()) << outcome.output;
  const nlohmann::json lives = outcome.report["lives"][0];
  // The first four, and those that follow them.
  EXPECT_GT(lives["memberships"], 4) << lives;
  EXPECT_GT(lives["samples"].size(), 2);
  EXPECT_EQ(lives["errors"].size(), 0) << lives["errors"];
}

TEST(ChiefBenchSmokeTest, SaysWhyThereIsNoChief) {
  const Outcome outcome = RunChiefBench({"--chief=/bin/false"});
  EXPECT_NE(outcome.exit_code, kExitDone);
  EXPECT_TRUE(absl::StrContains(outcome.output, "the chief has exited with 1")) << outcome.output;
}

TEST(ChiefBenchSmokeTest, SaysWhyThereIsNoTemporaryDirectory) {
  const Outcome outcome = RunChiefBench({}, {{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(outcome.exit_code, kExitPermanent) << outcome.output;
  EXPECT_TRUE(absl::StrContains(outcome.output, "TMPDIR: expected a directory")) << outcome.output;
}

}  // namespace
}  // namespace keelson::bench
