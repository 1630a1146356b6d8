#include "core/serving/served_model.h"

#include <atomic>
#include <cmath>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/thread.h"
#include "core/serving/served_model_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class ServedModelTest : public testing::Test {
 protected:
  ServedModelTest() {
    auto served = ServedModel::Create(job_.config(), 1, FileSystem::Real(), Clock::Real());
    EXPECT_TRUE(served.ok()) << served.status();
    served_ = *std::move(served);
  }
  absl::StatusOr<ServedPrediction> Predict(uint64_t user) {
    Batch batch;
    batch.features.resize(1);
    batch.features[0].ids = {user};
    return served_->Predict(std::move(batch));
  }

  ServedJob job_;
  std::unique_ptr<ServedModel> served_;
};

TEST_F(ServedModelTest, WithoutASnapshotThereIsNoPrediction) {
  EXPECT_EQ(served_->Refresh(), absl::OkStatus());
  EXPECT_EQ(served_->step(), std::nullopt);
  EXPECT_EQ(Predict(7).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ServedModelTest, FollowsTheSnapshots) {
  for (const auto& [step, number, probability] :
       {std::tuple(10, 2.0f, 0.880797f), {20, 0.0f, 0.5f}, {30, -2.0f, 0.119203f}}) {
    job_.Commit(step, number);
    ASSERT_EQ(served_->Refresh(), absl::OkStatus());
    EXPECT_EQ(served_->step(), step);
    const auto prediction = Predict(7);
    ASSERT_TRUE(prediction.ok()) << prediction.status();
    EXPECT_EQ(prediction->step, step);
    EXPECT_THAT(prediction->outputs, ElementsAre(FloatNear(probability, 1e-6f)));
  }
}

TEST_F(ServedModelTest, FollowsDeltasWithTheRowsOfTheirChains) {
  const auto probability = [&](uint64_t user) {
    const auto prediction = Predict(user);
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    return prediction.ok() ? prediction->outputs.at(0) : -1;
  };
  job_.Commit(10, 2);
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  job_.CommitDelta(20, {{8, -2.0f}});
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  EXPECT_EQ(served_->step(), 20);
  EXPECT_NEAR(probability(7), 0.880797f, 1e-6f);  // the base's
  EXPECT_NEAR(probability(8), 0.119203f, 1e-6f);  // its own
  job_.CommitDelta(30, {{7, -2.0f}}, /*erased=*/8);
  EXPECT_NEAR(probability(7), 0.880797f, 1e-6f);
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  EXPECT_NEAR(probability(7), 0.119203f, 1e-6f);
  EXPECT_NEAR(probability(8), 0.5f, 1e-6f);
}

TEST_F(ServedModelTest, ASnapshotThatCannotBeReadChangesNothing) {
  job_.Commit(10, 2);
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  job_.Commit(20, 0);
  job_.Damage(20);
  EXPECT_THAT(std::string(served_->Refresh().message()), HasSubstr("model.ckpt-20"));
  EXPECT_EQ(served_->step(), 10);
  auto prediction = Predict(7);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_THAT(prediction->outputs, ElementsAre(FloatNear(0.880797f, 1e-6f)));
  job_.Commit(30, -2);
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  prediction = Predict(7);
  ASSERT_TRUE(prediction.ok()) << prediction.status();
  EXPECT_THAT(prediction->outputs, ElementsAre(FloatNear(0.119203f, 1e-6f)));
}

TEST_F(ServedModelTest, PredictionsGoOnWhileSnapshotsChange) {
  job_.Commit(10, 0.1f);
  ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  std::atomic<bool> done = false;
  std::vector<Thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&] {
      int64_t last = 0;
      while (!done) {
        const auto prediction = Predict(7);
        ASSERT_TRUE(prediction.ok()) << prediction.status();
        // The row of a snapshot is a hundredth of its step: both are of one cut.
        const double expected = 1 / (1 + std::exp(-static_cast<double>(prediction->step) / 100));
        ASSERT_NEAR(prediction->outputs[0], expected, 1e-6);
        ASSERT_GE(prediction->step, last);
        last = prediction->step;
      }
    });
  }
  for (int step = 11; step <= 150; ++step) {
    job_.Commit(step, static_cast<float>(step) / 100);
    ASSERT_EQ(served_->Refresh(), absl::OkStatus());
  }
  done = true;
  for (Thread& client : clients) client.Join();
}

}  // namespace
}  // namespace keelson
