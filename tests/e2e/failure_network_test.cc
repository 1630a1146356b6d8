// The network between the processes is slow, drops everything for a while, or is cut (design
// §9). The job comes to its end, and each step counts once.
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/failure_testing.h"

namespace keelson {
namespace {

using Flow = LinkConditions::Flow;

struct Trouble {
  std::string name;
  LinkConditions conditions;
};

struct Case {
  std::string between;
  Task from;
  Task to;
  Trouble trouble;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.between << c.trouble.name; }

// Longer than the lease of 3 s.
constexpr absl::Duration kLong = absl::Seconds(5);
// Shorter, but longer than heartbeats are apart.
constexpr absl::Duration kShort = absl::Seconds(1);

class FailureNetworkTest : public testing::TestWithParam<Case> {};

TEST_P(FailureNetworkTest, EveryStepCountsOnce) {
  const Case& c = GetParam();
  PacedJob paced({.max_steps = 1500});
  FaultProxy& link = paced.job.Link(c.from, c.to);
  const bool paced_link = c.from.role == Role::kWorker && c.to.role == Role::kPs;
  const LinkConditions healthy = {.delay = paced_link ? kPaceDelay : absl::ZeroDuration()};
  paced.StartAndWatch(175);
  // Trouble of a network has no event to wait for: it lasts for a time.
  const auto suffer = [&](absl::Duration time) {
    const int64_t before = paced.watches[0]->step();
    link.Set(c.trouble.conditions);
    absl::SleepFor(time);
    link.Set(healthy);
    return paced.watches[0]->step() - before;
  };
  const absl::Time start = absl::Now();
  const int64_t meanwhile = suffer(kLong);
  const absl::Duration outage = paced.watches[0]->WaitForFullSpeed(start);
  suffer(kShort);
  paced.Finish();
  // A worker without a heartbeat for its lease is retired: what it had not reported is done again.
  const bool may_lose_lease = c.to.role == Role::kChief;
  paced.ExpectCounts(may_lose_lease ? kMostUnreportedSteps : 0);
  for (const auto& watch : paced.watches) {
    EXPECT_EQ(watch->setbacks().falls, 0);
    EXPECT_EQ(watch->setbacks().new_stores, 0);
  }
  PrintFigure(absl::StrCat(c.between, " ", c.trouble.name, " for ", Seconds(kLong)),
              absl::StrCat("from its start to full speed: ", Seconds(outage),
                           ", steps meanwhile: ", meanwhile));
}

std::vector<Case> Cases() {
  const std::vector<Trouble> troubles = {
      {"Delay", {.delay = absl::Milliseconds(100)}},
      {"Drop", {.flow = Flow::kHold}},
      {"Partition", {.flow = Flow::kPartition}},
      {"Resets", {.mean_bytes_to_reset = 4000}},
  };
  std::vector<Case> cases;
  for (const Trouble& trouble : troubles) {
    cases.push_back({"ChiefPs", kChiefTask, PsTask(1), trouble});
    cases.push_back({"WorkerPs", WorkerTask(1), PsTask(1), trouble});
    cases.push_back({"WorkerChief", WorkerTask(1), kChiefTask, trouble});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Links, FailureNetworkTest, testing::ValuesIn(Cases()),
                         [](const auto& c) { return c.param.between + c.param.trouble.name; });

}  // namespace
}  // namespace keelson
