#include "worker/worker.h"

#include <google/protobuf/text_format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
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
struct Exchanges {
  std::vector<int64_t> steps;
  std::vector<double> norms;
  std::vector<std::vector<int>> offered;  // variables, by step
  int pulls = 0;
  int drains = 0;  // with a step under way
};

// Servers that apply plain gradient descent. With depth 2 a step is applied when the next one ends,
// or in Drain.
class FakeClient : public ParameterClient {
 public:
  FakeClient(const std::vector<VariableSpec>& variables, float initial, int depth,
             std::optional<ParameterMemory> memory, Exchanges* exchanges)
      : depth_(depth), initial_(initial), exchanges_(exchanges) {
    for (const VariableSpec& variable : variables) {
      owned_.emplace_back(variable.shape);
      owned_.emplace_back(variable.shape);
      values_.push_back(owned_[owned_.size() - 2].span());
      gradients_.push_back(owned_.back().span());
    }
    if (!memory.has_value()) return;
    values_ = memory->values;
    gradients_ = memory->gradients;
  }

  absl::Span<const absl::Span<float>> values() const override { return values_; }
  absl::Span<const absl::Span<float>> gradients() const override { return gradients_; }
  int depth() const override { return depth_; }
  absl::Status Pull() override {
    EXPECT_FALSE(begun_ || under_way_);
    if (exchanges_->pulls++ > 0) return absl::OkStatus();
    for (const absl::Span<float> values : values_) absl::c_fill(values, initial_);
    return absl::OkStatus();
  }
  void Begin(int64_t step) override {
    EXPECT_GT(exchanges_->pulls, 0) << "trained on no values";
    EXPECT_FALSE(begun_);
    begun_ = true;
    exchanges_->steps.push_back(step);
    exchanges_->offered.emplace_back();
  }
  void Offer(int variable) override {
    EXPECT_TRUE(begun_);
    exchanges_->offered.back().push_back(variable);
  }
  absl::StatusOr<std::optional<PushResult>> End() override {
    EXPECT_TRUE(begun_);
    begun_ = false;
    if (on_push) {
      const absl::Status status = on_push();
      if (!status.ok()) return status;
    }
    exchanges_->norms.push_back(Norm());
    const std::optional<PushResult> before = std::exchange(under_way_, Apply());
    return depth_ == 1 ? std::exchange(under_way_, std::nullopt) : before;
  }
  absl::StatusOr<std::optional<PushResult>> Drain() override {
    if (under_way_.has_value()) ++exchanges_->drains;
    return std::exchange(under_way_, std::nullopt);
  }

  std::function<absl::Status()> on_push;

 private:
  double Norm() const {
    double sum = 0;
    for (const absl::Span<float> gradients : gradients_) {
      for (const float g : gradients) sum += static_cast<double>(g) * static_cast<double>(g);
    }
    return std::sqrt(sum);
  }
  PushResult Apply() {
    for (size_t i = 0; i < values_.size(); ++i) {
      for (size_t j = 0; j < values_[i].size(); ++j) values_[i][j] -= 0.5f * gradients_[i][j];
    }
    PushResult result;
    result.step = exchanges_->steps.back();
    result.staleness = 3;
    result.retries = 1;
    result.bytes_pushed = 100;
    result.bytes_pulled = 200;
    result.waited_for_credit = absl::Milliseconds(250);
    return result;
  }

  const int depth_;
  const float initial_;
  Exchanges* const exchanges_;
  std::vector<Tensor> owned_;
  std::vector<absl::Span<float>> values_;
  std::vector<absl::Span<float>> gradients_;
  bool begun_ = false;
  std::optional<PushResult> under_way_;
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
           train { batch_size: 4 }
           transfer { depth: 1 })",
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
    const int depth = static_cast<int>(options_.config.transfer().depth());
    const ParameterClientFactory make_client =
        [this, depth](const Placement& placement, const std::vector<std::string>& addresses,
                      std::optional<ParameterMemory> memory)
        -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
      EXPECT_EQ(placement.num_shards(), 1);
      EXPECT_THAT(addresses, ElementsAre("ps-0:1"));
      if (!client_error_.ok()) return client_error_;
      lent_ = memory.has_value();
      auto client = std::make_unique<FakeClient>(variables_, initial_, depth, memory, &exchanges_);
      client->on_push = on_push_;
      return client;
    };
    Worker worker(options_, &chief_, make_client, device_.get(), &dataset_, clock_, &stop_);
    return worker.Run();
  }

  WorkerOptions options_;
  std::vector<VariableSpec> variables_;
  FakeChief chief_;
  FourFeatures dataset_;
  std::unique_ptr<Device> device_;
  StopSignal stop_;
  Exchanges exchanges_;
  float initial_ = 0;
  bool lent_ = false;
  const Clock* clock_ = Clock::Real();
  absl::Status client_error_;
  std::function<absl::Status()> on_push_;
};

