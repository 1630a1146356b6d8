// Jobs of real programs without parameter servers: every task that trains hosts a shard.
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "tests/e2e/collective_testing.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using Json = nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kSteps = 120;

// Of each shard in placement.json.
std::vector<std::string> HostsOf(const Json& shards) {
  std::vector<std::string> hosts;
  for (const Json& shard : shards) hosts.push_back(shard.value("host", "none"));
  return hosts;
}

TEST(CollectiveTest, ChiefAndWorkersTrainAndTheEvaluatorScores) {
  CollectiveJob job(kSteps, /*chief=*/true, Job::Evaluator::kListed);
  job.StartAll();
  job.ExpectAllDone();
  job.ExpectTrained(kSteps);
  const auto evaluations = ReadEvaluations(job.model_dir());
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_FALSE(evaluations->empty());
  EXPECT_EQ(evaluations->back().step, kSteps);
  for (const Task& task : job.Trainers()) {
    EXPECT_THAT(job.Log(task), HasSubstr("without servers, from TF_CONFIG, led by chief-0"));
    EXPECT_THAT(job.Log(task), HasSubstr("training on cpu"));
    EXPECT_THAT(ErrorLines(job.Log(task)), IsEmpty());
  }
}

TEST(CollectiveTest, TheFilesOfTheRunNameTheHostsOfTheShards) {
  CollectiveJob job(kSteps);
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(HostsOf(job.ReadJson("placement.json").at("shards")),
              ElementsAre("chief-0", "worker-0", "worker-1"));
  const std::string status = job.ReadJson("status.json").dump();
  for (const Task& task : job.Trainers()) {
    EXPECT_THAT(status, HasSubstr(absl::StrCat(R"("host":")", task.ToString(), R"(")")));
  }
}

TEST(CollectiveTest, WorkerZeroLeadsWorkersAlone) {
  CollectiveJob job(kSteps, /*chief=*/false);
  job.StartAll();
  job.ExpectAllDone();
  job.ExpectTrained(kSteps);
  EXPECT_THAT(HostsOf(job.ReadJson("placement.json").at("shards")),
              ElementsAre("worker-0", "worker-1"));
}

// Users start one command for all tasks.
TEST(CollectiveTest, TheWorkersProgramIsTheChief) {
  CollectiveJob job(kSteps);
  job.UseProgram(kChiefTask, "worker");
  job.StartAll();
  job.ExpectAllDone();
  job.ExpectTrained(kSteps);
}

TEST(CollectiveTest, StoppedAtOnceAndStartedAgainItLosesNoStep) {
  CollectiveJob job(kLongSteps);
  job.StartAll();
  job.WaitForStep(job.leader(), 110);
  for (const Task& task : job.Trainers()) job.process(task).Signal(SIGTERM);
  for (const Task& task : job.Trainers()) job.ExpectExit(task, kExitStopped);
  const int64_t step = *VerifiedLatestStep(job.model_dir());
  EXPECT_GE(step, 110);
  EXPECT_THAT(job.Log(job.leader()),
              HasSubstr(absl::StrCat("stopped: by a signal at step ", step)));
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(job.leader()), HasSubstr(absl::StrCat("model.ckpt-", step, ": step ", step)));
  job.ExpectTrained(kLongSteps);
}

