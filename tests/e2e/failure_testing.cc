#include "tests/e2e/failure_testing.h"

#include <cstdio>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

constexpr int kServers = 2;

}  // namespace

PacedJob::PacedJob(const CountingJobOptions& counting_options, int worker_count,
                   Job::Evaluator evaluator)
    : counting(counting_options),
      workers(worker_count),
      job({.ps = kServers, .workers = worker_count, .evaluator = evaluator},
          CountingJobConfig(counting_options)) {
  job.AddFlag(Role::kChief, "--lease=3");
  SetPace({.delay = kPaceDelay});
}

void PacedJob::SetPace(const LinkConditions& conditions) {
  for (int w = 0; w < workers; ++w) {
    for (int s = 0; s < kServers; ++s) job.Link(WorkerTask(w), PsTask(s)).Set(conditions);
  }
}

void PacedJob::StartAndWatch(int64_t step) {
  job.StartAll();
  for (int s = 0; s < kServers; ++s) {
    watches.push_back(std::make_unique<StepWatch>(job.Address(PsTask(s))));
  }
  for (const auto& watch : watches) watch->WaitForStep(step);
}

void PacedJob::Finish(const std::vector<Task>& killed) {
  SetPace({});
  job.ExpectAllDoneBut(killed);
}

CountedSnapshot PacedJob::FinalSnapshot() const {
  EXPECT_EQ(*DoneStep(job.model_dir()), counting.max_steps);
  const auto snapshot = ReadLatestCounted(job.model_dir());
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  if (!snapshot.ok()) return {};
  EXPECT_EQ(snapshot->global_step, counting.max_steps);
  EXPECT_EQ(snapshot->updates.size(), static_cast<size_t>(kServers));
  return *snapshot;
}

void PacedJob::ExpectCounts(int64_t most_twice) const {
  for (const int64_t updates : FinalSnapshot().updates) {
    EXPECT_GE(updates, counting.max_steps);
    EXPECT_LE(updates, counting.max_steps + most_twice);
  }
}

void PrintFigure(const std::string& event, const std::string& figure) {
  std::printf("[ figure   ] %s: %s\n", event.c_str(), figure.c_str());
}

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.2f s", absl::ToDoubleSeconds(duration));
}

}  // namespace keelson
