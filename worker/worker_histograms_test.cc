// What a worker writes for TensorBoard, by what it pushes.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "core/device/factory/device_factory.h"
#include "gmock/gmock.h"
#include "keelson/v1/event.pb.h"
#include "testing/device/device_testing.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Whether the host can use the device's memory, and the depth.
class WorkerHistogramsTest : public WorkerTest,
                             public testing::WithParamInterface<std::tuple<bool, int>> {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    directory_ = FreshDirectory();
    options_.config.mutable_checkpoint()->set_model_dir(directory_);
    options_.config.mutable_train()->set_histogram_steps(2);
    options_.config.mutable_transfer()->set_depth(std::get<1>(GetParam()));
    options_.self = {Role::kWorker, 0};
    if (std::get<0>(GetParam())) return;
    auto cpu = CreateDevice("cpu", {.threads = 1});
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<HostlessDevice>(*std::move(cpu)));
    devices_ = MakePeerGroup(std::move(devices));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string Directory() const { return directory_ + "/gradients"; }
  // Those that were handed over, by their steps.
  std::vector<v1::Event> Events() const {
    std::vector<std::string> names = *ListDirectory(Directory());
    std::sort(names.begin(), names.end());
    std::vector<v1::Event> events;
    for (const std::string& name : names) {
      EXPECT_TRUE(events.emplace_back().ParseFromString(*ReadFile(JoinPath(Directory(), name))));
    }
    return events;
  }
  // They are of these steps, and have the norms of what was pushed then.
  void ExpectHistogramsOfSteps(const std::vector<int64_t>& steps) const {
    const std::vector<v1::Event> events = Events();
    ASSERT_THAT(events, SizeIs(steps.size()));
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(events[i].step(), steps[i]);
      std::vector<std::string> tags;
      double sum_squares = 0;
      for (const v1::Summary::Value& value : events[i].summary().value()) {
        tags.push_back(value.tag());
        sum_squares += value.histo().sum_squares();
      }
      EXPECT_THAT(tags, UnorderedElementsAre("gradients/dense_1/kernel", "gradients/dense_1/bias",
                                             "gradients/non_finite"));
      const auto pushed = std::find(exchanges_.steps.begin(), exchanges_.steps.end(), steps[i] - 1);
      ASSERT_NE(pushed, exchanges_.steps.end()) << steps[i];
      const double norm = exchanges_.norms.at(pushed - exchanges_.steps.begin());
      EXPECT_NEAR(std::sqrt(sum_squares), norm, 1e-6 * norm) << steps[i];
      EXPECT_GT(norm, 0);
    }
  }

 private:
  std::string directory_;
};

INSTANTIATE_TEST_SUITE_P(Memory, WorkerHistogramsTest,
                         testing::Combine(testing::Bool(), testing::Values(1, 2)));

TEST_P(WorkerHistogramsTest, AreOfThePushedGradients) {
  chief_.AddLease(50, 0, 5);
  ASSERT_EQ(Run(), absl::OkStatus());
  ExpectHistogramsOfSteps({1, 3, 5});
}

TEST_P(WorkerHistogramsTest, AreOfTheClippedGradients) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  chief_.AddLease(50, 0, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_NEAR(exchanges_.norms.at(0), 0.01, 1e-6);
  ExpectHistogramsOfSteps({1, 3});
}

TEST_P(WorkerHistogramsTest, AContestedGradientThatIsNotSentHasNone) {
  options_.config.mutable_train()->set_histogram_steps(1);
  chief_.AddSynchronousLease(50, 3, 1, true);
  chief_.AddSynchronousLease(51, 4, 1, true);
  chief_.DoNotAdmit(50);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(4));
  ExpectHistogramsOfSteps({5});
}

TEST_P(WorkerHistogramsTest, GoOnInTheNextMembership) {
  options_.config.mutable_train()->set_histogram_steps(1);
  chief_.AddLease(50, 0, 100);
  int pushes = 0;
  on_push_ = [&] {
    if (pushes++ > 0) return absl::OkStatus();
    chief_.Lose();
    chief_.AddLease(60, 7, 2);
    return absl::AbortedError("membership of worker-0 is over");
  };
  ASSERT_EQ(Run(), absl::OkStatus());
  std::vector<int64_t> steps;
  for (const v1::Event& event : Events()) steps.push_back(event.step());
  EXPECT_THAT(steps, ElementsAre(1, 8, 9));
}

TEST_P(WorkerHistogramsTest, AreWrittenByWorker0Only) {
  options_.self.index = 1;
  chief_.AddLease(50, 0, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(Directory()));
}

TEST_P(WorkerHistogramsTest, AreNotWrittenUnlessWanted) {
  options_.config.mutable_train()->clear_histogram_steps();
  chief_.AddLease(50, 0, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(std::filesystem::exists(Directory()));
}

TEST_P(WorkerHistogramsTest, ADirectoryThatCannotBeWrittenDoesNotEndTheTraining) {
  options_.config.mutable_checkpoint()->set_model_dir("/dev/null");
  chief_.AddLease(50, 0, 3);
  EXPECT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, SizeIs(3));
}

}  // namespace
}  // namespace keelson
