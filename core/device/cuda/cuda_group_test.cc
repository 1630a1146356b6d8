// Several GPUs in one process.
#include <nccl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/device/device_group.h"
#include "core/device/factory/device_factory.h"
#include "testing/device/emulated_gpu_testing.h"

namespace keelson {
namespace {

using testing::HasSubstr;

constexpr int kGpus = 3;

class CudaGroupTest : public EmulatedGpuTest {
 protected:
  void TearDown() override {
    group_.reset();
    EmulatedGpuTest::TearDown();
  }

  // On new GPUs.
  void ResetGpus(const cuda_emulation::Options& options) {
    group_.reset();
    EXPECT_EQ(cuda_emulation::Leaks(), "");
    Reset(options);
  }
  // A group, and what it logged.
  std::string OpenGroup(const char* name = "cuda:0,1,2") {
    group_.reset();
    testing::internal::CaptureStderr();
    auto group = CreateDevices(name);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(group.ok()) << group.status();
    if (group.ok()) group_ = *std::move(group);
    return log;
  }

  // The sums of three rounds, each of which computes new gradients on all GPUs; nothing waits.
  Floats SumsOfRounds() {
    constexpr int64_t kSize = 1000;
    std::vector<Memory> gradients;
    std::vector<DeviceMemory*> pointers;
    for (int i = 0; i < kGpus; ++i) {
      gradients.push_back(*group_->device(i)->Allocate(kSize));
      pointers.push_back(gradients.back().get());
    }
    const Memory total = *group_->first()->Allocate(kSize);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < kGpus; ++i) {
        group_->device(i)->Fill(0.1f * static_cast<float>(i + 1 + 10 * round), kSize, pointers[i]);
      }
      group_->ReduceToFirst(kSize, pointers);
      group_->first()->Axpy(1, kSize, *pointers[0], total.get());
    }
    Floats sums(kSize);
    EXPECT_TRUE(group_->first()->CopyToHost(*total, absl::MakeSpan(sums)).ok());
    for (int i = 0; i < kGpus; ++i) EXPECT_TRUE(group_->device(i)->Synchronize().ok());
    return sums;
  }

  std::unique_ptr<DeviceGroup> group_;
};

TEST_F(CudaGroupTest, SumsByNcclAndBetweenPeers) {
  for (uint64_t seed : OrderSeeds()) {
    for (bool peer_access : {true, false}) {
      for (bool nccl : {true, false}) {
        SCOPED_TRACE(absl::StrCat("order seed ", seed, " peers ", peer_access, " nccl ", nccl));
        ResetGpus({.gpus = kGpus, .peer_access = peer_access, .order_seed = seed});
        if (!nccl) cuda_emulation::FailCall("ncclCommInitAll", 1, ncclSystemError);
        OpenGroup();
        ASSERT_EQ(group_->size(), kGpus);
        const Floats sums = SumsOfRounds();
        for (float sum : sums) ASSERT_NEAR(sum, 3 * 0.6f + 3 * 3.0f, 1e-5);
        EXPECT_EQ(Floats(1000, sums[0]), sums);
      }
    }
  }
}

TEST_F(CudaGroupTest, SaysHowItSums) {
  ResetGpus({.gpus = kGpus});
  EXPECT_THAT(OpenGroup("cuda:0,2"), HasSubstr("device cuda:0,2: sums gradients by NCCL\n"));
  EXPECT_THAT(group_->name(), testing::MatchesRegex("cuda:0 \\(.*\\), cuda:2 \\(.*\\)"));
  cuda_emulation::FailCall("ncclCommInitAll", 1, ncclSystemError);
  EXPECT_THAT(OpenGroup("cuda:1,0"),
              HasSubstr("device cuda:1,0: sums gradients by copies between the GPUs (NCCL: "
                        "ncclCommInitAll: "));
  EXPECT_THAT(group_->first()->name(), testing::StartsWith("cuda:1 "));
}

