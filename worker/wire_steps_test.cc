// Steps on devices whose memory the host cannot use: gradients and values go by wire memory.
#include <algorithm>
#include <limits>
#include <thread>

#include "core/device/factory/device_factory.h"
#include "gmock/gmock.h"
#include "testing/device/device_testing.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// Counts what is copied to it, and fails on demand.
class WatchedDevice : public HostlessDevice {
 public:
  using HostlessDevice::HostlessDevice;

  absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int64_t floats) override {
    if (floats > largest) return absl::ResourceExhaustedError("cuda:0: use a smaller batch");
    return HostlessDevice::Allocate(floats);
  }
  void Upload(absl::Span<const uint8_t> from, const DeviceEvent* after, ValueDecoder* decoder,
              DeviceMemory* to, DeviceEvent* done) override {
    ++uploads;
    HostlessDevice::Upload(from, after, decoder, to, done);
  }

  int64_t largest = std::numeric_limits<int64_t>::max();
  int uploads = 0;
};

class WireStepsTest : public WorkerTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    options_.config.mutable_transfer()->set_depth(GetParam());
    cpu_ = std::move(devices_);
    auto cpu = CreateDevice("cpu", {.threads = 1});
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    auto device = std::make_unique<WatchedDevice>(*std::move(cpu));
    device_ = device.get();
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::move(device));
    devices_ = MakePeerGroup(std::move(devices));
  }
  // Compares the norms of all steps here and on the CPU with the same work, under other lease ids.
  void ExpectNormsOfTheCpu(const std::function<void(uint64_t first_id)>& add_leases) {
    add_leases(50);
    ASSERT_EQ(Run(), absl::OkStatus());
    EXPECT_TRUE(wire_);
    const Exchanges found = std::exchange(exchanges_, {});
    EXPECT_THAT(found.norms, Not(IsEmpty()));
    devices_.swap(cpu_);
    add_leases(60);
    ASSERT_EQ(Run(), absl::OkStatus());
    EXPECT_FALSE(wire_);
    EXPECT_EQ(found.norms, exchanges_.norms);
    EXPECT_EQ(found.pulls, exchanges_.pulls);
    EXPECT_EQ(found.steps, exchanges_.steps);
    devices_.swap(cpu_);
  }

  std::unique_ptr<DeviceGroup> cpu_;
  WatchedDevice* device_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Depths, WireStepsTest, testing::Values(1, 2));

TEST_P(WireStepsTest, TrainAsOnTheCpu) {
  ExpectNormsOfTheCpu([this](uint64_t id) { chief_.AddLease(id, 0, 30); });
  EXPECT_LT(exchanges_.norms.back(), exchanges_.norms.front());
}

TEST_P(WireStepsTest, AreClippedAsOnTheCpu) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  ExpectNormsOfTheCpu([this](uint64_t id) { chief_.AddLease(id, 0, 5); });
  EXPECT_NEAR(exchanges_.norms[0], 0.01, 1e-6);
}

TEST_P(WireStepsTest, UseTheValuesThatWereFetchedAnew) {
  const HurryingClock clock;
  clock_ = &clock;
  ExpectNormsOfTheCpu([this](uint64_t id) { chief_.AddLease(id, 0, 5); });
}

TEST_P(WireStepsTest, RoundsAndContestedTicketsAreThoseOfTheCpu) {
  ExpectNormsOfTheCpu([this](uint64_t id) {
    chief_.AddLease(id, 0, 3);
    chief_.AddSynchronousLease(id + 1, 3, 1, false);
    chief_.AddSynchronousLease(id + 2, 4, 1, true);
    chief_.AddLease(id + 3, 5, 3);
  });
}

TEST_P(WireStepsTest, AContestedGradientThatComesTooLateIsNotSent) {
  chief_.AddSynchronousLease(50, 3, 1, true);
  chief_.AddSynchronousLease(51, 4, 1, true);
  chief_.DoNotAdmit(50);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(4));
  EXPECT_THAT(exchanges_.offered, ElementsAre(SizeIs(2)));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(51, 1)));
}

TEST_P(WireStepsTest, VariablesAreLoadedOnceAStepAndAsTheyArrive) {
  std::vector<int> uploads;
  on_push_ = [&] {
    uploads.push_back(device_->uploads);
    return absl::OkStatus();
  };
  chief_.AddLease(50, 0, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  if (GetParam() == 1) {
    EXPECT_THAT(exchanges_.told, ElementsAre(1, 0, 1, 0, 1, 0));
    EXPECT_THAT(uploads, ElementsAre(4, 6, 8)) << "before End waits for the whole answer";
  } else {
    EXPECT_THAT(exchanges_.told, IsEmpty());
    EXPECT_THAT(uploads, ElementsAre(2, 4, 6));
  }
}

TEST_P(WireStepsTest, ALossThatIsNotFiniteIsToldAndNotPushed) {
  initial_ = std::numeric_limits<float>::quiet_NaN();
  chief_.AddLease(50, 0, 1);
  std::thread chief([this] {
    chief_.AwaitNonFiniteLoss();
    chief_.SetPhase(v1::FAILED, "the loss is not finite");
  });
  const absl::Status status = Run();
  chief.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(exchanges_.steps, IsEmpty());
}

TEST_P(WireStepsTest, ANewMembershipGetsMemoryOfItsOwn) {
  chief_.AddLease(50, 0, 100);
  int pushes = 0;
  on_push_ = [&] {
    if (pushes++ > 0) return absl::OkStatus();
    chief_.Lose();
    chief_.AddLease(60, 0, 2);
    return absl::AbortedError("membership of worker-1 is over");
  };
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.incarnations, SizeIs(2));
  EXPECT_TRUE(wire_);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
}

// ---- Devices that have too little memory, or fail.

TEST_P(WireStepsTest, ABatchThatIsTooLargeForTheDeviceIsPermanent) {
  device_->largest = 10;  // the model's variables have 8 and 2
  chief_.AddLease(50, 0, 1);
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("use a smaller batch"));
  EXPECT_THAT(exchanges_.steps, IsEmpty());
  EXPECT_EQ(chief_.left(), 1) << "its work goes to others";
}

TEST_P(WireStepsTest, AModelThatIsTooLargeForTheDeviceIsPermanent) {
  device_->largest = 3;
  EXPECT_EQ(Run().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(chief_.registered(), IsEmpty());
}

}  // namespace
}  // namespace keelson
