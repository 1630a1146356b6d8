// The whole program, with few workers for a short time. What it measures there says nothing; that
// it measures everything does.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/job.h"
#include "tests/support/process.h"
#include "tests/support/program_run.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kHangLimit = absl::Seconds(240);

struct Measured {
  ProgramRun run;
  nlohmann::json report;
};

Measured RunChiefBench(std::vector<std::string> flags,
                       const std::map<std::string, std::string>& environment = {}) {
  const std::string json_path = JoinPath(FreshDirectory(), "report.json");
  for (const char* flag : {"--servers=2", "--workers=4", "--json="}) flags.push_back(flag);
  flags.back() += json_path;
  Measured measured;
  measured.run = RunProgram("chief_bench", flags, environment, kHangLimit);
  measured.report = nlohmann::json::parse(ReadFile(json_path).value_or(""), nullptr,
                                          /*allow_exceptions=*/false);
  return measured;
}

TEST(ChiefBenchSmokeTest, MeasuresBothModes) {
  const Measured measured = RunChiefBench({"--seconds=0.5", "--repeat=1", "--call_rate=100"});
  EXPECT_EQ(measured.run.exit_code, kExitDone) << measured.run.log;
  ASSERT_TRUE(measured.report.is_object()) << measured.run.log;
  const nlohmann::json result = measured.report["results"][0];
  EXPECT_EQ(result["workers"], 4);
  EXPECT_EQ(result["errors"].size(), 0) << result["errors"];
  const nlohmann::json async = result["asynchronous"];
  EXPECT_GT(async["acquire_work"]["p99_us"], 0);
  EXPECT_GT(async["calls"]["Heartbeat"]["answered"], 0);
  EXPECT_GT(async["memory"]["resident_bytes"], 0);
  EXPECT_GT(async["job_state_bytes"], 0);
  EXPECT_GT(result["synchronous"]["rounds"], 0);
  for (const char* title : {"for one call", "asynchronous mode", "Synchronous rounds"}) {
    EXPECT_TRUE(absl::StrContains(measured.run.log, title)) << title << "\n" << measured.run.log;
  }
}

TEST(ChiefBenchSmokeTest, MeasuresTheMemoryOfManyLives) {
  const Measured measured = RunChiefBench({"--life=2.5", "--lives=2"});
  EXPECT_EQ(measured.run.exit_code, kExitDone) << measured.run.log;
  ASSERT_TRUE(measured.report.is_object()) << measured.run.log;
  const nlohmann::json lives = measured.report["lives"][0];
  // The first four, and those that follow them.
  EXPECT_GT(lives["memberships"], 4) << lives;
  EXPECT_GT(lives["samples"].size(), 2);
  EXPECT_EQ(lives["errors"].size(), 0) << lives["errors"];
}

TEST(ChiefBenchSmokeTest, SaysWhyThereIsNoChief) {
  const Measured measured = RunChiefBench({"--chief=/bin/false"});
  EXPECT_NE(measured.run.exit_code, kExitDone);
  EXPECT_TRUE(absl::StrContains(measured.run.log, "the chief has exited with 1"))
      << measured.run.log;
}

TEST(ChiefBenchSmokeTest, SaysWhyThereIsNoTemporaryDirectory) {
  const Measured measured = RunChiefBench({}, {{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(measured.run.exit_code, kExitPermanent) << measured.run.log;
  EXPECT_TRUE(absl::StrContains(measured.run.log, "TMPDIR: expected a directory"))
      << measured.run.log;
}

TEST(ChiefBenchSmokeTest, SaysBeforeItMeasuresThatTheReportCannotBeWritten) {
  const std::string folder = FreshDirectory();
  for (const std::string& path : {folder, folder + "/missing/report.json"}) {
    const ProgramRun run = RunProgram("chief_bench", {"--json=" + path}, {}, kHangLimit);
    EXPECT_EQ(run.exit_code, kExitPermanent) << run.log;
    EXPECT_TRUE(absl::StrContains(run.log, "--json: ")) << run.log;
    EXPECT_EQ(std::count(run.log.begin(), run.log.end(), '\n'), 1) << run.log;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(ChiefBenchSmokeTest, LeavesNothingBehindWhenASignalEndsIt) {
  const std::string folder = FreshDirectory();
  const auto process =
      Process::Start({{ProgramPath("chief_bench"), "--servers=2", "--workers=4", "--seconds=600"},
                      {{"TMPDIR", folder}},
                      JoinPath(FreshDirectory(), "log")});
  ASSERT_TRUE(process.ok()) << process.status();
  // The workers have joined, so that a load is under way.
  const auto measures = [&] {
    for (const auto& made : std::filesystem::directory_iterator(folder)) {
      const std::string log = ReadFile((made.path() / "log").string()).value_or("");
      if (absl::StrContains(log, "worker-3")) return true;
    }
    return false;
  };
  EXPECT_TRUE(WaitUntil(measures, absl::Seconds(60))) << (*process)->Log();
  (*process)->Signal(SIGTERM);
  EXPECT_EQ((*process)->Wait(absl::Seconds(60)), kExitStopped) << (*process)->Log();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace keelson::bench
