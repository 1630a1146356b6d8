// Several jobs of real programs that want one model directory.
#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "core/checkpoint/job_file.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/ports.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A job in one process, and the flags of others in its model directory.
class ModelOwnerE2eTest : public testing::Test {
 protected:
  std::vector<std::string> Flags(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = {
        absl::StrCat("--config=", DirectoryOf(job_.model_dir()), "/config.textproto"),
        absl::StrCat("--model_dir=", job_.model_dir()), "--compute_threads=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  void Start(const std::vector<std::string>& flags = {}) { job_.Start(kChiefTask, flags, ""); }
  void WaitUntilItTrains() { job_.WaitForStep(kChiefTask, 110); }
  void Stop() {
    job_.process(kChiefTask).Signal(SIGTERM);
    job_.ExpectExit(kChiefTask, 143);
  }

  Job job_{{.ps = 0, .workers = 0}, JobConfig(kEndless)};
};

TEST_F(ModelOwnerE2eTest, ASecondJobIsRefusedAndARestartedOneGoesOnAtOnce) {
  Start();
  WaitUntilItTrains();
  ExpectOneError(RunProgram(Role::kChief, Flags()), kPermanent,
                 {"checkpoint.model_dir " + job_.model_dir(), "chief-0 on ",
                  absl::StrCat("(pid ", job_.process(kChiefTask).pid(), ")"), "since ",
                  "choose another --model_dir"});
  job_.Kill(kChiefTask);
  Start();
  WaitUntilItTrains();
  EXPECT_THAT(job_.Log(kChiefTask), HasSubstr("owns " + job_.model_dir() + ", term 2"));
  EXPECT_THAT(job_.Log(kChiefTask), HasSubstr("continuing from "));
  EXPECT_THAT(job_.Log(kChiefTask), Not(HasSubstr("still trains there")));
  Stop();
}

TEST_F(ModelOwnerE2eTest, AnotherConfigurationGoesOnOnlyWhenItIsAccepted) {
  Start();
  WaitUntilItTrains();
  Stop();
  const absl::StatusOr<int64_t> step = VerifiedLatestStep(job_.model_dir());
  ASSERT_TRUE(step.ok()) << step.status();
  const std::vector<std::string> flags =
      Flags({"--learning_rate=0.03125", absl::StrCat("--training_steps=", *step + 10)});
  ExpectOneError(RunProgram(Role::kChief, flags), kPermanent,
                 {"checkpoint.model_dir " + job_.model_dir(),
                  "learning_rate.base: expected 0.02, found 0.03125", "--accept_new_config"});
  std::vector<std::string> accepting = flags;
  accepting.push_back("--accept_new_config");
  const ProgramRun run = RunProgram(Role::kChief, accepting);
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr(absl::StrCat("model.ckpt-", *step, ": step ", *step)));
}

// The servers find that the snapshot is another model's; the one that was trained stays described.
TEST_F(ModelOwnerE2eTest, AnAcceptedConfigurationThatCannotGoOnLeavesTheModelsOne) {
  Start();
  WaitUntilItTrains();
  Stop();
  const absl::StatusOr<int64_t> step = VerifiedLatestStep(job_.model_dir());
  ASSERT_TRUE(step.ok()) << step.status();
  const std::string other = absl::StrCat(DirectoryOf(job_.model_dir()), "/other.textproto");
  ASSERT_EQ(WriteFileAtomically(
                other, absl::StrReplaceAll(JobConfig(kEndless), {{"units: 128", "units: 64"}})),
            absl::OkStatus());
  ExpectOneError(RunProgram(Role::kChief, {absl::StrCat("--config=", other),
                                           absl::StrCat("--model_dir=", job_.model_dir()),
                                           "--compute_threads=1", "--accept_new_config"}),
                 kPermanent, {"hidden/bias: expected shape [64], found [128]"});
  const ProgramRun run =
      RunProgram(Role::kChief, Flags({absl::StrCat("--training_steps=", *step + 10)}));
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr(absl::StrCat("model.ckpt-", *step, ": step ", *step)));
}

// Stops the owner of the directory, but not while it renews: nobody waits for one that holds the
// file itself. Another machine, which the test plays, shares the files, but not the locks of this
// one's kernel.
void FreezeOwner(Process* owner, const std::string& model_dir) {
  ASSERT_TRUE(WaitUntil(
      [&] {
        owner->Signal(SIGSTOP);
        const bool stopped = WaitUntil([&] { return owner->IsStopped(); }, absl::Seconds(60));
        if (stopped && FileSystem::Real()->TryLock(JobFilePath(model_dir)).ok()) return true;
        owner->Signal(SIGCONT);
        return false;
      },
      absl::Seconds(60)));
  ASSERT_EQ(RemoveFile(JobLockPath(model_dir)), absl::OkStatus());
}

