// Jobs whose launcher numbers the processes, and says only where the first one is: at a host from
// which nothing follows about the others. They listen on any free ports, and register.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/exit_code.h"
#include "core/base/file.h"
#include "gmock/gmock.h"
#include "tests/e2e/job_config.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"
#include "tests/support/ports.h"
#include "tests/support/private_names.h"
#include "tests/support/program_run.h"

namespace keelson {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kRegisteredSteps = 120;
// Steps of a job that something happens to.
constexpr int kManySteps = 500;
constexpr char kLeadersHost[] = "node0";

// A job of so many processes by RANK, of which the first one leads as chief-0.
class RegisteredJob {
 public:
  RegisteredJob(const std::string& config, int processes)
      : processes_(processes),
        job_({.chief = true, .ps = 0, .workers = processes - 1, .evaluator = Job::Evaluator::kNone},
             config) {
    names_.Set(kLeadersHost, "127.0.0.1");
    job_.RunBehind(names_.Wrapper());
    job_.AddFlag(Role::kChief, "--compute_threads=1");
    for (int rank = 0; rank < processes; ++rank) Number(Ranked(rank), rank, processes);
  }

  static Task Ranked(int rank) { return rank == 0 ? kChiefTask : WorkerTask(rank - 1); }

  Job& job() { return job_; }
  std::string leaders_log() const { return job_.Log(kChiefTask); }
  void Start(int rank, const std::vector<std::string>& flags = {}) {
    job_.Start(Ranked(rank), flags, /*tf_config=*/"");
  }
  void StartAll() {
    for (int rank = 0; rank < processes_; ++rank) Start(rank);
  }
  // What the launcher tells the task from its next start on.
  void Number(const Task& task, int rank, int processes) {
    const std::string address = job_.Address(kChiefTask);
    job_.UseProgram(task, "worker",
                    {{"RANK", absl::StrCat(rank)},
                     {"WORLD_SIZE", absl::StrCat(processes)},
                     {"MASTER_ADDR", kLeadersHost},
                     {"MASTER_PORT", address.substr(address.rfind(':') + 1)}});
  }
  void ExpectTrained(int steps) const {
    EXPECT_EQ(*DoneStep(job_.model_dir()), steps);
    EXPECT_EQ(*VerifiedLatestStep(job_.model_dir()), steps);
  }
  // Expects that the started process ends with one error.
  void ExpectError(const Task& task, int exit_code, const std::vector<std::string>& texts) {
    job_.ExpectExit(task, exit_code);
    ExpectOneError({exit_code, job_.Log(task)}, exit_code, texts);
  }

 private:
  const int processes_;
  PrivateNames names_;
  Job job_;
};

class RegistrationTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!PrivateNames::Permitted()) GTEST_SKIP() << "no mount namespaces here";
  }
};

TEST_F(RegistrationTest, ProcessesTrainThatOnlyKnowTheFirst) {
  RegisteredJob registered(JobConfig(kRegisteredSteps), 3);
  // The leader is the last to come.
  for (const int rank : {2, 1, 0}) registered.Start(rank);
  registered.job().ExpectAllDone();
  registered.ExpectTrained(kRegisteredSteps);
  EXPECT_THAT(registered.leaders_log(),
              HasSubstr("waiting for 2 of 3 processes: rank 1 (worker-0), "
                        "rank 2 (worker-1)"));
  EXPECT_THAT(registered.leaders_log(), HasSubstr("; all 3 processes are there"));
  EXPECT_THAT(registered.job().Log(WorkerTask(1)),
              ContainsRegex("registered with the leader, which reaches this process at "
                            "node0:[0-9]+"));
  const std::string status =
      ReadFile(JoinPath(registered.job().model_dir(), "status.json")).value_or("");
  EXPECT_THAT(status, ContainsRegex(R"("address": ?"node0:[0-9]+")"));
  EXPECT_THAT(status, Not(ContainsRegex(R"("address": ?"")")));
}

TEST_F(RegistrationTest, AKilledProcessComesBackOnAnotherPort) {
  RegisteredJob registered(JobConfig(kManySteps), 3);
  Job& job = registered.job();
  registered.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(WorkerTask(1));
  job.WaitForLog(kChiefTask, "shard-2 of worker-1 is from now on shard-2 of chief-0");
  const ReservedPorts ports(1);
  registered.Start(2, {absl::StrCat("--port=", ports[0])});
  job.WaitForLog(kChiefTask, "shard-2 of chief-0 is from now on shard-2 of worker-1");
  job.ExpectAllDone();
  registered.ExpectTrained(kManySteps);
  EXPECT_THAT(registered.leaders_log(),
              ContainsRegex(absl::StrCat("rank 2 \\(worker-1\\) is .* at node0:", ports[0],
                                         " in place of ")));
  EXPECT_THAT(registered.leaders_log(), Not(HasSubstr("restored from")));
}

