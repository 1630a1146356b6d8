#include "dashboard/runs/run_state.h"

#include <gtest/gtest.h>

#include "dashboard/dashboard_testing.h"

namespace keelson {
namespace {

constexpr absl::Duration kFresh = absl::ZeroDuration();

Json Phase(const char* phase) { return {{"phase", phase}}; }

TEST(DeriveRunState, FollowsTheJobsPhase) {
  EXPECT_EQ(DeriveRunState(nullptr, kFresh, false).state, "waiting");
  EXPECT_EQ(DeriveRunState(TrainingStatus(), kFresh, false).state, "running");
  EXPECT_EQ(DeriveRunState(Phase("FINISHING"), kFresh, false).state, "finishing");
  EXPECT_EQ(DeriveRunState(Phase("EVALUATING"), kFresh, false).state, "evaluating");
  EXPECT_EQ(DeriveRunState(Phase("DONE"), kFresh, false).state, "done");
  EXPECT_EQ(DeriveRunState(Phase("NEW PHASE"), kFresh, false).state, "waiting");
  EXPECT_EQ(DeriveRunState(Json::object(), kFresh, false).state, "waiting");
}

TEST(DeriveRunState, TellsForWhomItWaits) {
  Json status = Phase("WAITING_FOR_SERVERS");
  EXPECT_EQ(DeriveRunState(status, kFresh, false).text, "waiting for servers");
  status["waiting_for"] = {"ps-0 at a:1", 7, "ps-1 at b:1"};
  EXPECT_EQ(DeriveRunState(status, kFresh, false).text, "waiting for ps-0 at a:1, ps-1 at b:1");
  status["waiting_for"] = {"a", "b", "c", "d", "e", "f"};
  EXPECT_EQ(DeriveRunState(status, kFresh, false).text, "waiting for a, b, c, d and 2 more");
}

TEST(DeriveRunState, AServerThatIsLostRestartsTheJob) {
  Json status = TrainingStatus();
  status["servers"][1]["state"] = "lost";
  EXPECT_EQ(DeriveRunState(status, kFresh, false), (RunState{"restarting", "ps-1 is lost", ""}));
  status["servers"][1]["state"] = "restoring";
  EXPECT_EQ(DeriveRunState(status, kFresh, false).text, "ps-1 is being restored");
}

TEST(DeriveRunState, AJobThatLacksWorkersWaits) {
  Json status = TrainingStatus();
  status["missing_workers"] = 2;
  EXPECT_EQ(DeriveRunState(status, kFresh, false),
            (RunState{"waiting", "waiting for 2 more tasks to train", ""}));
  status["missing_workers"] = 0;
  EXPECT_EQ(DeriveRunState(status, kFresh, false).state, "running");
}

TEST(DeriveRunState, AnEndHasItsReason) {
  Json failed = Phase("FAILED");
  failed["error"] = "the loss is not finite";
  EXPECT_EQ(DeriveRunState(failed, absl::Hours(9), false).error, "the loss is not finite");
  EXPECT_TRUE(DeriveRunState(failed, absl::Hours(9), false).over());
  Json early = Phase("DONE");
  early["end_reason"] = "good enough";
  EXPECT_EQ(DeriveRunState(early, absl::Hours(9), false).text, "ended early: good enough");
}

TEST(DeriveRunState, TheMarkerOfAFinishedJobCounts) {
  EXPECT_EQ(DeriveRunState(nullptr, kFresh, true).state, "done");
  EXPECT_EQ(DeriveRunState(TrainingStatus(), absl::Hours(1), true).state, "done");
}

TEST(DeriveRunState, AChiefThatIsSilentIsAwayAndThenGone) {
  const Json status = TrainingStatus();
  EXPECT_FALSE(DeriveRunState(status, kAwayAfter, false).chief_away);
  const RunState away = DeriveRunState(status, kAwayAfter + absl::Seconds(1), false);
  EXPECT_EQ(away.state, "restarting");
  EXPECT_TRUE(away.chief_away);
  const RunState gone = DeriveRunState(status, kGoneAfter + absl::Seconds(1), false);
  EXPECT_EQ(gone.state, "stopped");
  EXPECT_TRUE(gone.chief_away);
  EXPECT_FALSE(gone.over());
}

TEST(StatusAge, OfAFileThatDoesNotChangeIsByItsOwnTime) {
  ManualClock clock;
  StatusAge age(&clock);
  EXPECT_EQ(age.Get(), absl::ZeroDuration());
  age.Note({{"time", absl::ToUnixSeconds(clock.Now()) - 60}});
  EXPECT_EQ(age.Get(), absl::Seconds(60));
}

TEST(StatusAge, OfAFileOfAClockAheadIsSinceItIsLookedAt) {
  ManualClock clock;
  StatusAge age(&clock);
  age.Note({{"time", absl::ToUnixSeconds(clock.Now()) + 3600}});
  EXPECT_EQ(age.Get(), absl::ZeroDuration());
  clock.Advance(absl::Minutes(3));
  EXPECT_EQ(age.Get(), absl::Minutes(3));
  EXPECT_EQ(DeriveRunState(TrainingStatus(), age.Get(), false).state, "stopped");
  clock.Advance(absl::Hours(2));
  EXPECT_EQ(age.Get(), absl::Hours(2) + absl::Minutes(3));
}

TEST(StatusAge, OfAFileThatChangesIsByOurClockWhateverTheOtherSays) {
  ManualClock clock;
  StatusAge age(&clock);
  age.Note({{"time", 0}});
  age.Note({{"time", 1}});
  EXPECT_EQ(age.Get(), absl::ZeroDuration());
  clock.Advance(absl::Seconds(7));
  EXPECT_EQ(age.Get(), absl::Seconds(7));
  age.Note({{"time", 1e300}});
  EXPECT_EQ(age.Get(), absl::ZeroDuration());
}

}  // namespace
}  // namespace keelson
