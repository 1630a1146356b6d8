// Parameter servers that die, freeze or are drained.
#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/e2e/failure_testing.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Two shards of 105 MB; a step is little arithmetic and much traffic.
std::string LargeConfig(int64_t max_steps) {
  return absl::StrCat(R"(
    model {
      name: "large"
      input_shape: [28, 28, 1]
      layers { flatten {} }
      layers { name: "hidden" dense { units: 67000 } }
      layers { relu {} }
      layers { name: "scores" dense { units: 10 } }
      loss { kind: SOFTMAX_CROSS_ENTROPY }
    }
    optimizer { sgd {} }
    learning_rate { base: 0.001 }
    data { generated { train_records: 500 eval_records: 10 } }
    train { batch_size: 2 seed: 3 summary_steps: 1 max_steps: )",
                      max_steps, R"( }
    checkpoint { save_steps: 12 keep_max: 2 }
  )");
}

TEST(FailureServerTest, KilledWithAShardOf100Megabytes) {
  Job job({.ps = 2, .workers = 1, .evaluator = Job::Evaluator::kNone}, LargeConfig(60));
  job.StartAll();
  const StepWatch killed(job.Address(PsTask(0)));
  const StepWatch other(job.Address(PsTask(1)));
  killed.WaitForStep(18);  // The snapshot of step 12 is there.
  const absl::Time time = job.Kill(PsTask(0));
  job.Start(PsTask(0));
  const absl::Duration outage = killed.WaitForFullSpeed(time);
  job.ExpectAllDone(absl::Minutes(3));
  EXPECT_EQ(*DoneStep(job.model_dir()), 60);
  EXPECT_EQ(*VerifiedLatestStep(job.model_dir()), 60);
  EXPECT_EQ(killed.setbacks().new_stores, 1);
  EXPECT_EQ(other.setbacks().new_stores, 0);
  EXPECT_EQ(other.setbacks().falls, 0);
  PrintFigure("ps with a shard of 105 MB killed and restarted",
              absl::StrCat("from kill to full speed: ", Seconds(outage),
                           ", steps lost on its shard: ", killed.setbacks().steps_lost));
}

TEST(FailureServerTest, KilledAndRestarted) {
  constexpr int64_t kMaxSteps = 1250;
  constexpr int64_t kSaveSteps = 25;
  PacedJob paced({.max_steps = kMaxSteps, .save_steps = kSaveSteps});
  paced.StartAndWatch(110);
  const absl::Time time = paced.job.Kill(PsTask(1));
  paced.job.Start(PsTask(1));
  const absl::Duration outage = paced.watches[1]->WaitForFullSpeed(time);
  paced.Finish();

  const StepWatch::Setbacks killed = paced.watches[1]->setbacks();
  const StepWatch::Setbacks other = paced.watches[0]->setbacks();
  EXPECT_EQ(killed.new_stores, 1);
  EXPECT_EQ(other.falls, 0);
  EXPECT_EQ(other.new_stores, 0);
  // No worker crashed: the other shard has every step exactly once; this one lacks what was pushed
  // since the snapshot, and nothing else.
  const CountedSnapshot end = paced.FinalSnapshot();
  ASSERT_EQ(end.updates.size(), 2u);
  EXPECT_EQ(end.updates[0], kMaxSteps);
  EXPECT_LE(end.updates[1], kMaxSteps);
  EXPECT_GE(end.updates[1], kMaxSteps - 3 * kSaveSteps);
  EXPECT_GE(kMaxSteps - end.updates[1], killed.steps_lost);
  PrintFigure("ps killed and restarted",
              absl::StrCat("from kill to full speed: ", Seconds(outage),
                           ", steps lost on its shard: ", kMaxSteps - end.updates[1]));
}

