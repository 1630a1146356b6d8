// The chief and the servers are killed at random points of 50 snapshots: every snapshot that was
// committed can be read, and is a cut.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "gtest/gtest.h"
#include "tests/e2e/failure_testing.h"

namespace keelson {
namespace {

constexpr int kSnapshots = 50;
constexpr uint64_t kSeed = 4;

std::vector<SnapshotInfo> Committed(const std::string& model_dir) {
  const auto list = CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List();
  EXPECT_TRUE(list.ok()) << list.status();
  return list.ok() ? *list : std::vector<SnapshotInfo>();
}

TEST(SnapshotKillTest, EveryCommittedSnapshotVerifies) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  std::mt19937_64 random(kSeed);
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  // A snapshot every step: the chief and the servers do hardly anything else.
  PacedJob paced({.max_steps = 100'000, .save_steps = 1, .keep_max = 0});
  paced.job.StartAll();
  int kills = 0;
  size_t verified = 0;
  while (verified < kSnapshots) {
    const size_t wanted = verified + draw(1, 4);
    ASSERT_TRUE(WaitUntil([&] { return Committed(paced.job.model_dir()).size() >= wanted; },
                          absl::Seconds(60)));
    absl::SleepFor(absl::Microseconds(draw(0, 30'000)));
    std::vector<Task> victims = {kChiefTask, PsTask(0), PsTask(1)};
    std::shuffle(victims.begin(), victims.end(), random);
    victims.resize(draw(1, 3));
    for (const Task& task : victims) paced.job.process(task).Signal(SIGKILL);
    for (const Task& task : victims) paced.job.ExpectExit(task, 128 + SIGKILL);
    ++kills;
    // No process has repaired anything yet.
    const std::vector<SnapshotInfo> committed = Committed(paced.job.model_dir());
    for (; verified < committed.size(); ++verified) {
      const auto snapshot = ReadCountedSnapshot(committed[verified].prefix);
      EXPECT_TRUE(snapshot.ok()) << snapshot.status();
      if (!snapshot.ok()) return;
      EXPECT_EQ(snapshot->global_step, committed[verified].step);
    }
    for (const Task& task : victims) paced.job.Start(task);
  }
  std::printf("%zu snapshots verified, %d kills\n", verified, kills);
}

}  // namespace
}  // namespace keelson
