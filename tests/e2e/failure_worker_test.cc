// Workers that die or freeze (design §9).
#include <signal.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/failure_testing.h"

namespace keelson {
namespace {

constexpr int64_t kEarly = 75;

// Nothing that a worker does harms the servers.
void ExpectNoSetbacks(const PacedJob& paced) {
  for (const auto& watch : paced.watches) {
    EXPECT_EQ(watch->setbacks().falls, 0);
    EXPECT_EQ(watch->setbacks().new_stores, 0);
  }
}

std::string Twice(const PacedJob& paced) {
  int64_t most = 0;
  for (const int64_t updates : paced.FinalSnapshot().updates) {
    most = std::max(most, updates - paced.counting.max_steps);
  }
  return absl::StrCat("steps done twice: ", most);
}

TEST(FailureWorkerTest, KilledAndReplaced) {
  PacedJob paced({.max_steps = 1250, .save_steps = 25});
  paced.StartAndWatch(kEarly);
  const absl::Time killed = paced.job.Kill(WorkerTask(1));
  paced.job.Start(WorkerTask(1));
  const absl::Duration outage = paced.watches[0]->WaitForFullSpeed(killed);
  paced.Finish();
  paced.ExpectCounts(kMostUnreportedSteps);
  ExpectNoSetbacks(paced);
  PrintFigure("worker killed and replaced",
              absl::StrCat("from kill to full speed: ", Seconds(outage), ", ", Twice(paced)));
}

TEST(FailureWorkerTest, KilledAndNotReplaced) {
  PacedJob paced({.max_steps = 750, .save_steps = 25});
  paced.StartAndWatch(kEarly);
  const absl::Time killed = paced.job.Kill(WorkerTask(1));
  // Its tickets are missing until its lease is over; the job cannot end before.
  paced.job.WaitForLog(kChiefTask, "lost worker-1");
  const absl::Duration noticed = absl::Now() - killed;
  paced.Finish({WorkerTask(1)});
  paced.ExpectCounts(kMostUnreportedSteps);
  ExpectNoSetbacks(paced);
  PrintFigure("worker killed, not replaced", absl::StrCat("from kill to its work being handed on: ",
                                                          Seconds(noticed), ", ", Twice(paced)));
}

TEST(FailureWorkerTest, FrozenBeyondItsLease) {
  PacedJob paced({.max_steps = 1250, .save_steps = 25});
  paced.StartAndWatch(kEarly);
  paced.job.process(WorkerTask(1)).Signal(SIGSTOP);
  paced.job.WaitForLog(kChiefTask, "lost worker-1");
  const absl::Time woken = absl::Now();
  paced.job.process(WorkerTask(1)).Signal(SIGCONT);
  // It trains on, in the same process, as a new member.
  paced.job.WaitForLog(kChiefTask, "worker-1 joined", 2);
  const absl::Duration back = absl::Now() - woken;
  paced.Finish();
  paced.ExpectCounts(kMostUnreportedSteps);
  ExpectNoSetbacks(paced);
  PrintFigure("worker frozen beyond its lease",
              absl::StrCat("from its waking up to its registering again: ", Seconds(back), ", ",
                           Twice(paced)));
}

}  // namespace
}  // namespace keelson
