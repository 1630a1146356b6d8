// The chief, the evaluator or all processes die (design §9).
#include <signal.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/failure_testing.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int64_t kChiefEarly = 90;
constexpr int64_t kSaveSteps = 25;

// The steps of the snapshots that a chief has written, in order.
std::vector<int64_t> SnapshotsIn(const std::string& log) {
  constexpr absl::string_view kWords = "snapshot of step ";
  std::vector<int64_t> steps;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    const size_t at = line.find(kWords);
    int64_t step = 0;
    if (at == absl::string_view::npos) continue;
    const absl::string_view number = line.substr(at + kWords.size());
    if (absl::SimpleAtoi(number.substr(0, number.find(':')), &step)) steps.push_back(step);
  }
  return steps;
}

// Kills the chief, starts it again after `pause`, and checks that nothing shows but a pause.
void KillChief(absl::Duration pause) {
  PacedJob paced({.max_steps = 1250, .save_steps = kSaveSteps});
  paced.StartAndWatch(kChiefEarly);
  const absl::Time killed = paced.job.Kill(kChiefTask);
  const std::string before = paced.job.Log(kChiefTask);
  absl::SleepFor(pause);
  paced.job.Start(kChiefTask);
  // The leases that the workers had are used up by then.
  paced.job.WaitForStep(kChiefTask, LastReportedStep(before) + 125);
  const absl::Duration longest = paced.watches[0]->LongestPauseSince(killed);
  paced.Finish();

  const std::string after = paced.job.Log(kChiefTask);
  // Nothing lost, nothing done twice, no server started over.
  paced.ExpectCounts(0);
  for (const auto& watch : paced.watches) {
    EXPECT_EQ(watch->setbacks().falls, 0);
    EXPECT_EQ(watch->setbacks().new_stores, 0);
  }
  EXPECT_GE(FirstReportedStep(after), LastReportedStep(before));
  // It does not only report the end.
  EXPECT_LT(FirstReportedStep(after), paced.counting.max_steps);
  const std::vector<int64_t> old_snapshots = SnapshotsIn(before);
  const std::vector<int64_t> new_snapshots = SnapshotsIn(after);
  ASSERT_FALSE(old_snapshots.empty());
  ASSERT_FALSE(new_snapshots.empty());
  EXPECT_GT(new_snapshots.front(), old_snapshots.back());
  PrintFigure(
      absl::StrCat("chief killed, restarted after ", Seconds(pause)),
      absl::StrCat("longest time without a step: ", Seconds(longest), ", steps lost: 0, from step ",
                   LastReportedStep(before), " on with step ", FirstReportedStep(after)));
}

TEST(FailureChiefTest, KilledAndRestartedAtOnce) { KillChief(absl::ZeroDuration()); }

// All tickets are used up and all leases are over when it comes back.
TEST(FailureChiefTest, KilledAndRestartedLate) { KillChief(absl::Seconds(5)); }

// Its loops wake before it has received what the members have sent.
TEST(FailureChiefTest, FrozenBeyondEveryLease) {
  PacedJob paced({.max_steps = 1250, .save_steps = kSaveSteps});
  paced.StartAndWatch(kChiefEarly);
  const int64_t before = LastReportedStep(paced.job.Log(kChiefTask));
  paced.job.process(kChiefTask).Signal(SIGSTOP);
  absl::SleepFor(absl::Seconds(5));
  paced.job.process(kChiefTask).Signal(SIGCONT);
  const absl::Time woken = absl::Now();
  paced.job.WaitForLog(kChiefTask, "this process stood still for ");
  paced.job.WaitForStep(kChiefTask, before + 125);
  const absl::Duration longest = paced.watches[0]->LongestPauseSince(woken);
  paced.Finish();
  paced.ExpectCounts(0);
  EXPECT_THAT(paced.job.Log(kChiefTask), testing::Not(testing::HasSubstr("lost worker")));
  PrintFigure("chief frozen for 5 s, its lease is 3 s",
              absl::StrCat("longest time without a step after it woke: ", Seconds(longest),
                           ", members lost: 0"));
}

TEST(FailureChiefTest, AllKilledResumeFromTheNewestSnapshot) {
  PacedJob paced({.max_steps = 750, .save_steps = kSaveSteps});
  paced.StartAndWatch(kChiefEarly);
  const absl::Time killed = absl::Now();
  int64_t pushed = 0;
  for (const auto& watch : paced.watches) pushed = std::max(pushed, watch->step());
  const std::vector<Task> all = {kChiefTask, PsTask(0), PsTask(1), WorkerTask(0), WorkerTask(1)};
  for (const Task& task : all) paced.job.process(task).Signal(SIGKILL);
  for (const Task& task : all) paced.job.ExpectExit(task, 128 + SIGKILL);
  const auto snapshot = ReadLatestCounted(paced.job.model_dir());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  paced.job.StartAll();
  const absl::Duration outage = paced.watches[0]->WaitForFullSpeed(killed);
  paced.Finish();
  EXPECT_GE(FirstReportedStep(paced.job.Log(kChiefTask)), snapshot->global_step);
  // A snapshot may hold pushes of tickets that were not reported yet.
  paced.ExpectCounts(kMostUnreportedSteps);
  PrintFigure("all killed and restarted",
              absl::StrCat("from kill to full speed: ", Seconds(outage),
                           ", steps lost: ", pushed - snapshot->global_step));
}

TEST(FailureChiefTest, EvaluatorKilled) {
  PacedJob paced({.max_steps = 750, .save_steps = kSaveSteps}, /*workers=*/2,
                 Job::Evaluator::kListed);
  paced.StartAndWatch(kChiefEarly);
  const absl::Time killed = paced.job.Kill(kEvaluatorTask);
  const size_t scored = ReadEvaluations(paced.job.model_dir())->size();
  paced.job.Start(kEvaluatorTask);
  const bool again = WaitUntil(
      [&] { return ReadEvaluations(paced.job.model_dir())->size() > scored; }, absl::Seconds(60));
  const absl::Duration outage = absl::Now() - killed;
  EXPECT_TRUE(again);
  paced.Finish();
  paced.ExpectCounts(0);
  // No snapshot is scored twice.
  const auto evaluations = *ReadEvaluations(paced.job.model_dir());
  for (size_t i = 1; i < evaluations.size(); ++i) {
    EXPECT_GT(evaluations[i].step, evaluations[i - 1].step);
  }
  EXPECT_EQ(evaluations.back().step, paced.counting.max_steps);
  PrintFigure("evaluator killed and restarted",
              absl::StrCat("from kill to its next score: ", Seconds(outage)));
}

TEST(FailureChiefTest, JobAlreadyDone) {
  PacedJob paced({.max_steps = 300}, /*workers=*/2, Job::Evaluator::kListed);
  paced.job.StartAll();
  paced.Finish();
  const absl::Time start = absl::Now();
  paced.job.StartAll();
  paced.Finish();
  PrintFigure("job already done", absl::StrCat("from the start of six processes to their end: ",
                                               Seconds(absl::Now() - start)));
  paced.ExpectCounts(0);
}

}  // namespace
}  // namespace keelson
