// Evaluators of real jobs: they end the training, share the work, export models; and one shows the
// runs when all is over.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/http/http_testing.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr int kScoredSteps = 300;
constexpr Task kSecondEvaluator = {Role::kEvaluator, 1};

// With further fields of the evaluation.
std::string ConfigWith(int max_steps, const std::string& evaluation) {
  return absl::StrReplaceAll(JobConfig(max_steps),
                             {{"evaluation {", absl::StrCat("evaluation { ", evaluation)}});
}

std::vector<int64_t> EvaluatedSteps(const std::string& model_dir) {
  std::vector<int64_t> steps;
  const auto evaluations = ReadEvaluations(model_dir);
  EXPECT_TRUE(evaluations.ok()) << evaluations.status();
  if (!evaluations.ok()) return steps;
  for (const EvaluationLine& evaluation : *evaluations) steps.push_back(evaluation.step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> Exported(const Job& job, const std::string& kind) {
  const auto names = ListDirectory(absl::StrCat(job.model_dir(), "/export/", kind));
  EXPECT_TRUE(names.ok()) << names.status();
  return names.value_or(std::vector<std::string>());
}

int CountOf(const std::string& log, const std::string& text) {
  int count = 0;
  for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
  return count;
}

int PortOf(const std::string& log) {
  const std::string text = "dashboard on port ";
  const size_t begin = log.find(text);
  int port = 0;
  if (begin == std::string::npos) return 0;
  const std::string rest = log.substr(begin + text.size());
  EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find('\n')), &port)) << rest;
  return port;
}

json Get(int port, const std::string& target) {
  const absl::StatusOr<HttpAnswer> answer = AskHttp(port, "GET", target);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return nullptr;
  EXPECT_EQ(answer->status, 200) << target << "\n" << answer->body;
  return json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
}

TEST(EvaluatorE2eTest, EarlyStoppingEndsTheJob) {
  // No evaluation is so much better than the first one.
  const std::string config =
      ConfigWith(kEndless,
                 "early_stopping { metric: \"loss\" patience: 2 min_delta: 1000 } "
                 "exporters { final_snapshot {} } "
                 "exporters { best { metric: \"accuracy\" keep: 2 } } metrics { accuracy {} }");
  Job job({.ps = 1, .workers = 2}, config);
  job.StartAll();
  job.ExpectAllDone();
  const int64_t step = DoneStep(job.model_dir()).value_or(-1);
  ASSERT_GT(step, 0);
  EXPECT_LT(step, kEndless);
  const std::string reason = "early stopping: loss has not become better than ";
  EXPECT_THAT(job.Log(kEvaluatorTask), HasSubstr(reason));
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr(absl::StrCat("ended early at step ", step, " of ",
                                                          kEndless, ": ", reason)));
  EXPECT_THAT(EvaluatedSteps(job.model_dir()), Contains(step)) << "the final snapshot is scored";
  EXPECT_THAT(Exported(job, "final"), ElementsAre(absl::StrCat(step)));
  EXPECT_THAT(Exported(job, "best"), SizeIs(2));
  const auto exported = VerifiedLatestStep(absl::StrCat(job.model_dir(), "/export/final/", step));
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(*exported, step);
}

TEST(EvaluatorE2eTest, TwoShareTheSnapshotsOfAJob) {
  Job job({.ps = 1, .workers = 2, .evaluator = Job::Evaluator::kUnlisted}, JobConfig(2000));
  for (const Task& task : {kChiefTask, PsTask(0), kEvaluatorTask}) job.Start(task);
  // Each has something to score while the other one is not there.
  job.WaitForLog(kEvaluatorTask, " examples in ");
  job.process(kEvaluatorTask).Signal(SIGSTOP);
  for (const Task& task : {WorkerTask(0), WorkerTask(1), kSecondEvaluator}) job.Start(task);
  job.WaitForLog(kSecondEvaluator, " examples in ");
  job.process(kEvaluatorTask).Signal(SIGCONT);
  job.ExpectAllDone();
  const std::vector<int64_t> steps = EvaluatedSteps(job.model_dir());
  EXPECT_THAT(steps, Contains(2000));
  EXPECT_EQ(std::set<int64_t>(steps.begin(), steps.end()).size(), steps.size());
  const std::string first = job.Log(kEvaluatorTask);
  const std::string second = job.Log(kSecondEvaluator);
  // Each has scored some, and the first has read the second's evaluations.
  const int by_second = CountOf(second, " examples in ");
  const int heard = CountOf(first, "scored by another evaluator: step ");
  EXPECT_GT(by_second, 0);
  EXPECT_EQ(heard, by_second);
  EXPECT_EQ(CountOf(first, " examples in "), static_cast<int>(steps.size()));
  EXPECT_GT(static_cast<int>(steps.size()), by_second);
  for (const std::string& log : {first, second}) EXPECT_THAT(ErrorLines(log), IsEmpty());
}

