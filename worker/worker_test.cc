#include "worker/worker.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <limits>

#include "core/device/device_factory.h"
#include "core/model/model_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/fake_chief.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// 32 examples of 4 features; the class is the larger half.
class FourFeatures : public Dataset {
 public:
  int64_t num_records() const override { return 32; }
  const Shape& example_shape() const override { return shape_; }
  absl::Status Read(absl::Span<const int64_t> records, Batch* batch) const override {
    const auto count = static_cast<int64_t>(records.size());
    *batch = {Tensor(Shape({count, 4})), Tensor(Shape({count}))};
    for (int64_t i = 0; i < count; ++i) {
      const bool upper = records[static_cast<size_t>(i)] % 2 == 0;
      for (int64_t j = 0; j < 4; ++j) {
        batch->features.data()[4 * i + j] = (j < 2) == upper ? 1.0f : 0.0f;
      }
      batch->labels.data()[i] = upper ? 0.0f : 1.0f;
    }
    return absl::OkStatus();
  }

 private:
  const Shape shape_ = Shape({4});
};

// What the worker asked of the servers.
struct Pushes {
  std::vector<int64_t> steps;
  std::vector<double> norms;
};

// Servers that apply plain gradient descent.
class FakeClient : public ParameterClient {
 public:
  FakeClient(const std::vector<VariableSpec>& variables, float initial, Pushes* pushes)
      : pushes_(pushes) {
    for (const VariableSpec& variable : variables) {
      values_.emplace_back(variable.shape);
      for (float& value : values_.back().span()) value = initial;
    }
  }

  absl::Span<const Tensor> values() const override { return values_; }
  absl::Status Pull() override { return absl::OkStatus(); }
  absl::StatusOr<PushResult> Push(int64_t step, absl::Span<const Tensor> gradients) override {
    if (on_push) {
      const absl::Status status = on_push();
      if (!status.ok()) return status;
    }
    double sum = 0;
    for (size_t i = 0; i < gradients.size(); ++i) {
      for (int64_t j = 0; j < gradients[i].size(); ++j) {
        const float gradient = gradients[i].data()[j];
        sum += static_cast<double>(gradient) * static_cast<double>(gradient);
        values_[i].data()[j] -= 0.5f * gradient;
      }
    }
    pushes_->steps.push_back(step);
    pushes_->norms.push_back(std::sqrt(sum));
    return PushResult{3, 1};
  }

  std::function<absl::Status()> on_push;

 private:
  std::vector<Tensor> values_;
  Pushes* const pushes_;
};

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(model {
             input_shape: 4
             layers { name: "dense_1" dense { units: 2 } }
             loss { kind: SOFTMAX_CROSS_ENTROPY }
           }
           train { batch_size: 4 })",
        &options_.config));
    options_.self = {Role::kWorker, 1};
    options_.incarnation = 9;
    options_.peer = "host:2";
    options_.config_hash = 0xabc;
    options_.retry.first_pause = absl::Nanoseconds(1);
    options_.retry.longest_pause = absl::Nanoseconds(1);
    const auto spec = InferModelSpec(options_.config.model());
    ASSERT_TRUE(spec.ok()) << spec.status();
    variables_ = spec->variables;
    v1::GetModelResponse model;
    *model.mutable_placement() = Placement::Compute(variables_, 1).ToProto();
    model.add_ps_addresses("ps-0:1");
    chief_.SetModel(model);
    auto device = CreateDevice("cpu", {.threads = 1});
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  absl::Status Run() {
    const ParameterClientFactory make_client = [this](const Placement& placement,
                                                      const std::vector<std::string>& addresses)
        -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
      EXPECT_EQ(placement.num_shards(), 1);
      EXPECT_THAT(addresses, ElementsAre("ps-0:1"));
      if (!client_error_.ok()) return client_error_;
      auto client = std::make_unique<FakeClient>(variables_, initial_, &pushes_);
      client->on_push = on_push_;
      return client;
    };
    Worker worker(options_, &chief_, make_client, device_.get(), &dataset_, Clock::Real(), &stop_);
    return worker.Run();
  }

  WorkerOptions options_;
  std::vector<VariableSpec> variables_;
  FakeChief chief_;
  FourFeatures dataset_;
  std::unique_ptr<Device> device_;
  StopSignal stop_;
  Pushes pushes_;
  float initial_ = 0;
  absl::Status client_error_;
  std::function<absl::Status()> on_push_;
};