// Nobody else has the shard: everyone waits for it, and is told where it is then.
TEST_F(RegistrationTest, AKilledProcessWithoutReplicaIsFoundAndRestored) {
  RegisteredJob registered(JobConfig(kManySteps), 2);
  Job& job = registered.job();
  registered.StartAll();
  job.WaitForStep(kChiefTask, 110);
  job.Kill(WorkerTask(0));
  const ReservedPorts ports(1);
  registered.Start(1, {absl::StrCat("--port=", ports[0])});
  job.ExpectAllDone();
  registered.ExpectTrained(kManySteps);
  EXPECT_THAT(registered.leaders_log(),
              HasSubstr("shard-1 of worker-0 has been restarted and restored from "));
}

TEST_F(RegistrationTest, AKilledLeaderLearnsTheAddressesAgain) {
  RegisteredJob registered(JobConfig(kManySteps), 3);
  Job& job = registered.job();
  registered.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 50);
  job.Kill(kChiefTask);
  registered.Start(0);
  job.ExpectAllDone();
  registered.ExpectTrained(kManySteps);
  EXPECT_THAT(registered.leaders_log(), HasSubstr("; all 3 processes are there"));
  EXPECT_THAT(registered.leaders_log(), HasSubstr("adopting the running job at step "));
  EXPECT_THAT(registered.leaders_log(), Not(HasSubstr("restored from")));
}

// PET_NNODES=2:3: two suffice, and have the model.
TEST_F(RegistrationTest, AProcessBeyondTheLeastJoinsWhileTheJobRuns) {
  RegisteredJob registered(JobConfig(kManySteps), 3);
  Job& job = registered.job();
  const std::string address = job.Address(kChiefTask);
  for (int rank = 0; rank < 3; ++rank) {
    job.UseProgram(RegisteredJob::Ranked(rank), "worker",
                   {{"PET_NODE_RANK", absl::StrCat(rank)},
                    {"PET_NNODES", "2:3"},
                    {"PET_MASTER_ADDR", kLeadersHost},
                    {"PET_MASTER_PORT", address.substr(address.rfind(':') + 1)}});
  }
  for (const int rank : {0, 1}) registered.Start(rank);
  job.WaitForStep(kChiefTask, 50);
  registered.Start(2);
  job.WaitForLog(WorkerTask(1), "training on cpu");
  job.ExpectAllDone();
  registered.ExpectTrained(kManySteps);
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr("role=worker-2 world: 2 to 3 processes"));
  EXPECT_THAT(registered.leaders_log(), HasSubstr("; all 2 processes are there"));
}

// --- Errors ---

TEST_F(RegistrationTest, ALeaderWaitsForTheOthersForALimitedTime) {
  RegisteredJob registered(JobConfig(kRegisteredSteps), 3);
  registered.Start(0, {"--startup_timeout=2"});
  registered.ExpectError(kChiefTask, kExitTransient,
                         {"no answer within 2s from shard-1 of worker-0 (it has not registered), "
                          "shard-2 of worker-1 (it has not registered)"});
}

TEST_F(RegistrationTest, AProcessWaitsForTheLeaderForALimitedTime) {
  RegisteredJob registered(JobConfig(kRegisteredSteps), 3);
  registered.Start(1, {"--peer_timeout=1"});
  registered.ExpectError(WorkerTask(0), kExitTransient, {"registering with the leader for 1"});
}

TEST_F(RegistrationTest, OfTwoProcessesWithOneRankTheNewerStays) {
  RegisteredJob registered(JobConfig(kManySteps), 3);
  Job& job = registered.job();
  registered.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 50);
  const std::unique_ptr<Process> older = job.Abandon(WorkerTask(1));
  registered.Start(2);
  const std::optional<int> code = older->Wait(absl::Seconds(60));
  ASSERT_TRUE(code.has_value()) << "it still runs";
  ExpectOneError({*code, older->Log()}, kExitPermanent,
                 {"rank 2 (worker-1) is another process now", "found two"});
  job.ExpectAllDone();
  registered.ExpectTrained(kManySteps);
}

TEST_F(RegistrationTest, AProcessOfAnotherWorldOrConfigurationIsRefused) {
  RegisteredJob registered(JobConfig(kRegisteredSteps), 3);
  registered.Start(0);
  registered.Number(WorkerTask(1), /*rank=*/3, /*processes=*/4);
  registered.Start(2);
  registered.ExpectError(WorkerTask(1), kExitPermanent,
                         {"expected a rank from 1 to 2, which host the model beside the leader "
                          "(worker-0 to worker-1), found worker-2 of 4 processes"});
  registered.Number(WorkerTask(1), /*rank=*/2, /*processes=*/4);
  registered.Start(2);
  registered.ExpectError(WorkerTask(1), kExitPermanent,
                         {"rank 2 (worker-1): expected that 3 processes host the model, as the "
                          "leader counts them, found 4"});
  registered.Start(1, {"--batch_size=16"});
  registered.ExpectError(WorkerTask(0), kExitPermanent,
                         {"configuration of rank 1 (worker-0): expected the hash"});
}

}  // namespace
}  // namespace keelson
