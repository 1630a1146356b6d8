// Storage that hangs: calls of the system about it do not return, whatever signal comes.
#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "tests/e2e/failure_testing.h"

namespace keelson {
namespace {

using ::testing::ContainsRegex;

constexpr char kEndedHanging[] =
    "ended although it was not ready, 7s after it was asked to stop; what hangs: [^\n]* of [^\n]* "
    "for ";

// A job whose storage can hang, and whose tasks have 2 s to end, or 7 where they hang.
class FailureHangTest : public testing::Test {
 protected:
  FailureHangTest() { job_.AddFlag("--leave_within=2"); }
  ~FailureHangTest() override { std::remove(marker_.c_str()); }

  // Trains until files whose paths have this in them have hung for some steps, with a snapshot due.
  void TrainUntilHung(const std::string& files) {
    job_.RunBehind(BehindFaultyStorage(files, marker_, ""));
    paced_.StartAndWatch(75);
    ASSERT_TRUE(WriteFileAtomically(marker_, "").ok());
    paced_.watches[0]->WaitForStep(paced_.watches[0]->step() + 75);
  }
  void StopAll() {
    for (const Task& task : tasks_) job_.process(task).Signal(SIGTERM);
    for (const Task& task : tasks_) job_.ExpectExit(task, kExitStopped, absl::Seconds(30));
  }

  PacedJob paced_{{.max_steps = 100'000, .save_steps = 25}, 1, Job::Evaluator::kListed};
  Job& job_ = paced_.job;
  const std::vector<Task> tasks_ = {kChiefTask, PsTask(0), PsTask(1), WorkerTask(0),
                                    kEvaluatorTask};
  const std::string marker_ = job_.model_dir() + ".hangs";
};

TEST_F(FailureHangTest, EveryRoleObeysSigtermWhileTheModelDirectoryHangs) {
  TrainUntilHung(job_.model_dir());
  StopAll();
  for (const Task& task : {kChiefTask, kEvaluatorTask}) {
    EXPECT_THAT(job_.Log(task), ContainsRegex(kEndedHanging));
  }
}

// The chief gives up its snapshot, and ends in order.
TEST_F(FailureHangTest, EveryRoleObeysSigtermWhileServersHangInASnapshot) {
  TrainUntilHung(".data-");
  StopAll();
  for (const Task& task : {PsTask(0), PsTask(1)}) {
    EXPECT_THAT(job_.Log(task), ContainsRegex(kEndedHanging));
  }
  EXPECT_THAT(job_.Log(kChiefTask), ContainsRegex("its call was given up"));
  EXPECT_THAT(job_.Log(kChiefTask), ContainsRegex("stopped: by a signal at step"));
}

}  // namespace
}  // namespace keelson