TEST_F(WorkerTest, TrainsOnItsTicketsInOrderAndLeaves) {
  chief_.AddLease(50, 0, 2);
  chief_.AddLease(51, 2, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(pushes_.steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 2), Pair(51, 3)));
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.registered(), SizeIs(1));
  EXPECT_EQ(chief_.registered()[0].peer(), "host:2");
  const v1::WorkerProgress sums = chief_.sums();
  EXPECT_EQ(sums.steps(), 5);
  EXPECT_EQ(sums.examples(), 20);
  EXPECT_EQ(sums.staleness_sum(), 15);
  EXPECT_EQ(sums.push_retries(), 5);
  EXPECT_GT(sums.loss_sum(), 0);
  EXPECT_FALSE(stop_.raised()) << "the caller's signal is the caller's";
}

TEST_F(WorkerTest, PulledValuesReachTheModel) {
  chief_.AddLease(50, 0, 60);
  ASSERT_EQ(Run(), absl::OkStatus());
  // Ever smaller gradients: the problem is separable, and each step starts from the last values.
  EXPECT_LT(pushes_.norms.back(), 0.2 * pushes_.norms.front());
}

TEST_F(WorkerTest, ClipsTheWholeGradient) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  chief_.AddLease(50, 0, 2);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_THAT(pushes_.norms, SizeIs(2));
  EXPECT_NEAR(pushes_.norms[0], 0.01, 1e-6);
}

TEST_F(WorkerTest, ALossThatIsNotFiniteIsToldAndNotPushed) {
  initial_ = std::numeric_limits<float>::quiet_NaN();
  chief_.AddLease(50, 0, 1);
  std::thread chief([this] {
    chief_.AwaitNonFiniteLoss();
    chief_.SetPhase(v1::FAILED, "the loss is not finite");
  });
  const absl::Status status = Run();
  chief.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the loss is not finite"));
  EXPECT_THAT(pushes_.steps, IsEmpty());
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, StopEndsTrainingAndGivesBackWhatIsLeft) {
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    stop_.Raise();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
}

TEST_F(WorkerTest, AServerThatStaysAwayEndsTheWorker) {
  chief_.AddLease(50, 0, 100);
  on_push_ = [] { return absl::UnavailableError("waiting for ps-1 for 10m"); };
  const absl::Status status = Run();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1"));
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, TicketsOfALostLeaseAreNotTrained) {
  chief_.AddLease(50, 0, 100);
  // Lost in the first push; the chief's answer to a heartbeat or to Next says so.
  int pushed = 0;
  on_push_ = [&] {
    if (pushed++ > 0) return absl::OkStatus();
    chief_.Lose();
    chief_.AddLease(60, 0, 2);
    chief_.AwaitHeartbeats(2);
    return absl::OkStatus();
  };
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(pushes_.steps, ElementsAre(0, 0, 1));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(60, 2)));
  EXPECT_THAT(chief_.registered(), SizeIs(2));
}

TEST_F(WorkerTest, ErrorsBeforeTrainingEndItAfterGoodManners) {
  client_error_ = absl::InvalidArgumentError("the servers hold another model");
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(chief_.left(), 1);
}

TEST_F(WorkerTest, AModelThatCannotBeBuiltIsAnError) {
  options_.config.mutable_model()->clear_layers();
  EXPECT_EQ(Run().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WorkerTest, AnotherConfigurationIsRefused) {
  chief_.FailNext("Register", {absl::FailedPreconditionError("both hashes")});
  EXPECT_EQ(Run().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(chief_.left(), 0);
}

TEST_F(WorkerTest, APositionBeyondTheDataIsAnError) {
  chief_.AddLease(50, 0, 1);
  class Short : public FourFeatures {
    int64_t num_records() const override { return 2; }
  };
  Short dataset;
  Worker worker(
      options_, &chief_,
      [this](const Placement&,
             const std::vector<std::string>&) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
        return std::make_unique<FakeClient>(variables_, 0.0f, &pushes_);
      },
      device_.get(), &dataset, Clock::Real(), &stop_);
  EXPECT_EQ(worker.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