// The chief comes back first, and finds the server away for longer than one may take to appear.
TEST(FailureServerTest, KilledWithTheChiefAndRestartedAfterIt) {
  constexpr int64_t kMaxSteps = 1250;
  constexpr int64_t kSaveSteps = 25;
  PacedJob paced({.max_steps = kMaxSteps, .save_steps = kSaveSteps});
  paced.StartAndWatch(110);
  const absl::Time time = paced.job.Kill(PsTask(1));
  paced.job.Kill(kChiefTask);
  paced.job.Start(kChiefTask, {"--startup_timeout=1"});
  paced.job.WaitForLog(kChiefTask, "waiting for 2 parameter servers");
  absl::SleepFor(absl::Seconds(4));
  paced.job.Start(PsTask(1));
  const absl::Duration outage = paced.watches[1]->WaitForFullSpeed(time);
  paced.Finish();

  EXPECT_THAT(paced.job.Log(kChiefTask), HasSubstr("1 of 2 servers keep their shards"));
  EXPECT_EQ(paced.watches[1]->setbacks().new_stores, 1);
  EXPECT_EQ(paced.watches[0]->setbacks().falls, 0);
  EXPECT_EQ(paced.watches[0]->setbacks().new_stores, 0);
  const CountedSnapshot end = paced.FinalSnapshot();
  ASSERT_EQ(end.updates.size(), 2u);
  EXPECT_EQ(end.updates[0], kMaxSteps);
  EXPECT_LE(end.updates[1], kMaxSteps);
  EXPECT_GE(end.updates[1], kMaxSteps - 3 * kSaveSteps);
  PrintFigure("ps and chief killed, the ps back 4 s after the chief",
              absl::StrCat("from kill to full speed: ", Seconds(outage),
                           ", steps lost on its shard: ", kMaxSteps - end.updates[1]));
}

// As when its node is drained: this server alone is told to stop, and comes back.
TEST(FailureServerTest, Drained) {
  PacedJob paced({.max_steps = 1250, .save_steps = 100'000});
  paced.StartAndWatch(110);
  const absl::Time time = absl::Now();
  paced.job.process(PsTask(1)).Signal(SIGTERM);
  paced.job.ExpectExit(PsTask(1), 143);
  const absl::Duration left = absl::Now() - time;
  paced.job.Start(PsTask(1));
  const absl::Duration outage = paced.watches[1]->WaitForFullSpeed(time);
  paced.Finish();
  EXPECT_EQ(paced.watches[1]->setbacks().new_stores, 1);
  EXPECT_EQ(paced.watches[0]->setbacks().new_stores, 0);
  const std::string log = paced.job.Log(kChiefTask);
  EXPECT_THAT(log, HasSubstr("asked to stop: ps-1;"));
  EXPECT_THAT(log, HasSubstr(": lost no step of its shard"));
  // Nothing is lost and nothing is done twice, although no snapshot was due.
  paced.ExpectCounts(0);
  PrintFigure("ps drained", absl::StrCat("it ends after ", Seconds(left), ", full speed after ",
                                         Seconds(outage), ", steps lost: 0"));
}

// Longer than the lease, and than the chief's patience with a call.
TEST(FailureServerTest, Frozen) {
  PacedJob paced({.max_steps = 1000});
  paced.StartAndWatch(75);
  const absl::Time frozen = absl::Now();
  paced.job.process(PsTask(1)).Signal(SIGSTOP);
  paced.job.WaitForLog(kChiefTask, "lost ps-1");
  paced.job.process(PsTask(1)).Signal(SIGCONT);
  const absl::Time woken = absl::Now();
  const absl::Duration outage = paced.watches[0]->WaitForFullSpeed(frozen);
  paced.Finish();
  // No process crashed, so nothing is lost and nothing is done twice.
  paced.ExpectCounts(0);
  for (const auto& watch : paced.watches) {
    EXPECT_EQ(watch->setbacks().falls, 0);
    EXPECT_EQ(watch->setbacks().new_stores, 0);
  }
  PrintFigure("ps frozen for " + Seconds(woken - frozen),
              absl::StrCat("from its waking up to full speed: ",
                           Seconds(std::max(frozen + outage - woken, absl::ZeroDuration())),
                           ", steps lost: 0"));
}

}  // namespace
}  // namespace keelson