TEST(EvaluatorE2eTest, AKilledEvaluatorsWorkIsDoneByTheOther) {
  Job job({.ps = 1, .workers = 2, .evaluator = Job::Evaluator::kUnlisted}, JobConfig(3000));
  job.StartAll();
  job.Start(kSecondEvaluator);
  job.WaitForLog(kSecondEvaluator, " examples in ", 2);
  job.Kill(kSecondEvaluator);
  job.ExpectAllDoneBut({kSecondEvaluator});
  EXPECT_THAT(EvaluatedSteps(job.model_dir()), Contains(3000));
}

TEST(EvaluatorE2eTest, AThrottledJobScoresTheFinalSnapshot) {
  Job job({.ps = 1, .workers = 1},
          ConfigWith(kScoredSteps,
                     "start_delay_seconds: 3600 throttle_seconds: 3600 steps: 1 batch_size: 50"));
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(EvaluatedSteps(job.model_dir()), ElementsAre(kScoredSteps));
  const auto evaluations = ReadEvaluations(job.model_dir());
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_THAT(*evaluations, SizeIs(1));
  EXPECT_THAT(evaluations->back().metrics, Contains(Pair("examples", 50)));
}

TEST(EvaluatorE2eTest, TheRunIsShownAfterItsEnd) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kScoredSteps));
  job.StartAll();
  job.ExpectAllDone();
  const auto evaluations = ReadEvaluations(job.model_dir());
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  const std::string directory = FreshDirectory();
  const std::string log_path = directory + "/serve.log";
  std::filesystem::copy(job.model_dir(), directory + "/copy",
                        std::filesystem::copy_options::recursive);
  auto server =
      Process::Start({{ProgramOf(Role::kEvaluator), "--serve_only", "--dashboard_port=0",
                       "--model_dir=" + job.model_dir(), "--runs=again=" + directory + "/copy"},
                      {},
                      log_path});
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE(WaitUntil([&] { return PortOf((*server)->Log()) != 0; }, absl::Seconds(60)));
  const int port = PortOf((*server)->Log());
  ASSERT_TRUE(
      WaitUntil([&] { return Get(port, "/api/v1/runs/model").value("state", "") == "done"; },
                absl::Seconds(60)));
  const json runs = Get(port, "/api/v1/runs");
  ASSERT_EQ(runs.at("runs").size(), 2u);
  EXPECT_EQ(runs.at("read_only"), true);
  EXPECT_EQ(runs.at("runs").at(0).at("live"), false);
  EXPECT_EQ(runs.at("runs").at(1).at("id"), "again");
  ASSERT_TRUE(WaitUntil(
      [&] {
        const json answer = Get(port, "/api/v1/runs/model/series/data?name=eval/loss&points=20000");
        return answer.at("series").at(0).at("step").size() == evaluations->size();
      },
      absl::Seconds(60)));
  const json answer = Get(port, "/api/v1/runs/model/series/data?name=eval/loss&points=20000");
  EXPECT_EQ(answer.at("series").at(0).at("value").back(), evaluations->back().metrics.at("loss"));
  EXPECT_EQ(Get(port, "/api/v1/runs/model/report").at("step"), kScoredSteps);
  const json cluster = Get(port, "/api/v1/runs/model/cluster");
  std::set<std::string> tasks;
  for (const json& task : cluster.at("tasks")) tasks.insert(task.at("task").get<std::string>());
  for (const char* task : {"chief-0", "ps-0", "worker-0", "evaluator-0"}) {
    EXPECT_THAT(tasks, Contains(task));
  }
  (*server)->Signal(SIGTERM);
  EXPECT_EQ((*server)->Wait(absl::Seconds(60)), 0) << (*server)->Log();
  EXPECT_THAT(ErrorLines((*server)->Log()), IsEmpty());
}

// What the dashboard's cluster says of a task; null: nothing.
json TaskShown(int port, const std::string& name) {
  const json cluster = Get(port, "/api/v1/runs/model/cluster");
  if (!cluster.is_object()) return nullptr;
  for (const json& task : cluster.at("tasks")) {
    if (task.at("task") == name) return task;
  }
  return nullptr;
}

