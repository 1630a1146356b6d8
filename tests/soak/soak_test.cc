// A job whose arithmetic is known under random storms for some minutes; then all is healed, and
// what must hold is checked. tests/soak.sh runs it.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/cluster/consistency.h"
#include "gtest/gtest.h"
#include "tests/soak/soak_job.h"
#include "tests/soak/soak_model.h"
#include "tests/soak/storm_sequence.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

// The most steps of one worker between two reports to the chief, at full speed, as after healing.
constexpr int64_t kMostUnreportedSteps = 2000;
constexpr absl::Duration kTick = absl::Milliseconds(50);
// Until every role works, and until the job is done, once all is healed.
constexpr absl::Duration kHealLimit = absl::Minutes(1);
constexpr absl::Duration kEndLimit = absl::Minutes(2);

int64_t NumberFromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  int64_t number = otherwise;
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &number)) << name << "=" << text;
  return number;
}

void PlayStorms(SoakJob* job, StormSequence* storms, absl::Duration duration) {
  const absl::Time end = absl::Now() + duration;
  absl::Time next = absl::Now() + absl::Seconds(3);
  // A chief that had all shards for long may have done all steps.
  const bool may_be_done = job->cluster() == SoakCluster::kHosts;
  const auto done = [&] { return may_be_done && job->job().process(kChiefTask).Poll() == 0; };
  while (absl::Now() < end && !done() && !testing::Test::HasFailure()) {
    if (absl::Now() >= next) {
      storms->Draw();
      next = absl::Now() + absl::Milliseconds(job->Draw(100, 1500));
    }
    storms->Tick(may_be_done);
    absl::SleepFor(kTick);
  }
}

// A step of synchronous mode takes two batches, so that the rest of a job that has steps for
// another mode could take longer than the limit.
void LeaveSynchronousMode(SoakJob* job, StormSequence* storms) {
  const absl::Time limit = absl::Now() + kEndLimit;
  while (!job->job().process(kChiefTask).Poll().has_value() && absl::Now() < limit &&
         !job->SetMode(ConsistencyMode())) {
    storms->Tick(/*may_be_done=*/true);
    absl::SleepFor(kTick);
  }
}

void AwaitEnd(SoakJob* job, StormSequence* storms) {
  const absl::Time limit = absl::Now() + kEndLimit;
  const auto all_done = [job] {
    return std::all_of(job->tasks().begin(), job->tasks().end(),
                       [job](const Task& task) { return job->job().process(task).Poll() == 0; });
  };
  while (!all_done() && absl::Now() < limit) {
    storms->Tick(/*may_be_done=*/true);
    absl::SleepFor(kTick);
  }
  job->job().ExpectAllDone(absl::ZeroDuration());
}

// Of the last snapshot.
void CheckCounts(const std::vector<int64_t>& pushes, int64_t max_steps, SoakJob* job) {
  for (int s = 0; s < static_cast<int>(pushes.size()); ++s) {
    const int64_t updates = pushes[static_cast<size_t>(s)];
    // A server that never crashed has every step; a step is done again only when its report was
    // lost.
    if (!job->HasLostSteps(s)) {
      EXPECT_GE(updates, max_steps) << "ps-" << s;
    }
    EXPECT_LE(updates, max_steps + job->worker_losses() * kMostUnreportedSteps) << "ps-" << s;
    job->Note(absl::StrCat("ps-", s, ": ", updates, " pushes for ", max_steps, " steps"));
  }
}

// The same of synchronous steps over hosts of shards: each counts once, unless both processes that
// had a shard were gone, which the chief has said.
void CheckRounds(const std::vector<int64_t>& updates, int64_t max_steps, SoakJob* job) {
  const std::set<int> lost = job->ShardsSaidToHaveLost();
  for (int s = 0; s < static_cast<int>(updates.size()); ++s) {
    const int64_t counted = updates[static_cast<size_t>(s)];
    EXPECT_LE(counted, max_steps) << "shard-" << s;
    if (!lost.contains(s)) {
      EXPECT_EQ(counted, max_steps) << "shard-" << s;
    }
    std::printf("shard-%d: %lld of %lld steps\n", s, static_cast<long long>(counted),
                static_cast<long long>(max_steps));
  }
}

// Several evaluators have shared the snapshots: each was scored once, the last one, too.
void CheckEvaluations(const std::string& model_dir, int64_t max_steps) {
  const auto evaluations = ReadEvaluations(model_dir);
  ASSERT_TRUE(evaluations.ok()) << evaluations.status();
  ASSERT_FALSE(evaluations->empty());
  std::set<int64_t> steps;
  for (const EvaluationLine& evaluation : *evaluations) {
    EXPECT_TRUE(steps.insert(evaluation.step).second) << evaluation.step << " was scored twice";
  }
  EXPECT_EQ(*steps.rbegin(), max_steps);
}

int64_t GlobalStepOf(const std::string& prefix) {
  const auto bundle = BundleReader::Open(prefix);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  return bundle.ok() ? (*bundle)->ReadInt64("global_step").value_or(-1) : -1;
}

void CheckEnd(const SoakModel& model, SoakJob* job) {
  const int64_t max_steps = model.max_steps;
  EXPECT_EQ(*DoneStep(job->model_dir()), max_steps);
  const auto snapshots =
      CheckpointDirectory(FileSystem::Real(), job->model_dir(), Clock::Real()).List();
  ASSERT_TRUE(snapshots.ok()) << snapshots.status();
  ASSERT_FALSE(snapshots->empty());
  std::vector<int64_t> last;
  for (const SnapshotInfo& info : *snapshots) {
    const auto pushes = model.count_pushes(info.prefix);
    ASSERT_TRUE(pushes.ok()) << pushes.status();
    last = *pushes;
    EXPECT_EQ(GlobalStepOf(info.prefix), info.step);
  }
  EXPECT_EQ(snapshots->back().step, max_steps);
  const auto check = model.cluster == SoakCluster::kServers ? CheckCounts : CheckRounds;
  check(last, max_steps, job);
  CheckEvaluations(job->model_dir(), max_steps);
}

TEST(SoakTest, NothingIsLostUnderRandomStorms) {
  const int64_t seconds = NumberFromEnvironment("KEELSON_SOAK_SECONDS", 120);
  const int64_t seed = NumberFromEnvironment("KEELSON_SOAK_SEED", 1);
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const SoakModel model = DrawSoakModel(absl::Seconds(seconds), &random);
  std::printf("seed %lld, %lld s, %s\n", static_cast<long long>(seed),
              static_cast<long long>(seconds), model.name.c_str());
  SoakJob job(model.cluster, model.config, static_cast<uint64_t>(seed));
  StormSequence storms(&job);
  job.StartAll();
  PlayStorms(&job, &storms, absl::Seconds(seconds));
  job.Note("healing all");
  job.watch().ExpectNoGrowth();
  storms.EndAll(kHealLimit);
  for (const SoakJob::Link& link : job.links()) link.proxy->Heal();
  if (model.cluster == SoakCluster::kServers) LeaveSynchronousMode(&job, &storms);
  AwaitEnd(&job, &storms);
  CheckEnd(model, &job);
  std::printf("storms:\n%s", storms.Counts().c_str());
  if (!HasFailure()) return;
  std::printf("seed %lld failed; what happened:\n", static_cast<long long>(seed));
  job.PrintLog();
}

}  // namespace
}  // namespace keelson
