// Hosts of shards die while nothing of the model directory can be read or written: what the others
// hold is enough.
#include <fcntl.h>
#include <stdio.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "gtest/gtest.h"
#include "tests/e2e/collective_testing.h"

namespace keelson {
namespace {

// Sums differ in their last bits, which Adam makes more of where gradients are small.
constexpr double kTolerance = 1e-3;

// As when the file system that it is on goes away: a file is at its place. In one instant, because
// who writes there makes a directory that is missing.
class DirectoryOutage {
 public:
  explicit DirectoryOutage(std::string directory)
      : directory_(std::move(directory)), away_(directory_ + ".away") {
    EXPECT_EQ(WriteFileAtomically(away_, "not a directory"), absl::OkStatus());
    Exchange();
  }
  void End() {
    Exchange();
    EXPECT_EQ(RemoveFile(away_), absl::OkStatus());
  }

 private:
  void Exchange() const {
    EXPECT_EQ(renameat2(AT_FDCWD, away_.c_str(), AT_FDCWD, directory_.c_str(), RENAME_EXCHANGE), 0);
  }

  const std::string directory_;
  const std::string away_;
};

std::string AdamConfig() {
  return absl::StrReplaceAll(
      SlowConfig(), {{"momentum { momentum: 0.9 }", "adam {}"}, {"base: 0.02", "base: 0.001"}});
}

// One after the other, until a single process has all shards, and then back again.
TEST(CollectiveStorageTest, KilledHostsNeedNoModelDirectory) {
  CollectiveJob job(AdamConfig(), /*chief=*/true, Job::Evaluator::kNone);
  job.StartAll();
  job.WaitForLog(kChiefTask, "has a replica", 3);
  job.WaitForStep(kChiefTask, 30);
  DirectoryOutage outage(job.model_dir());
  job.Kill(WorkerTask(1));
  job.WaitForLog(kChiefTask, "shard-2 of worker-1 is from now on shard-2 of chief-0");
  job.WaitForLog(kChiefTask, "shard-2 of chief-0 has a replica at shard-2 of worker-0");
  job.WaitForLog(kChiefTask, "shard-1 of worker-0 has a replica at shard-1 of chief-0");
  job.Kill(WorkerTask(0));
  job.WaitForLog(kChiefTask, "shard-1 of worker-0 is from now on shard-1 of chief-0");
  job.WaitForStep(kChiefTask, LastReportedStep(job.Log(kChiefTask)) + 30);
  job.WaitForLog(kChiefTask, " failed: ");  // a snapshot
  outage.End();
  for (const int worker : {0, 1}) job.Start(WorkerTask(worker));
  job.WaitForLog(kChiefTask, "shard-1 of chief-0 is from now on shard-1 of worker-0");
  job.WaitForLog(kChiefTask, "shard-2 of chief-0 is from now on shard-2 of worker-1");
  job.ExpectAllDone();
  ExpectNothingLost(job, AdamConfig(), /*workers=*/2, kTolerance);
}

}  // namespace
}  // namespace keelson