TEST(EvaluatorE2eTest, ARestartOfTheEvaluatorShows) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kEndless));
  job.AddFlag(Role::kEvaluator, "--dashboard_port=0");
  job.StartAll();
  job.WaitForLog(kEvaluatorTask, " examples in ");
  job.Kill(kEvaluatorTask);
  job.Start(kEvaluatorTask);
  job.WaitForLog(kEvaluatorTask, "dashboard on port ");
  const int port = PortOf(job.Log(kEvaluatorTask));
  EXPECT_TRUE(WaitUntil(
      [&] {
        const json task = TaskShown(port, "evaluator-0");
        return task.is_object() && task.value("state", "") == "alive" &&
               task.value("restarts", 0) == 1 && !task.value("device", "").empty();
      },
      absl::Seconds(60)))
      << TaskShown(port, "evaluator-0");
}

TEST(EvaluatorE2eTest, AJobInOneProcessShowsItself) {
  const std::string directory = FreshDirectory();
  const std::string config = directory + "/config.textproto";
  ASSERT_TRUE(WriteFileAtomically(config, JobConfig(kEndless)).ok());
  auto chief = Process::Start(
      {{ProgramOf(Role::kChief), "--config=" + config, "--model_dir=" + directory + "/model",
        "--device=cpu", "--compute_threads=1", "--dashboard_port=0"},
       {},
       directory + "/chief.log"});
  ASSERT_TRUE(chief.ok()) << chief.status();
  ASSERT_TRUE(WaitUntil([&] { return PortOf((*chief)->Log()) != 0; }, absl::Seconds(60)));
  const int port = PortOf((*chief)->Log());
  ASSERT_TRUE(WaitUntil(
      [&] {
        const json run = Get(port, "/api/v1/runs/model");
        return run.value("state", "") == "running" && run.value("step", 0) > 0;
      },
      absl::Seconds(60)));
  EXPECT_EQ(Get(port, "/api/v1/runs").at("runs").at(0).at("live"), true);
  (*chief)->Signal(SIGTERM);
  EXPECT_EQ((*chief)->Wait(absl::Seconds(60)), 143) << (*chief)->Log();
}

TEST(EvaluatorE2eTest, TheChiefOfAClusterHasNoDashboard) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kScoredSteps));
  job.Start(kChiefTask, {"--dashboard_port=0"});
  job.ExpectExit(kChiefTask, 2);
  EXPECT_THAT(ErrorLines(job.Log(kChiefTask)),
              ElementsAre(HasSubstr("--dashboard_port: expected no cluster")));
}

TEST(EvaluatorE2eTest, ATaskThatIsNoChiefIsNamed) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kScoredSteps));
  job.Start(PsTask(0));
  job.WaitForLog(PsTask(0), "listening");
  const std::string address = job.Address(PsTask(0));
  std::vector<std::string> flags = job.FlagsOf(Role::kEvaluator);
  flags.push_back("--chief_hosts=" + address);
  flags.push_back("--ps_hosts=" + job.Address(kChiefTask));
  flags.push_back("--worker_hosts=" + job.Address(WorkerTask(0)));
  ExpectOneError(RunProgram(Role::kEvaluator, flags), 2, {address, "is not a chief"});
}

TEST(EvaluatorE2eTest, FlagsThatMakeNoSenseTogether) {
  const std::string run = "--runs=" + FreshDirectory();
  ExpectOneError(RunProgram(Role::kEvaluator, {run}), 2,
                 {"--runs: expected together with --dashboard_port", "see --help"});
  ExpectOneError(RunProgram(Role::kEvaluator, {"--serve_only"}), 2,
                 {"--serve_only: expected --model_dir or --runs, found neither"});
  ExpectOneError(RunProgram(Role::kEvaluator, {"--serve_only", run, "--batch_size=3"}), 2,
                 {"--batch_size: expected without --serve_only", "see --help"});
  ExpectOneError(RunProgram(Role::kEvaluator,
                            {"--serve_only", "--model_dir=/no/such/run", "--dashboard_port=0"}),
                 2, {"/no/such/run"});
  ExpectOneError(RunProgram(Role::kEvaluator, {"--serve_only", run, "--dashboard_port=0",
                                               "--dashboard_address=here"}),
                 2, {"--dashboard_address: expected an address such as 127.0.0.1", "found here"});
  ExpectOneError(RunProgram(Role::kChief, {"--dashboard_address=127.0.0.1"}), 2,
                 {"--dashboard_address requires --dashboard_port", "see --help"});
}

}  // namespace
}  // namespace keelson
