// Whole jobs of real programs that lose processes or are started again.
#include <signal.h>

#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr int kLongSteps = 1500;

TEST(RestartTest, AfterDoneEveryRoleExitsAtOnce) {
  Job job({}, JobConfig(100));
  job.StartAll();
  job.ExpectAllDone();
  const auto evaluations = ReadEvaluations(job.model_dir());
  job.StartAll();
  job.ExpectAllDone(absl::Seconds(30));
  for (const Task& task :
       {kChiefTask, kEvaluatorTask, PsTask(0), PsTask(1), WorkerTask(0), WorkerTask(1)}) {
    EXPECT_THAT(job.Log(task), HasSubstr("done at step 100"));
  }
  EXPECT_EQ(*VerifiedLatestStep(job.model_dir()), 100);
  EXPECT_EQ(ReadEvaluations(job.model_dir())->size(), evaluations->size());
}

TEST(RestartTest, MoreStepsAfterDoneContinueTheJob) {
  Job job({.ps = 0, .workers = 0}, JobConfig(100));
  job.Start(kChiefTask, {}, "");
  job.ExpectAllDone();
  job.Start(kChiefTask, {"--training_steps=200"}, "");
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("model.ckpt-100: step 100 of 200"));
  EXPECT_EQ(*DoneStep(job.model_dir()), 200);
}

TEST(RestartTest, StoppedChiefTakesTheRunningJobUpAgain) {
  Job job({}, JobConfig(kLongSteps));
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.process(kChiefTask).Signal(SIGTERM);
  job.ExpectExit(kChiefTask, 143);
  EXPECT_EQ(*DoneStep(job.model_dir()), -1);
  const int64_t step = *VerifiedLatestStep(job.model_dir());
  EXPECT_GE(step, 110);

  job.Start(kChiefTask);
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr("2 of 2 servers keep their shards"));
  EXPECT_EQ(*DoneStep(job.model_dir()), kLongSteps);
  EXPECT_EQ(*VerifiedLatestStep(job.model_dir()), kLongSteps);
}

TEST(RestartTest, WholeJobStoppedAndStartedAgain) {
  Job job({}, JobConfig(kLongSteps));
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  // The chief first: it needs the servers for its last snapshot.
  for (const Task& task :
       {kChiefTask, WorkerTask(0), WorkerTask(1), kEvaluatorTask, PsTask(0), PsTask(1)}) {
    job.process(task).Signal(SIGTERM);
    job.ExpectExit(task, 143);
  }
  const int64_t step = *VerifiedLatestStep(job.model_dir());
  job.StartAll();
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr(absl::StrCat("model.ckpt-", step, ": step ", step)));
  EXPECT_EQ(*DoneStep(job.model_dir()), kLongSteps);
}

// As when Kubernetes deletes or suspends a job, or Ctrl-C in a terminal.
TEST(RestartTest, WholeJobStoppedAtOnceKeepsWhatItHasDone) {
  Job job({}, JobConfig(kLongSteps));
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  const std::vector<Task> tasks = {PsTask(0),     PsTask(1),      WorkerTask(0),
                                   WorkerTask(1), kEvaluatorTask, kChiefTask};
  for (const Task& task : tasks) job.process(task).Signal(SIGTERM);
  for (const Task& task : tasks) job.ExpectExit(task, 143);
  const int64_t step = *VerifiedLatestStep(job.model_dir());
  EXPECT_GE(step, 110);
  EXPECT_THAT(job.Log(kChiefTask), HasSubstr(absl::StrCat("stopped: by a signal at step ", step)));
  EXPECT_THAT(job.Log(PsTask(0)), HasSubstr("serving until the chief has taken its last snapshot"));
}

TEST(RestartTest, KilledWorkerDoesNotStopTheJob) {
  Job job({}, JobConfig(kLongSteps));
  job.AddFlag(Role::kChief, "--lease=3");
  job.StartAll();
  job.WaitForLog(WorkerTask(1), "training on");
  job.WaitForStep(kChiefTask, 50);
  job.process(WorkerTask(1)).Signal(SIGKILL);
  job.ExpectExit(WorkerTask(1), 128 + SIGKILL);
  EXPECT_EQ(*DoneStep(job.model_dir()), -1);
  for (const Task& task : {WorkerTask(0), kChiefTask, kEvaluatorTask, PsTask(0), PsTask(1)}) {
    job.ExpectExit(task, 0, absl::Seconds(120));
  }
  EXPECT_EQ(*DoneStep(job.model_dir()), kLongSteps);
  EXPECT_EQ(ReadEvaluations(job.model_dir())->back().step, kLongSteps);
}

TEST(RestartTest, KilledWorkerIsReplaced) {
  Job job({.workers = 1}, JobConfig(kLongSteps));
  job.AddFlag(Role::kChief, "--lease=3");
  job.StartAll();
  job.WaitForStep(kChiefTask, 50);
  job.process(WorkerTask(0)).Signal(SIGKILL);
  job.ExpectExit(WorkerTask(0), 128 + SIGKILL);
  job.Start(WorkerTask(0));
  job.ExpectAllDone();
  EXPECT_EQ(*DoneStep(job.model_dir()), kLongSteps);
}

TEST(RestartTest, KilledServerIsRestoredFromTheLastSnapshot) {
  Job job({}, JobConfig(kLongSteps));
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.process(PsTask(1)).Signal(SIGKILL);
  job.ExpectExit(PsTask(1), 128 + SIGKILL);
  job.Start(PsTask(1));
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(PsTask(1)), HasSubstr("from the snapshot of step "));
  EXPECT_EQ(*DoneStep(job.model_dir()), kLongSteps);
}

TEST(RestartTest, KilledEvaluatorIsReplaced) {
  Job job({}, JobConfig(kLongSteps));
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.process(kEvaluatorTask).Signal(SIGKILL);
  job.ExpectExit(kEvaluatorTask, 128 + SIGKILL);
  job.Start(kEvaluatorTask);
  job.ExpectAllDone();
  EXPECT_EQ(ReadEvaluations(job.model_dir())->back().step, kLongSteps);
}

}  // namespace
}  // namespace keelson
