// Jobs that are stopped and started again on the same model directory.
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"
#include "tests/support/model_directory.h"

namespace keelson {
namespace {

// Runs a job to somewhere in the middle and stops it as by SIGTERM. Returns the step of its last
// snapshot.
int64_t RunToTheMiddle(const std::string& model_dir, int servers, int workers) {
  LocalCluster cluster({servers, workers, false, LongerConfig(model_dir)});
  cluster.gate().CloseAt(60);
  cluster.Start();
  cluster.WaitForStep(60);
  const absl::Status status = cluster.StopChief();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(*DoneStep(model_dir), -1);
  return *VerifiedLatestStep(model_dir);
}

// Runs the rest, and expects that it begins at `step`.
void RunTheRest(const std::string& model_dir, int servers, int workers, int64_t step) {
  LocalCluster cluster({servers, workers, false, LongerConfig(model_dir)});
  cluster.Start();
  cluster.ExpectDone();
  EXPECT_EQ(*DoneStep(model_dir), 200);
  EXPECT_EQ(*VerifiedLatestStep(model_dir), 200);
  const Coordinator::Status status = cluster.chief().coordinator()->GetStatus();
  EXPECT_EQ(status.step, 200);
  EXPECT_EQ(status.totals.steps(), 200 - step);
}

TEST(ResumeTest, StoppedJobLosesNoStep) {
  const std::string model_dir = FreshDirectory();
  const int64_t step = RunToTheMiddle(model_dir, 2, 2);
  EXPECT_GE(step, 60);  // the snapshot of the stop
  RunTheRest(model_dir, 2, 2, step);
}

TEST(ResumeTest, WithMoreServers) {
  const std::string model_dir = FreshDirectory();
  RunTheRest(model_dir, 3, 2, RunToTheMiddle(model_dir, 1, 2));
}

TEST(ResumeTest, WithFewerServers) {
  const std::string model_dir = FreshDirectory();
  RunTheRest(model_dir, 1, 2, RunToTheMiddle(model_dir, 3, 2));
}

TEST(ResumeTest, WithOneWorkerItEndsWhereAnUninterruptedJobDoes) {
  const std::string interrupted = FreshDirectory();
  RunTheRest(interrupted, 3, 1, RunToTheMiddle(interrupted, 2, 1));
  const std::string whole = FreshDirectory();
  RunTheRest(whole, 1, 1, 0);
  EXPECT_TRUE(*ReadModelValues(interrupted + "/model.ckpt-200") ==
              *ReadModelValues(whole + "/model.ckpt-200"));
}

}  // namespace
}  // namespace keelson