// As when its node is drained. No snapshot has what its shard holds, and two hosts have no
// replicas.
TEST(CollectiveTest, AWorkerThatIsStoppedAloneHandsItsShardOver) {
  // It leaves within two seconds: the job must take longer.
  constexpr int kManySteps = 3000;
  const std::string config = absl::StrReplaceAll(
      JobConfig(kManySteps),
      {{"save_steps: 100", "save_steps: 100000"}, {"batch_size: 32", "batch_size: 240"}});
  CollectiveJob job(config, /*chief=*/false, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForStep(job.leader(), 50);
  job.process(WorkerTask(1)).Signal(SIGTERM);
  job.ExpectExit(WorkerTask(1), kExitStopped);
  EXPECT_THAT(job.Log(job.leader()),
              HasSubstr("shard-1 of worker-1 is from now on shard-1 of worker-0"));
  job.ExpectAllDoneBut({WorkerTask(1)});
  job.ExpectTrained(kManySteps);
  EXPECT_THAT(job.Log(job.leader()), Not(HasSubstr("restored from")));
}

TEST(CollectiveTest, AKilledWorkerWithoutReplicaIsRestored) {
  CollectiveJob job(kLongSteps, /*chief=*/false);
  job.AddFlag(Role::kWorker, "--lease=3");
  job.StartAll();
  job.WaitForStep(job.leader(), 110);
  job.Kill(WorkerTask(1));
  job.Start(WorkerTask(1));
  job.ExpectAllDone();
  job.ExpectTrained(kLongSteps);
  EXPECT_THAT(job.Log(job.leader()),
              ContainsRegex("shard-1 of worker-1 has been restarted and restored from "
                            ".*: lost (steps [0-9]+ to [0-9]+|no step) of its shard"));
}

TEST(CollectiveTest, AKilledLeadingWorkerComesBack) {
  CollectiveJob job(kLongSteps, /*chief=*/false);
  job.StartAll();
  job.WaitForStep(job.leader(), 110);
  job.Kill(job.leader());
  job.Start(job.leader());
  job.ExpectAllDone();
  job.ExpectTrained(kLongSteps);
  EXPECT_THAT(job.Log(job.leader()), HasSubstr("adopting the running job at step "));
  EXPECT_THAT(job.Log(job.leader()),
              HasSubstr("shard-0 of worker-0 has been restarted and restored from "));
}

TEST(CollectiveTest, AKilledWorkerTakesNothingWithIt) {
  CollectiveJob job(EvenConfig(), /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(job.leader(), "has a replica", 3);
  job.WaitForStep(job.leader(), 50);
  job.Kill(WorkerTask(1));
  job.WaitForLog(job.leader(), "lost worker-1");
  job.ExpectAllDoneBut({WorkerTask(1)});
  EXPECT_THAT(job.Log(job.leader()),
              HasSubstr("shard-2 of worker-1 is from now on shard-2 of chief-0"));
  ExpectNothingLost(job);
}

TEST(CollectiveTest, AWorkerThatComesBackHasItsShardAgain) {
  CollectiveJob job(EvenConfig(), /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(job.leader(), "has a replica", 3);
  job.WaitForStep(job.leader(), 50);
  job.Kill(WorkerTask(1));
  job.WaitForLog(job.leader(), "shard-2 of worker-1 is from now on shard-2 of chief-0");
  job.Start(WorkerTask(1));
  job.WaitForLog(job.leader(), "shard-2 of chief-0 is from now on shard-2 of worker-1");
  job.ExpectAllDone();
  ExpectNothingLost(job);
}

// A shard whose replica is gone, too, has the newest snapshot alone.
TEST(CollectiveTest, NeighboursThatAreKilledAtOnceCostStepsOfOneShard) {
  CollectiveJob job(kLongSteps);
  job.StartAll();
  job.WaitForLog(job.leader(), "has a replica", 3);
  job.WaitForStep(job.leader(), 110);
  for (const int worker : {0, 1}) job.Kill(WorkerTask(worker));
  job.WaitForLog(job.leader(), "shard-2 of worker-1 is from now on shard-2 of chief-0");
  for (const int worker : {0, 1}) job.Start(WorkerTask(worker));
  job.ExpectAllDone();
  job.ExpectTrained(kLongSteps);
  EXPECT_THAT(job.Log(job.leader()),
              HasSubstr("shard-1 of worker-0 has been restarted and restored from "));
  EXPECT_THAT(job.Log(job.leader()), Not(HasSubstr("shard-2 of worker-1 has been restarted")));
}

TEST(CollectiveTest, AKilledChiefTakesNothingWithIt) {
  CollectiveJob job(EvenConfig(), /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(job.leader(), "has a replica", 3);
  job.WaitForStep(job.leader(), 50);
  job.Kill(job.leader());
  job.Start(job.leader());
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(job.leader()), HasSubstr("adopting the running job at step "));
  ExpectNothingLost(job);
}

// A job of a chief and up to three workers. Those that run do not hear of a change: a process knows
// the cluster of the time at which it was started.
class ScaledJob : public CollectiveJob {
 public:
  explicit ScaledJob(const std::string& config)
      : CollectiveJob(config, /*chief=*/true, Evaluator::kNone, /*workers=*/3) {}

  // Starts the task in a cluster of so many workers.
  void StartIn(int workers, const Task& task) {
    Json tf_config = Json::parse(TfConfig(task));
    Json& listed = tf_config["cluster"]["worker"];
    while (listed.size() > static_cast<size_t>(workers)) listed.erase(listed.size() - 1);
    Start(task, {}, tf_config.dump());
  }
  void Stop(const Task& task) {
    process(task).Signal(SIGTERM);
    ExpectExit(task, kExitStopped);
  }
  // The chief and so many workers.
  void StartAllIn(int workers) {
    StartIn(workers, kChiefTask);
    for (int worker = 0; worker < workers; ++worker) StartIn(workers, WorkerTask(worker));
  }
  void EndAllIn(int workers, int signal) {
    std::vector<Task> tasks = {kChiefTask};
    for (int worker = 0; worker < workers; ++worker) tasks.push_back(WorkerTask(worker));
    for (const Task& task : tasks) process(task).Signal(signal);
    for (const Task& task : tasks) process(task).Wait(absl::Seconds(60));
  }
};

TEST(CollectiveTest, ScaledWhileItTrainsItLosesNothing) {
  const std::string config = SlowConfig(/*steps=*/2000);
  ScaledJob job(config);
  // Two processes, each the home of a shard.
  job.StartIn(1, kChiefTask);
  job.StartIn(1, WorkerTask(0));
  job.WaitForStep(kChiefTask, 30);
  // Four.
  job.StartIn(3, WorkerTask(1));
  job.StartIn(3, WorkerTask(2));
  for (const int worker : {1, 2}) {
    job.WaitForLog(kChiefTask, absl::StrCat("worker-", worker, " joined"));
  }
  // One.
  for (const int worker : {2, 1, 0}) job.Stop(WorkerTask(worker));
  EXPECT_THAT(job.Log(kChiefTask),
              HasSubstr("shard-1 of worker-0 is from now on shard-1 of chief-0"));
  const int64_t alone_at = LastReportedStep(job.Log(kChiefTask));
  job.WaitForStep(kChiefTask, alone_at + 20);
  // Three.
  job.StartIn(2, WorkerTask(0));
  job.StartIn(2, WorkerTask(1));
  job.WaitForLog(kChiefTask, "shard-1 of chief-0 is from now on shard-1 of worker-0");
  job.ExpectAllDoneBut({WorkerTask(2)});
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr("training on cpu"));
  ExpectNothingLost(job, config, /*workers=*/1);
}

// The job is ended and started again with other processes, once killed and once asked to stop.
TEST(CollectiveTest, EpochsStayWhatTheyWereWithAnotherNumberOfProcesses) {
  constexpr int kEpochs = 100;
  const std::string config = absl::StrReplaceAll(
      EvenConfig(kEpochs),
      {{"max_steps:", "epochs:"}, {"learning_rate {", "learning_rate { cosine {}"}});
  for (const auto& [before, after] : {std::pair(3, 1), std::pair(1, 3)}) {
    ScaledJob job(config);
    job.StartAllIn(before);
    // A job without a step in any snapshot would begin anew.
    job.WaitForLog(kChiefTask, "snapshot of step ", 2);
    job.EndAllIn(before, before > after ? SIGTERM : SIGKILL);
    job.StartAllIn(after);
    std::vector<Task> gone;
    for (int worker = after; worker < 3; ++worker) gone.push_back(WorkerTask(worker));
    job.ExpectAllDoneBut(gone);
    // Of 960 records a step has as many batches of 32 as it had at first.
    const int batches = before + 1;
    job.ExpectTrained(kEpochs * ((30 + batches - 1) / batches));
    EXPECT_THAT(job.Log(kChiefTask), HasSubstr(absl::StrCat("consistency mode: sync:", batches)));
    const nlohmann::json status = job.ReadJson("status.json");
    EXPECT_DOUBLE_EQ(status.value("steps_per_epoch", 0.0), 30.0 / batches);
    EXPECT_LT(status.value("learning_rate", 1.0), 1e-5);  // of its last step
  }
}

// The others live on, and hold the shards of the cluster that they were started in.
TEST(CollectiveTest, ALeaderOfAnotherClusterSaysWhatIsLost) {
  ScaledJob job(JobConfig(kLongSteps));
  job.StartAllIn(2);
  job.WaitForStep(kChiefTask, 150);
  job.Kill(kChiefTask);
  job.StartIn(1, kChiefTask);
  job.ExpectAllDoneBut({WorkerTask(2)});
  job.ExpectTrained(kLongSteps);
  EXPECT_THAT(job.Log(kChiefTask),
              HasSubstr("the model is held in other shards than the 2 of this cluster"));
  EXPECT_THAT(job.Log(kChiefTask), ContainsRegex("lost steps [0-9]+ to [0-9]+: servers had done"));
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("consistency mode: sync:3"));
}

TEST(CollectiveTest, AJobWaitsWhileTooFewTrain) {
  const std::string config = absl::StrCat(SlowConfig(), "collective { min_workers: 2 }");
  CollectiveJob job(config, /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 30);
  const auto pauses = [&] {
    const std::string log = job.Log(kChiefTask);
    const std::vector<absl::string_view> parts = absl::StrSplit(log, "no step is begun");
    return static_cast<int>(parts.size()) - 1;
  };
  // One, if the chief was there before the others.
  const int before = pauses();
  job.Kill(WorkerTask(0));
  job.WaitForLog(kChiefTask, "lost worker-0 (");
  EXPECT_EQ(pauses(), before);
  job.process(WorkerTask(1)).Signal(SIGTERM);
  job.ExpectExit(WorkerTask(1), kExitStopped);
  job.WaitForLog(kChiefTask, "no step is begun: 1 of at least 2 tasks train", before + 1);
  job.Start(WorkerTask(0));
  job.WaitForLog(kChiefTask, "steps are begun again: 2 of at least 2 tasks train", before + 1);
  job.ExpectAllDoneBut({WorkerTask(1)});
  ExpectNothingLost(job, SlowConfig());
}

// The chief takes the job up again where another host has gone for good.
TEST(CollectiveTest, AChiefComesBackToAJobThatWasScaledDown) {
  CollectiveJob job(SlowConfig(), /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 30);
  job.process(WorkerTask(1)).Signal(SIGTERM);
  job.ExpectExit(WorkerTask(1), kExitStopped);
  job.Kill(kChiefTask);
  job.Start(kChiefTask);
  job.ExpectAllDoneBut({WorkerTask(1)});
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("adopting the running job at step "));
  ExpectNothingLost(job, SlowConfig());
}

