// What stale gradients cost on real digits, and what the servers' remedies win back. Staleness is
// forced: `staleness` + 1 workers take turns, so every gradient is exactly so many pushes old. All
// in one thread, the same at every run. Prints the accuracies.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/client/sharded_parameter_client.h"
#include "core/cluster/placement.h"
#include "core/cluster/task_proto.h"
#include "core/config/config_flags.h"
#include "core/data/open_datasets.h"
#include "core/data/record_order.h"
#include "core/device/factory/device_factory.h"
#include "core/model/model.h"
#include "gtest/gtest.h"
#include "ps_server/service/parameter_handler.h"
#include "tests/convergence/jobs.h"

namespace keelson {
namespace {

constexpr int64_t kEpochs = 6;

enum class Remedy { kNone, kScaledRate, kDelayCompensation };

std::string Name(Remedy remedy) {
  switch (remedy) {
    case Remedy::kNone:
      return "plain";
    case Remedy::kScaledRate:
      return "lr / (1 + staleness)";
    case Remedy::kDelayCompensation:
      return "DC-ASGD-a";
  }
  return "";
}

// A model, its data, a server, and the workers that take turns.
class ForcedStaleness {
 public:
  ForcedStaleness(float rate, int staleness, Remedy remedy) {
    EXPECT_TRUE(LoadConfig(rate, remedy));
    device_ = CreateDevice("cpu", {.threads = 1}).value();
    model_ = Model::Create(config_.model(), device_.get()).value();
    data_ = OpenDatasets(config_.data(), model_->spec().records, config_.train().seed()).value();
    StartServer();
    for (int w = 0; w <= staleness; ++w) AddWorker(w);
  }

  // Accuracy on the evaluation records after the last epoch; 0 when the loss became infinite.
  double Train() {
    const int64_t batch = config_.train().batch_size();
    const int64_t records = data_.train->num_records();
    int64_t step = 0;
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const RecordOrder order(records, config_.train().seed(), epoch, false);
      for (int64_t begin = 0; begin + batch <= records; begin += batch, ++step) {
        Step(step, order, begin, batch);
        if (diverged_) return 0;
      }
    }
    EXPECT_EQ(largest_staleness_, static_cast<int64_t>(workers_.size()) - 1);
    return Accuracy();
  }

 private:
  bool LoadConfig(float rate, Remedy remedy) {
    auto config = ResolveTrainConfig("configs/mnist_mlp.textproto", {});
    EXPECT_TRUE(config.ok()) << config.status();
    if (!config.ok()) return false;
    config_ = *std::move(config);
    config_.mutable_data()->set_data_dir(kRealDigits);
    // Plain descent at a constant rate, so that nothing but staleness differs.
    config_.mutable_optimizer()->mutable_sgd();
    config_.mutable_optimizer()->clear_clip_global_norm();
    config_.mutable_learning_rate()->set_base(rate);
    config_.mutable_learning_rate()->mutable_constant();
    v1::StaleGradientConfig* stale = config_.mutable_consistency()->mutable_stale_gradients();
    stale->set_scale_learning_rate(remedy == Remedy::kScaledRate);
    if (remedy == Remedy::kDelayCompensation) stale->mutable_delay_compensation();
    return true;
  }

  static constexpr int kMostWorkers = 100;

  static MembershipId IdOf(int index) {
    const uint64_t number = 100 + static_cast<uint64_t>(index);
    return {number, number};
  }
  void StartServer() {
    placement_ = Placement::Compute(model_->variables(), 1);
    v1::InitializeShardRequest request;
    request.mutable_header()->set_incarnation(1);
    *request.mutable_placement() = placement_.ToProto();
    request.set_placement_fingerprint(placement_.Fingerprint());
    *request.mutable_optimizer() = config_.optimizer();
    *request.mutable_learning_rate() = config_.learning_rate();
    request.set_seed(config_.train().seed());
    *request.mutable_stale_gradients() = config_.consistency().stale_gradients();
    request.mutable_members()->set_epoch(1);
    for (int index = 0; index < kMostWorkers; ++index) {
      v1::MemberList::Member* const member = request.mutable_members()->add_members();
      *member->mutable_task() = TaskToProto({Role::kWorker, index});
      member->set_incarnation(IdOf(index).incarnation);
      member->set_membership_secret(IdOf(index).secret);
    }
    v1::InitializeShardResponse response;
    const absl::Status status = server_.Initialize(request, &response);
    ASSERT_TRUE(status.ok()) << status;
  }