TEST_F(ModelOwnerE2eTest, AFrozenOwnerLosesTheDirectoryToAnotherMachineAndEnds) {
  Start({"--owner_lease=2"});
  WaitUntilItTrains();
  Process& frozen = job_.process(kChiefTask);
  ASSERT_NO_FATAL_FAILURE(FreezeOwner(&frozen, job_.model_dir()));
  const std::string log_path = JoinPath(DirectoryOf(job_.model_dir()), "second.log");
  std::vector<std::string> argv = {ProgramOf(Role::kChief)};
  for (const std::string& flag : Flags()) argv.push_back(flag);
  const auto second = Process::Start({argv, {}, log_path});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(WaitUntil([&] { return LastReportedStep((*second)->Log()) > 0; }, absl::Seconds(60)))
      << (*second)->Log();
  EXPECT_THAT((*second)->Log(), HasSubstr("waiting 2s to see whether chief-0 on "));
  EXPECT_THAT((*second)->Log(), HasSubstr("term 2"));
  frozen.Signal(SIGCONT);
  job_.ExpectExit(kChiefTask, kPermanent);
  EXPECT_THAT(ErrorLines(job_.Log(kChiefTask)),
              testing::Contains(testing::AllOf(
                  HasSubstr("checkpoint.model_dir " + job_.model_dir() + ": taken over by chief-0"),
                  HasSubstr(absl::StrCat("(pid ", (*second)->pid(), ")")))));
  (*second)->Signal(SIGTERM);
  EXPECT_EQ((*second)->Wait(absl::Seconds(60)), 143) << (*second)->Log();
  const auto step = VerifiedLatestStep(job_.model_dir());
  ASSERT_TRUE(step.ok()) << step.status();
  // The newest snapshot is the second one's; the first one has written nothing over it.
  EXPECT_THAT((*second)->Log(), HasSubstr(absl::StrCat("snapshot of step ", *step, ":")));
}

// A chief is frozen, its successor runs elsewhere, and a server, restarted meanwhile, has been
// called by nobody when the first chief wakes up.
TEST(ChiefTermE2eTest, AChiefThatWakesUpEndsNobodyAndItsSuccessorTrainsOn) {
  Job job({.ps = 2, .workers = 1, .evaluator = Job::Evaluator::kNone}, JobConfig(kEndless));
  job.AddFlag(Role::kChief, "--owner_lease=2");
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  Process& frozen = job.process(kChiefTask);
  ASSERT_NO_FATAL_FAILURE(FreezeOwner(&frozen, job.model_dir()));
  const ReservedPorts ports(1);
  std::vector<std::string> argv = {ProgramOf(Role::kChief)};
  for (const std::string& flag : job.FlagsOf(Role::kChief)) argv.push_back(flag);
  const auto second_config = [&](const Task& task) {
    return absl::StrReplaceAll(job.TfConfig(task),
                               {{job.Address(kChiefTask), absl::StrCat("127.0.0.1:", ports[0])}});
  };
  const auto second = Process::Start({argv,
                                      {{"TF_CONFIG", second_config(kChiefTask)}},
                                      JoinPath(DirectoryOf(job.model_dir()), "second.log")});
  ASSERT_TRUE(second.ok()) << second.status();
  job.Kill(WorkerTask(0));
  job.Start(WorkerTask(0), {}, second_config(WorkerTask(0)));
  const auto step = [&] { return LastReportedStep((*second)->Log()); };
  ASSERT_TRUE(WaitUntil([&] { return step() > 0; }, absl::Seconds(60))) << (*second)->Log();
  job.Kill(PsTask(1));
  frozen.Signal(SIGCONT);
  job.Start(PsTask(1));
  job.ExpectExit(kChiefTask, kPermanent);
  const int64_t before = step();
  EXPECT_TRUE(WaitUntil([&] { return step() > before + 100; }, absl::Seconds(60)))
      << (*second)->Log();
  (*second)->Signal(SIGTERM);
  EXPECT_EQ((*second)->Wait(absl::Seconds(60)), 143) << (*second)->Log();
  const auto saved = VerifiedLatestStep(job.model_dir());
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT((*second)->Log(), HasSubstr(absl::StrCat("snapshot of step ", *saved, ":")));
  for (const Task& task : {PsTask(0), PsTask(1), WorkerTask(0)}) {
    job.process(task).Signal(SIGTERM);
    EXPECT_TRUE(job.process(task).Wait(absl::Seconds(60)).has_value());
  }
}

// Servers that do not share the model directory.
TEST(CheckpointWriterE2eTest, TheChiefAloneMayHoldTheModel) {
  // So many that it is not over when the chief's log has the first ones.
  constexpr int kSteps = 5000;
  Job job({.ps = 2, .workers = 1}, JobConfig(kSteps));
  job.AddFlag(Role::kChief, "--checkpoint_writer=chief");
  job.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.Kill(PsTask(1));
  job.Start(PsTask(1));
  job.ExpectAllDone();
  EXPECT_EQ(DoneStep(job.model_dir()).value_or(-1), kSteps);
  EXPECT_EQ(VerifiedLatestStep(job.model_dir()).value_or(-1), kSteps);
  EXPECT_THAT(job.Log(PsTask(1)), HasSubstr("from the snapshot of step "));
}

}  // namespace
}  // namespace keelson
