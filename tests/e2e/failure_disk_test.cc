// The disk under the model directory is full, read-only or gone: training goes on, the chief says
// so and tries again, and the job ends with its final snapshot.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "gtest/gtest.h"
#include "tests/e2e/failure_testing.h"

namespace keelson {
namespace {

constexpr int64_t kMaxSteps = 1250;

// Mounts are this process's and its children's.
bool MayMount() {
  static const bool may =
      unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return may;
}

class FailureDiskTest : public testing::Test {
 protected:
  FailureDiskTest() : paced_({.max_steps = kMaxSteps, .save_steps = 25}) {}

  const std::string& model_dir() const { return paced_.job.model_dir(); }

  // Causes trouble, waits until the chief has complained twice while training goes on, ends the
  // trouble, and expects the job to end well.
  void Survive(const std::string& name, const std::function<void()>& begin,
               const std::function<void()>& end) {
    paced_.StartAndWatch(75);
    const int64_t before = paced_.watches[0]->step();
    begin();
    paced_.job.WaitForLog(kChiefTask, " failed: ", 2);
    paced_.watches[0]->WaitForStep(before + 75);
    const int64_t during = paced_.watches[0]->step();
    end();
    const absl::Time healed = absl::Now();
    EXPECT_TRUE(WaitUntil(
        [&] {
          const auto latest = ReadLatestCounted(model_dir());
          return latest.ok() && latest->global_step > before;
        },
        absl::Seconds(60)));
    const absl::Duration until_snapshot = absl::Now() - healed;
    paced_.Finish();
    paced_.ExpectCounts(0);
    for (const auto& watch : paced_.watches) EXPECT_EQ(watch->setbacks().falls, 0);
    PrintFigure(name,
                absl::StrCat("steps trained meanwhile: ", during - before,
                             ", from its end to the next snapshot: ", Seconds(until_snapshot)));
  }

  PacedJob paced_;
};

TEST_F(FailureDiskTest, Full) {
  if (!MayMount()) GTEST_SKIP() << "a disk of its own needs the right to mount";
  ASSERT_TRUE(CreateDirectories(model_dir()).ok());
  ASSERT_EQ(mount("tmpfs", model_dir().c_str(), "tmpfs", 0, "size=4m"), 0);
  const std::string ballast = JoinPath(model_dir(), "ballast");
  Survive(
      "disk full",
      [&] {
        std::ofstream file(ballast, std::ios::binary);
        const std::string bytes(64 * 1024, 'x');
        while (file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) {
        }
      },
      [&] { EXPECT_EQ(unlink(ballast.c_str()), 0); });
  paced_.watches.clear();
  umount2(model_dir().c_str(), MNT_DETACH);
}

TEST_F(FailureDiskTest, ReadOnly) {
  if (!MayMount()) GTEST_SKIP() << "a read-only disk needs the right to mount";
  const char* const path = model_dir().c_str();
  Survive(
      "model_dir read-only",
      [&] {
        // A second mount of the directory over itself: files that are open stay writable.
        ASSERT_EQ(mount(path, path, nullptr, MS_BIND, nullptr), 0);
        ASSERT_EQ(mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
      },
      [&] { EXPECT_EQ(umount2(path, MNT_DETACH), 0); });
}

TEST_F(FailureDiskTest, ReadOnlyWhenTheChiefIsReplaced) {
  if (!MayMount()) GTEST_SKIP() << "a read-only disk needs the right to mount";
  const char* const path = model_dir().c_str();
  Survive(
      "model_dir read-only, chief killed and restarted",
      [&] {
        ASSERT_EQ(mount(path, path, nullptr, MS_BIND, nullptr), 0);
        ASSERT_EQ(mount(nullptr, path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
        paced_.job.Kill(kChiefTask);
        paced_.job.Start(kChiefTask);
      },
      [&] { EXPECT_EQ(umount2(path, MNT_DETACH), 0); });
}

// As a file system that is not mounted for a while: what was there is there again.
TEST_F(FailureDiskTest, GoneForAWhile) {
  const std::string away = model_dir() + ".away";
  // The job may make the directory again before a file is there.
  const auto put_in_the_way = [&] {
    std::error_code error;
    std::filesystem::remove_all(model_dir(), error);
    return WriteFileAtomically(model_dir(), "in the way").ok();
  };
  Survive(
      "model_dir gone for a while",
      [&] {
        ASSERT_EQ(rename(model_dir().c_str(), away.c_str()), 0);
        ASSERT_TRUE(WaitUntil(put_in_the_way, absl::Seconds(60)));
      },
      [&] {
        ASSERT_EQ(unlink(model_dir().c_str()), 0);
        ASSERT_EQ(rename(away.c_str(), model_dir().c_str()), 0);
      });
}

// In some calls and not in others, so that operations are interrupted in their midst.
TEST_F(FailureDiskTest, Errs) {
  const std::string marker = model_dir() + ".errs";
  paced_.job.RunBehind(BehindFaultyStorage(model_dir(), "", marker));
  Survive(
      "storage errs", [&] { EXPECT_EQ(WriteFileAtomically(marker, ""), absl::OkStatus()); },
      [&] { EXPECT_EQ(RemoveFile(marker), absl::OkStatus()); });
}

// With all snapshots; the chief makes it again.
TEST_F(FailureDiskTest, Removed) {
  paced_.StartAndWatch(75);
  // In one instant: the chief, which writes there, would pull files from under a slow removal.
  const std::string removed_dir = model_dir() + ".removed";
  ASSERT_EQ(rename(model_dir().c_str(), removed_dir.c_str()), 0);
  // An operation of the chief that began before may still make and remove files there.
  const auto remove = [&] {
    std::error_code error;
    std::filesystem::remove_all(removed_dir, error);
    return !std::filesystem::exists(removed_dir);
  };
  ASSERT_TRUE(WaitUntil(remove, absl::Seconds(60)));
  const absl::Time removed = absl::Now();
  EXPECT_TRUE(WaitUntil([&] { return ReadLatestCounted(model_dir()).ok(); }, absl::Seconds(60)));
  const absl::Duration until_snapshot = absl::Now() - removed;
  paced_.Finish();
  paced_.ExpectCounts(0);
  PrintFigure("model_dir removed",
              absl::StrCat("from then to the next snapshot: ", Seconds(until_snapshot)));
}

}  // namespace
}  // namespace keelson