TEST(CollectiveTest, AnAsynchronousJobKeepsNoReplicas) {
  constexpr int kAsynchronousSteps = 10 * kLongSteps;
  const std::string config =
      absl::StrReplaceAll(JobConfig(kAsynchronousSteps), {{"save_steps: 100", "save_steps: 100000"},
                                                          {"batch_size: 32", "batch_size: 240"}}) +
      "consistency { mode { async {} } }";
  CollectiveJob job(config, /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForStep(job.leader(), 50);
  job.process(WorkerTask(1)).Signal(SIGTERM);
  job.ExpectExit(WorkerTask(1), kExitStopped);
  EXPECT_THAT(job.Log(job.leader()), HasSubstr("shard-2 of worker-1 is from now on shard-2 of"));
  job.Start(WorkerTask(1));
  job.ExpectAllDone();
  job.ExpectTrained(kAsynchronousSteps);
  EXPECT_THAT(job.Log(job.leader()), Not(HasSubstr("has a replica")));
  EXPECT_THAT(job.Log(job.leader()), Not(HasSubstr("restored from")));
}

TEST(CollectiveTest, AFrozenWorkerComesBack) {
  CollectiveJob job(kLongSteps);
  job.AddFlag(Role::kChief, "--lease=2");
  job.StartAll();
  job.WaitForStep(job.leader(), 50);
  job.process(WorkerTask(1)).Signal(SIGSTOP);
  job.WaitForLog(job.leader(), "lost worker-1");
  job.process(WorkerTask(1)).Signal(SIGCONT);
  job.ExpectAllDone();
  job.ExpectTrained(kLongSteps);
}

TEST(CollectiveTest, EachTaskChoosesHowItsOwnCallsTravel) {
  CollectiveJob job(kSteps);
  job.Start(kChiefTask, {"--bulk_socket=tcp"});
  job.Start(WorkerTask(0), {"--bulk_socket=unix"});
  job.Start(WorkerTask(1), {"--bulk_socket=memory", "--bulk_connections=2"});
  job.ExpectAllDone();
  job.ExpectTrained(kSteps);
}

// The cluster's address of worker-1 leads to another port, as a Service's may.
TEST(CollectiveTest, AHostListensOnThePortOfItsFlag) {
  CollectiveJob job(kSteps);
  const std::string own = job.Address(WorkerTask(1));
  const std::string listed = job.Link(kChiefTask, WorkerTask(1)).address();
  for (const Task& task : job.Trainers()) {
    std::vector<std::string> flags;
    if (task == WorkerTask(1)) flags.push_back("--port=" + own.substr(own.rfind(':') + 1));
    job.Start(task, flags, absl::StrReplaceAll(job.TfConfig(task), {{own, listed}}));
  }
  job.ExpectAllDone();
  job.ExpectTrained(kSteps);
}

// What the program says of this configuration in a cluster without servers, of which it is `task`.
ProgramRun RunWithoutServers(const std::string& program, const Task& task,
                             std::vector<std::string> flags) {
  flags.push_back("--model_dir=" + JoinPath(FreshDirectory(), "model"));
  const std::string tf_config = absl::StrCat(
      R"({"cluster":{"chief":["localhost:1"],"worker":["localhost:2"],"evaluator":["localhost:3"]},)"
      R"("task":{"type":")",
      std::string(RoleName(task.role)), R"(","index":)", task.index, "}}");
  return RunProgram(program, flags, {{"TF_CONFIG", tf_config}}, absl::Seconds(30));
}