TEST_F(CudaGroupTest, EachGpuMustBeThere) {
  ResetGpus({.gpus = 2});
  const absl::Status status = CreateDevices("cuda:1,2").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(status.message()),
            "device cuda: no CUDA device: expected a number below 2 (the GPUs here), found 2");
}

TEST_F(CudaGroupTest, AFailureIsTheFirstDevices) {
  struct Case {
    const char* call;
    int error;
    const char* text;
  };
  for (const Case& c :
       {Case{"ncclReduce", ncclInternalError, "device cuda:0: ReduceToFirst: ncclReduce: "},
        Case{"ncclGroupEnd", ncclUnhandledCudaError,
             "device cuda:0: ReduceToFirst: ncclGroupEnd: "}}) {
    ResetGpus({.gpus = 2});
    OpenGroup("cuda:0,1");
    const Memory first = *group_->device(0)->Allocate(4), second = *group_->device(1)->Allocate(4);
    DeviceMemory* const memories[] = {first.get(), second.get()};
    cuda_emulation::FailCall(c.call, 1, c.error);
    group_->ReduceToFirst(4, memories);
    EXPECT_THAT(std::string(group_->first()->status().message()), testing::StartsWith(c.text));
    EXPECT_EQ(group_->first()->Synchronize(), group_->first()->status());
  }
}

TEST_F(CudaGroupTest, AFailedReplicaIsTheFirstDevicesFailure) {
  for (bool nccl : {true, false}) {
    ResetGpus({.gpus = 2});
    if (!nccl) cuda_emulation::FailCall("ncclCommInitAll", 1, ncclSystemError);
    OpenGroup("cuda:0,1");
    const Memory first = *group_->device(0)->Allocate(4), second = *group_->device(1)->Allocate(4);
    DeviceMemory* const memories[] = {first.get(), second.get()};
    group_->device(1)->Fill(1, 5, second.get());
    group_->ReduceToFirst(4, memories);
    EXPECT_EQ(group_->first()->status().message(),
              "device cuda:1: Fill: expected memory of 5 floats, found 4");
  }
}

// Whichever call fails: the status of one of the devices says so.
TEST_F(CudaGroupTest, EachCallMayFail) {
  for (bool nccl : {true, false}) {
    bool failed = true;
    for (int64_t count = 1; failed; ++count) {
      ASSERT_LT(count, 1000);
      SCOPED_TRACE(absl::StrCat("nccl ", nccl, " call ", count));
      // The fault that has not happened has hit what gives something back.
      group_.reset();
      Reset({.gpus = 2, .peer_access = count % 2 == 0});
      if (!nccl) cuda_emulation::FailCall("ncclCommInitAll", 1, ncclSystemError);
      OpenGroup("cuda:0,1");
      const Memory x = *group_->device(0)->Allocate(4), y = *group_->device(1)->Allocate(4);
      DeviceMemory* const memories[] = {x.get(), y.get()};
      cuda_emulation::FailCall("*", count, cudaErrorUnknown);
      group_->ReduceToFirst(4, memories);
      failed = cuda_emulation::PendingFaults() == 0;
      const absl::Status statuses[] = {group_->device(0)->status(), group_->device(1)->status()};
      EXPECT_EQ(statuses[0].ok() && statuses[1].ok(), !failed);
      for (const absl::Status& status : statuses) {
        if (status.ok()) continue;
        EXPECT_THAT(std::string(status.message()),
                    testing::MatchesRegex("device cuda:[01]: (ReduceToFirst|AddFromPeer): "
                                          "[a-zA-Z]+.*: .+"));
      }
    }
  }
  group_.reset();
  Reset({});
}

TEST_F(CudaGroupTest, SumsOfNothing) {
  ResetGpus({.gpus = 2});
  OpenGroup("cuda:0,1");
  const Memory first = *group_->device(0)->Allocate(0), second = *group_->device(1)->Allocate(0);
  DeviceMemory* const memories[] = {first.get(), second.get()};
  group_->ReduceToFirst(0, memories);
  EXPECT_TRUE(group_->first()->Synchronize().ok());
}

}  // namespace
}  // namespace keelson
