#include "cli/ckpt_rollback.h"

#include <sstream>

#include "core/base/boot_id.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/directory_owner.h"
#include "core/checkpoint/job_file.h"
#include "core/tensor_files/snapshot_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class CkptRollbackTest : public testing::Test {
 protected:
  CkptRollbackTest() {
    for (const int64_t step : {100, 200, 300}) WriteTestSnapshot(directory_, step);
  }

  const std::string directory_ = FreshDirectory();
  CheckpointDirectory snapshots_{FileSystem::Real(), directory_, Clock::Real()};
  std::ostringstream out_;
};

TEST_F(CkptRollbackTest, TheNextJobContinuesFromTheChosenSnapshot) {
  ASSERT_EQ(snapshots_.WriteDoneMarker(300, 1), absl::OkStatus());
  ASSERT_EQ(CreateDirectories(directory_ + "/eval"), absl::OkStatus());
  WriteRawFile(directory_ + "/eval/metrics.jsonl",
               "{\"step\":100,\"loss\":1}\n{\"step\":300,\"loss\":9}\nno json\n");
  WriteRawFile(directory_ + "/eval/metrics-1.jsonl", "{\"step\":200,\"loss\":2}\n");
  ASSERT_EQ(RollBack(directory_, 200, &out_), absl::OkStatus());
  EXPECT_EQ(out_.str(), "the next job continues from " + directory_ +
                            "/model.ckpt-200; left behind: 1 later snapshots, 1 evaluations of "
                            "them\n");
  EXPECT_EQ((*snapshots_.List()).back().step, 200);
  EXPECT_FALSE((*snapshots_.ReadDoneMarker()).has_value());
  EXPECT_EQ(ReadRawFile(directory_ + "/eval/metrics.jsonl"),
            "{\"step\":100,\"loss\":1}\nno json\n");
  EXPECT_EQ(ReadRawFile(directory_ + "/eval/metrics-1.jsonl"), "{\"step\":200,\"loss\":2}\n");
}

TEST_F(CkptRollbackTest, ADirectoryWithoutSnapshotsIsSaidToBeOne) {
  const std::string empty = FreshDirectory();
  for (const std::string& path : {empty, empty + "/none"}) {
    EXPECT_THAT(std::string(RollBack(path, 5, &out_).message()),
                HasSubstr(path + ": no snapshots: expected a file 'checkpoint'"));
  }
}

TEST_F(CkptRollbackTest, NotWhileAJobRunsThere) {
  StopSignal stop;
  DirectoryOwner::Options options;
  options.model_dir = directory_;
  options.self.set_owner(1);
  options.self.set_job("mnist");
  options.self.set_task("chief-0");
  options.self.set_boot_id(BootId());
  options.self.set_lease_seconds(60);
  options.self.set_config_hash("0123456789abcdef");
  auto job = DirectoryOwner::Take(options, FileSystem::Real(), Clock::Real(), &stop);
  ASSERT_TRUE(job.ok()) << job.status();
  (*job)->NoteConfigInUse();
  const absl::Status status = RollBack(directory_, 200, &out_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job mnist, chief-0"));
  EXPECT_EQ((*snapshots_.List()).back().step, 300);
  job->reset();
  ASSERT_EQ(RollBack(directory_, 200, &out_), absl::OkStatus());
  // The next launch finds what was trained there, and nobody in its way.
  const auto stored = ReadJobFile(FileSystem::Real(), directory_);
  ASSERT_TRUE(stored.ok() && stored->has_value());
  EXPECT_EQ((*stored)->job.config_hash(), "0123456789abcdef");
  EXPECT_TRUE((*stored)->job.released());
}

TEST_F(CkptRollbackTest, AStepWithoutASnapshotChangesNothing) {
  ASSERT_EQ(snapshots_.WriteDoneMarker(300, 1), absl::OkStatus());
  const absl::Status status = RollBack(directory_, 250, &out_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected one of 100, 200, 300"));
  EXPECT_EQ((*snapshots_.List()).size(), 3u);
  EXPECT_TRUE((*snapshots_.ReadDoneMarker()).has_value());
}

}  // namespace
}  // namespace keelson