struct Program {
  std::string name;
  Task task;
};

std::string WithTables() {
  return absl::StrReplaceAll(
      JobConfig(kSteps),
      {{"input_shape: [28, 28, 1]",
        R"(features { name: "user" bag {} } tables { name: "users" dim: 4 })"},
       {"layers { flatten {} }",
        R"(layers { inputs: "user" embedding_bag { table: "users" combiner: SUM } })"},
       {"generated {", R"(generated_ctr {)"}});
}

TEST(CollectiveErrorsTest, TablesOnWorkersAreRefused) {
  const std::string path = JoinPath(FreshDirectory(), "config.textproto");
  ASSERT_TRUE(WriteFileAtomically(path, WithTables()).ok());
  for (const auto& [program, task] :
       {Program{"chief", kChiefTask}, Program{"worker", kChiefTask},
        Program{"worker", WorkerTask(0)}, Program{"evaluator", kEvaluatorTask}}) {
    ExpectOneError(RunWithoutServers(program, task, {"--config=" + path}), kExitPermanent,
                   {"model.tables: expected none in a cluster without parameter servers",
                    R"(found 1, the first "users")"});
  }
}

TEST(CollectiveErrorsTest, OnlyAgentsLearnFromScriptsWhatIsTrained) {
  const std::vector<std::string> script = {"--config=script"};
  ExpectOneError(RunWithoutServers("chief", kChiefTask, script), kExitPermanent,
                 {"--config=script: expected a cluster with parameter servers whose workers are "
                  "scripts, found that this process trains (without servers the first script's "
                  "agent is the chief)"});
  for (const Task& task : {kChiefTask, WorkerTask(0)}) {
    ExpectOneError(RunWithoutServers("worker", task, script), kExitPermanent,
                   {"--config=script: expected a file"});
  }
  ExpectOneError(RunWithoutServers("keelson_agent", WorkerTask(0), {"--script_socket=0"}),
                 kExitPermanent, {"--records: expected how many the script has"});
}

}  // namespace
}  // namespace keelson
