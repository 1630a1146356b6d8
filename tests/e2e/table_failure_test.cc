// Jobs with a table, of which any process is killed, and all of them inside a snapshot: afterwards
// every row is what the arithmetic of its updates says.
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/counted_rows.h"
#include "tests/support/job.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int64_t kStepsOfEpoch = kCountedRecords / kCountedBatch;
// Each way between a worker and a server, so that a job lasts until it is killed.
constexpr absl::Duration kPaceDelay = absl::Milliseconds(4);

void SetPace(int servers, absl::Duration delay, Job* job) {
  for (const Task& worker : job->TasksOf(Role::kWorker)) {
    for (int s = 0; s < servers; ++s) job->Link(worker, PsTask(s)).Set({.delay = delay});
  }
}

// Has the job train in another job's model directory.
void Take(const std::string& model_dir, Job* job) {
  std::filesystem::remove(job->model_dir());
  std::filesystem::create_directory_symlink(model_dir, job->model_dir());
}

// Whether a snapshot has been begun and neither committed nor removed.
bool HasPendingSnapshot(const std::string& model_dir) {
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(model_dir, error)) {
    if (absl::StrContains(file.path().filename().string(), ".tempstate")) return true;
  }
  return false;
}

// Kills all processes of a job at one time, in a snapshot after one of `step`; they are started
// again until it was in one.
void KillAllInASnapshot(int64_t step, Job* job) {
  std::vector<Task> all = {kChiefTask};
  for (const Role role : {Role::kPs, Role::kWorker}) {
    for (const Task& task : job->TasksOf(role)) all.push_back(task);
  }
  for (bool inside = false; !inside;) {
    job->StartAll();
    const auto reached = [&] {
      const auto latest = VerifiedLatestStep(job->model_dir());
      return latest.ok() && *latest >= step;
    };
    ASSERT_TRUE(WaitUntil(reached, absl::Seconds(60)));
    // No pause: a snapshot takes milliseconds.
    const absl::Time limit = absl::Now() + absl::Seconds(30);
    while (!HasPendingSnapshot(job->model_dir())) ASSERT_LT(absl::Now(), limit);
    for (const Task& task : all) job->process(task).Signal(SIGKILL);
    for (const Task& task : all) job->ExpectExit(task, 128 + SIGKILL);
    inside = HasPendingSnapshot(job->model_dir());
    step = *VerifiedLatestStep(job->model_dir()) + 1;
  }
}

// How often rows of a job of ten epochs, and 200 rounds, have been updated: those of ids that every
// record has, and those of records' own ids.
struct Limited {
  const char* limits;
  uint32_t common;
  uint32_t own;
  // Of the snapshots between, only what has changed is written; 0: all are whole.
  int64_t full_every = 0;
};

class LimitedTableTest : public testing::TestWithParam<Limited> {};

// In rounds each record counts once, whoever is killed.
TEST_P(LimitedTableTest, KilledInSnapshotsAndRestoredOnOtherNumbersOfServers) {
  constexpr int64_t kEpochs = 10;
  const CountedRowsJob counted = {.mode = "synchronous { replicas_to_aggregate: 2 }",
                                  .limits = GetParam().limits,
                                  .sequential = true,
                                  .epochs = kEpochs,
                                  .save_steps = 2,
                                  .keep_max = 0,
                                  .full_every = GetParam().full_every};
  const std::string config = CountedRowsConfig(counted);
  std::string model_dir;
  // A snapshot of this step is far from the last one, for a machine that is busy with other work.
  int64_t step = 40;
  for (const int servers : {2, 3}) {
    Job job({.ps = servers, .workers = 2, .evaluator = Job::Evaluator::kNone}, config);
    job.AddFlag(Role::kChief, "--lease=3");
    if (!model_dir.empty()) Take(model_dir, &job);
    SetPace(servers, kPaceDelay, &job);
    KillAllInASnapshot(step, &job);
    if (HasFatalFailure()) return;
    CheckAllRowCounts(job.model_dir());
    model_dir = job.model_dir();
    step += 40;
  }
  Job job({.ps = 1, .workers = 2, .evaluator = Job::Evaluator::kNone}, config);
  Take(model_dir, &job);
  job.StartAll();
  job.ExpectAllDone();
  CheckAllRowCounts(job.model_dir());

  constexpr int64_t kSteps = kEpochs * kStepsOfEpoch / 2;
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
  const CountedRows rows = ReadCountedRows(absl::StrCat(job.model_dir(), "/model.ckpt-", kSteps));
  if (GetParam().own > 1) {
    EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
  }
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row.updates, id < kCommonIds ? GetParam().common : GetParam().own) << id;
    EXPECT_EQ(std::abs(double{row.value}) / kCountedRowStep, row.updates) << id;
  }
}

// A record comes about every 20 rounds; so the last pass over the rows may find half of them.
INSTANTIATE_TEST_SUITE_P(Limits, LimitedTableTest,
                         testing::Values(Limited{"", 200, 10}, Limited{"", 200, 10, 4},
                                         Limited{"admit_after: 3", 198, 8},
                                         Limited{"expire_after_steps: 10", 200, 1},
                                         Limited{"expire_after_steps: 10", 200, 1, 4}));

TEST(TableFailureTest, EachProcessKilledAndRestarted) {
  constexpr int64_t kEpochs = 40;
  Job job({.ps = 2, .workers = 2, .evaluator = Job::Evaluator::kNone},
          CountedRowsConfig({.epochs = kEpochs, .save_steps = 20, .keep_max = 0}));
  job.AddFlag(Role::kChief, "--lease=3");
  SetPace(2, kPaceDelay, &job);
  job.StartAll();
  int64_t step = 60;
  for (const Task& victim : {PsTask(1), WorkerTask(0), kChiefTask, PsTask(0)}) {
    const auto reached = [&] {
      const auto latest = VerifiedLatestStep(job.model_dir());
      return latest.ok() && *latest >= step;
    };
    ASSERT_TRUE(WaitUntil(reached, absl::Seconds(60))) << step;
    job.Kill(victim);
    job.Start(victim);
    step += 100;
  }
  SetPace(2, absl::ZeroDuration(), &job);
  job.ExpectAllDone();
  CheckAllRowCounts(job.model_dir());
  constexpr int64_t kSteps = kEpochs * kStepsOfEpoch;
  EXPECT_EQ(*DoneStep(job.model_dir()), kSteps);
  const CountedRows rows = ReadCountedRows(absl::StrCat(job.model_dir(), "/model.ckpt-", kSteps));
  EXPECT_EQ(rows.size(), kCommonIds + kCountedRecords);
}

}  // namespace
}  // namespace keelson
