// Jobs whose tasks start in any order, minutes apart, under names that the name service does not
// know yet, as Kubernetes has it; and the ends of such jobs.
#include <ostream>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/named_job.h"
#include "tests/support/private_names.h"

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int kSteps = 200;

// --- Order ---

struct Order {
  std::vector<Task> tasks;
};

std::string NameOf(const Order& order) {
  return absl::StrCat(RoleName(order.tasks.front().role), "First",
                      RoleName(order.tasks.back().role), "Last");
}

// How GoogleTest shows a case.
void PrintTo(const Order& order, std::ostream* out) { *out << NameOf(order); }

class StartOrderTest : public testing::TestWithParam<Order> {
 protected:
  void SetUp() override {
    if (!PrivateNames::Permitted()) GTEST_SKIP() << "no mount namespaces here";
  }
};

// Each task runs, and has looked for its peers, before the next one has a name.
TEST_P(StartOrderTest, DoesNotMatter) {
  NamedJob named({.workers = 1}, JobConfig(kSteps));
  for (const Task& task : GetParam().tasks) {
    named.StartPublished(task);
    named.job().WaitForLog(task, "role=" + task.ToString());
  }
  named.ExpectFinished(kSteps);
}

INSTANTIATE_TEST_SUITE_P(
    Orders, StartOrderTest,
    testing::Values(Order{{PsTask(1), PsTask(0), kChiefTask, WorkerTask(0), kEvaluatorTask}},
                    Order{{kChiefTask, kEvaluatorTask, WorkerTask(0), PsTask(0), PsTask(1)}},
                    Order{{WorkerTask(0), PsTask(0), kEvaluatorTask, PsTask(1), kChiefTask}},
                    Order{{kEvaluatorTask, kChiefTask, PsTask(1), PsTask(0), WorkerTask(0)}}),
    [](const auto& info) { return NameOf(info.param); });

// --- Patience ---

class LatePeersTest : public StartOrderTest {};

// Waits until the task has logged this often which tasks it waits for, which it does every 30 s.
void WaitForWarnings(Job* job, const Task& task, const std::string& text, int times) {
  const auto warnings = [&] {
    int count = 0;
    for (const absl::string_view line : absl::StrSplit(job->Log(task), '\n')) {
      count += absl::StartsWith(line, "W ") && absl::StrContains(line, text) ? 1 : 0;
    }
    return count;
  };
  EXPECT_TRUE(WaitUntil([&] { return warnings() >= times; }, absl::Seconds(120))) << text << "\n"
                                                                                  << job->Log(task);
}

TEST_F(LatePeersTest, AreWaitedForAndNamed) {
  NamedJob named({}, JobConfig(kSteps));
  Job& job = named.job();
  // Without names as yet: the chief cannot find the one, the others cannot find the chief.
  named.Start(PsTask(0));
  named.Start(kChiefTask);
  // A name without anybody there.
  named.Publish(PsTask(1));
  named.StartPublished(WorkerTask(0));
  named.StartPublished(kEvaluatorTask);
  WaitForWarnings(&job, kChiefTask, "still waiting for ps-0 at mnist-ps-0.ns.svc:", 2);
  WaitForWarnings(&job, kChiefTask, "ps-1 at mnist-ps-1.ns.svc:", 2);
  WaitForWarnings(&job, WorkerTask(0), "waiting for the chief", 2);
  WaitForWarnings(&job, kEvaluatorTask, "waiting for the chief", 2);
  for (const Task& task : {PsTask(0), kChiefTask}) named.Publish(task);
  for (const Task& task : {PsTask(1), WorkerTask(1)}) named.StartPublished(task);
  named.ExpectFinished(kSteps);
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on"));
}

// --- The end ---

class JobEndTest : public StartOrderTest {};

TEST_F(JobEndTest, EverybodyFollowsTheChiefAndStaysDone) {
  NamedJob named({}, JobConfig(kSteps));
  Job& job = named.job();
  const std::vector<Task> all = {PsTask(0),     PsTask(1),     kChiefTask,
                                 WorkerTask(0), WorkerTask(1), kEvaluatorTask};
  for (const Task& task : all) named.StartPublished(task);
  named.ExpectFinished(kSteps);
  const absl::Time end = job.process(kChiefTask).ended_at();
  for (const Task& task : all) {
    EXPECT_LT(job.process(task).ended_at() - end, absl::Seconds(10)) << task.ToString();
  }
  // A worker whose pod is recreated finds none of the others, whatever the names resolve to.
  const std::string final_model = absl::StrCat(job.model_dir(), "/model.ckpt-", kSteps);
  const auto before = ReadModelValues(final_model);
  named.Move(WorkerTask(1));
  named.StartPublished(WorkerTask(1));
  named.ExpectFinished(kSteps);
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr(absl::StrCat("done at step ", kSteps)));
  EXPECT_THAT(job.Log(WorkerTask(1)), Not(HasSubstr("training on")));
  const auto after = ReadModelValues(final_model);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  EXPECT_TRUE(*before == *after);
}

// --- Without an operator ---

// An Indexed Job for each role tells a pod no more than its index.
TEST(IndexedJobTest, RunsWithoutTfConfig) {
  Job job({}, JobConfig(kSteps));
  const ReservedPorts ports(1);
  // As many addresses as wanted, for loopback has a whole network; the port is this job's alone.
  const auto hosts = [&](const char* flag, const char* pattern) {
    return absl::StrCat("--", flag, "_hosts=127.", ports[0] / 256, ".", ports[0] % 256, ".",
                        pattern, ":", ports[0]);
  };
  for (const std::string& flag : {hosts("chief", "1"), hosts("evaluator", "{2..2}"),
                                  hosts("ps", "{10..11}"), hosts("worker", "{20..21}")}) {
    job.AddFlag(flag);
  }
  for (const Role role : {Role::kWorker, Role::kPs, Role::kChief, Role::kEvaluator}) {
    for (const Task& task : job.TasksOf(role)) {
      const std::string program = role == Role::kPs ? "ps_server" : std::string(RoleName(role));
      job.UseProgram(task, program, {{"JOB_COMPLETION_INDEX", absl::StrCat(task.index)}});
      job.Start(task, {}, "");
    }
  }
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
  EXPECT_THAT(job.Log(PsTask(1)), HasSubstr("role=ps-1 world: chief=1 ps=2 worker=2"));
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr("role=worker-1 world: chief=1 ps=2 worker=2"));
}

// --- What others read ---

// Katib's collector takes every "name=value" of the output; an empty value is an error to it.
// Source: katib pkg/metricscollector/v1beta1/common/const.go (DefaultFilter).
TEST(KatibTest, FindsTheChiefsMetrics) {
  Job job({.ps = 1, .workers = 1}, JobConfig(kSteps));
  job.StartAll();
  job.ExpectAllDone();
  const std::regex filter(R"(([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?))");
  int losses = 0;
  const std::string log = job.Log(kChiefTask);
  for (std::sregex_iterator match(log.begin(), log.end(), filter), end; match != end; ++match) {
    if ((*match)[1] != "loss" && (*match)[1] != "accuracy") continue;
    EXPECT_NE((*match)[2], "") << match->str();
    losses += (*match)[1] == "loss" ? 1 : 0;
  }
  EXPECT_GE(losses, kSteps / 10);
}

}  // namespace
}  // namespace keelson