  void AddWorker(int index) {
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, index};
    options.membership = IdOf(index);
    auto client = ShardedParameterClient::Create(
        std::move(options), model_->variables(), placement_,
        std::make_unique<InlineBulkTransport>(std::vector<BulkHandler*>{&server_}), Clock::Real(),
        &stop_);
    ASSERT_TRUE(client.ok()) << client.status();
    ASSERT_TRUE((*client)->Pull().ok());
    workers_.push_back(*std::move(client));
  }

  void Load(const ParameterClient& client) {
    for (size_t v = 0; v < client.values().size(); ++v) {
      ASSERT_TRUE(model_->SetVariable(v, client.values()[v]).ok());
    }
  }

  void Step(int64_t step, const RecordOrder& order, int64_t begin, int64_t batch) {
    ParameterClient& client = *workers_[step % workers_.size()];
    Load(client);
    records_.clear();
    for (int64_t i = 0; i < batch; ++i) records_.push_back(order.Record(begin + i));
    ASSERT_TRUE(data_.train->Read(records_, &batch_).ok());
    const auto result =
        model_->ComputeGradients(batch_, {}, {.arrays = client.gradients()}, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    diverged_ = !result->has_gradients;
    if (diverged_) return;
    client.Begin(step);
    const auto pushed = client.End();
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    largest_staleness_ = std::max(largest_staleness_, (*pushed)->staleness);
  }

  double Accuracy() {
    ParameterClient& client = *workers_.front();
    EXPECT_TRUE(client.Pull().ok());
    Load(client);
    records_.resize(data_.eval->num_records());
    std::iota(records_.begin(), records_.end(), 0);
    EXPECT_TRUE(data_.eval->Read(records_, &batch_).ok());
    const std::vector<MetricSpec> metrics = {MetricSpec()};
    const auto sums = model_->Evaluate(batch_, metrics);
    EXPECT_TRUE(sums.ok()) << sums.status();
    return MetricValues(model_->spec(), *sums, metrics).at("accuracy");
  }

  v1::TrainConfig config_;
  StopSignal stop_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  Datasets data_;
  Placement placement_;
  ParameterHandler server_{ParameterHandler::Options(), Clock::Real(), &stop_};
  std::vector<std::unique_ptr<ShardedParameterClient>> workers_;
  std::vector<int64_t> records_;
  Batch batch_;
  int64_t largest_staleness_ = 0;
  bool diverged_ = false;
};

double AccuracyWith(float rate, int staleness, Remedy remedy) {
  const double accuracy = ForcedStaleness(rate, staleness, remedy).Train();
  std::printf("MLP, rate %.2f, staleness %2d, %-21s %s\n", rate, staleness,
              absl::StrCat(Name(remedy), ":").c_str(),
              accuracy > 0 ? absl::StrFormat("accuracy %.4f", accuracy).c_str() : "diverged");
  std::fflush(stdout);
  return accuracy;
}

class StalenessTest : public testing::TestWithParam<float> {
 protected:
  void SetUp() override {
    if (!FileExists(kRealDigits)) GTEST_SKIP() << "skipped: no ../shared/data";
  }
};

TEST_P(StalenessTest, WithoutStalenessTheRemediesChangeNothing) {
  const double plain = AccuracyWith(GetParam(), 0, Remedy::kNone);
  EXPECT_GT(plain, 0.9);
  EXPECT_EQ(AccuracyWith(GetParam(), 0, Remedy::kScaledRate), plain);
  EXPECT_EQ(AccuracyWith(GetParam(), 0, Remedy::kDelayCompensation), plain);
}

TEST_P(StalenessTest, SomeStaleness) {
  const double plain = AccuracyWith(GetParam(), 4, Remedy::kNone);
  EXPECT_GT(plain, 0.9);
  // The smaller steps are also slower ones.
  EXPECT_GT(AccuracyWith(GetParam(), 4, Remedy::kScaledRate), 0.85);
  EXPECT_GT(AccuracyWith(GetParam(), 4, Remedy::kDelayCompensation), plain - 0.01);
}

// Where the rate is too high for so much staleness, only the scaled rate is sure to hold.
TEST_P(StalenessTest, MuchStaleness) {
  AccuracyWith(GetParam(), 16, Remedy::kNone);
  EXPECT_GT(AccuracyWith(GetParam(), 16, Remedy::kScaledRate), 0.7);
  AccuracyWith(GetParam(), 16, Remedy::kDelayCompensation);
}

INSTANTIATE_TEST_SUITE_P(Rates, StalenessTest, testing::Values(0.03F, 0.1F),
                         [](const auto& info) { return info.index == 0 ? "Low" : "High"; });

}  // namespace
}  // namespace keelson