TEST_F(WorkerTest, TrainsOnItsTicketsInOrderAndLeaves) {
  chief_.AddLease(50, 0, 2);
  chief_.AddLease(51, 2, 3);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 2), Pair(51, 3)));
  EXPECT_EQ(chief_.left(), 1);
  EXPECT_THAT(chief_.registered(), SizeIs(1));
  EXPECT_EQ(chief_.registered()[0].peer(), "host:2");
  const v1::WorkerProgress sums = chief_.sums();
  EXPECT_EQ(sums.steps(), 5);
  EXPECT_EQ(sums.examples(), 20);
  EXPECT_EQ(sums.staleness_sum(), 15);
  EXPECT_EQ(sums.push_retries(), 5);
  EXPECT_EQ(sums.bytes_pushed(), 500);
  EXPECT_EQ(sums.bytes_pulled(), 1000);
  EXPECT_EQ(sums.credit_wait_seconds(), 1.25);
  EXPECT_GT(sums.loss_sum(), 0);
  EXPECT_FALSE(stop_.raised()) << "the caller's signal is the caller's";
}

TEST_F(WorkerTest, GradientsAreOfferedAsTheyAreReadyInTheModelsOwnMemory) {
  chief_.AddLease(50, 0, 2);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_TRUE(lent_);
  EXPECT_THAT(exchanges_.offered, ElementsAre(ElementsAre(1, 0), ElementsAre(1, 0)));
  EXPECT_EQ(exchanges_.pulls, 1) << "later values come with the answers to pushes";
}

TEST_F(WorkerTest, TwoStepsUnderWayAreAcknowledgedOneAfterTheOther) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 60);
  ASSERT_EQ(Run(), absl::OkStatus());
  EXPECT_FALSE(lent_) << "values arrive while the model computes";
  EXPECT_THAT(exchanges_.steps, SizeIs(60));
  EXPECT_GE(exchanges_.drains, 1) << "the last step's";
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 60)));
  EXPECT_EQ(chief_.sums().steps(), 60);
  EXPECT_EQ(chief_.sums().staleness_sum(), 180);
  EXPECT_LT(exchanges_.norms.back(), 0.2 * exchanges_.norms.front());
}

// A chief without more work may be waiting for the step under way: then another lease follows.
TEST_F(WorkerTest, AStepUnderWayIsAcknowledgedBeforeAWaitForWork) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 1);
  chief_.Withhold(true);
  std::thread chief([this] {
    chief_.AwaitCompleted(50, 1);
    chief_.AddLease(51, 1, 1);
    chief_.Withhold(false);
  });
  EXPECT_EQ(Run(), absl::OkStatus());
  chief.join();
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 1));
}

TEST_F(WorkerTest, AStepUnderWayIsCountedWhenTrainingIsStopped) {
  options_.config.mutable_transfer()->set_depth(2);
  chief_.AddLease(50, 0, 100);
  on_push_ = [this] {
    stop_.Raise();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(50, 1)));
}

// Two seconds pass whenever somebody looks.
class HurryingClock : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + Monotonic(); }
  absl::Duration Monotonic() const override { return absl::Seconds(2) * ++looks_; }

 private:
  mutable std::atomic<int64_t> looks_ = 0;
};

TEST_F(WorkerTest, ValuesAreFetchedAnewAfterALongWait) {
  const HurryingClock clock;
  clock_ = &clock;
  for (const int depth : {1, 2}) {
    options_.config.mutable_transfer()->set_depth(depth);
    exchanges_ = {};
    chief_.AddLease(50 + depth, 0, 3);
    ASSERT_EQ(Run(), absl::OkStatus());
    EXPECT_EQ(exchanges_.pulls, 3);
  }
  EXPECT_THAT(chief_.completed(), ElementsAre(Pair(51, 3), Pair(52, 3)));
}

TEST_F(WorkerTest, PulledValuesReachTheModel) {
  chief_.AddLease(50, 0, 60);
  ASSERT_EQ(Run(), absl::OkStatus());
  // Ever smaller gradients: the problem is separable, and each step starts from the last values.
  EXPECT_LT(exchanges_.norms.back(), 0.2 * exchanges_.norms.front());
}

TEST_F(WorkerTest, ClipsTheWholeGradient) {
  options_.config.mutable_optimizer()->set_clip_global_norm(0.01f);
  chief_.AddLease(50, 0, 2);
  ASSERT_EQ(Run(), absl::OkStatus());
  ASSERT_THAT(exchanges_.norms, SizeIs(2));
  EXPECT_NEAR(exchanges_.norms[0], 0.01, 1e-6);
  EXPECT_THAT(exchanges_.offered, ElementsAre(IsEmpty(), IsEmpty())) << "before it is clipped";
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
  EXPECT_THAT(exchanges_.steps, IsEmpty());
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
  EXPECT_THAT(exchanges_.steps, ElementsAre(0, 0, 1));
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
      [this](const Placement&, const std::vector<std::string>&,
             std::optional<ParameterMemory> memory)
          -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
        return std::make_unique<FakeClient>(variables_, 0.0f, 1, memory, &exchanges_);
      },
      device_.get(), &dataset, Clock::Real(), &stop_);
  EXPECT_EQ(worker.Run().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
