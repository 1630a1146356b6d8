// Jobs without parameter servers whose processes compute on emulated GPUs (emulated_gpu_test.cc):
// gradients and values travel between the hosts of shards out of page-locked memory.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/e2e/collective_testing.h"
#include "tests/support/job.h"

namespace keelson {
namespace {

using testing::HasSubstr;

// The emulation executes each thread of each kernel.
constexpr int kEmulatedSteps = 24;
// Of the values, between devices.
constexpr double kDeviceTolerance = 1e-4;

// Starts a worker with so many GPUs.
void StartWithGpus(CollectiveJob* job, const Task& worker, int gpus) {
  job->UseProgram(worker, "emulated_worker", {{"KEELSON_EMULATED_GPUS", absl::StrCat(gpus)}});
  job->Start(worker, {gpus > 1 ? "--device=cuda:0,1" : "--device=cuda"});
}

TEST(CollectiveGpuTest, HostsWithGpusTrainAsThoseWithoutDo) {
  const std::string config = EvenConfig(kEmulatedSteps);
  CollectiveJob job(config, /*chief=*/true, Job::Evaluator::kNone);
  job.Start(kChiefTask);
  StartWithGpus(&job, WorkerTask(0), 1);
  StartWithGpus(&job, WorkerTask(1), 2);
  job.ExpectAllDone();
  EXPECT_THAT(job.Log(WorkerTask(0)), HasSubstr("training on cuda:0"));
  EXPECT_THAT(job.Log(WorkerTask(1)), HasSubstr("cuda:1"));
  ExpectNothingLost(job, config, /*workers=*/2, kDeviceTolerance);
}

}  // namespace
}  // namespace keelson
