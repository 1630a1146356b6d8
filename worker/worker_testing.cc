#include "worker/worker_testing.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "core/device/factory/device_factory.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

absl::Status FourFeatures::Read(absl::Span<const int64_t> records, Batch* batch) const {
  const auto count = static_cast<int64_t>(records.size());
  *batch = MakeBatch(Tensor(Shape({count, 4})), Tensor(Shape({count})));
  for (int64_t i = 0; i < count; ++i) {
    const bool upper = records[i] % 2 == 0;
    for (int64_t j = 0; j < 4; ++j) {
      batch->features[0].numbers.data()[4 * i + j] = (j < 2) == upper ? 1.0f : 0.0f;
    }
    batch->labels[0].data()[i] = upper ? 0.0f : 1.0f;
  }
  return absl::OkStatus();
}

FakeClient::FakeClient(const std::vector<VariableSpec>& variables, float initial, size_t depth,
                       std::optional<ParameterMemory> memory, Exchanges* exchanges)
    : depth_(depth), initial_(initial), exchanges_(exchanges) {
  for (const VariableSpec& variable : variables) {
    owned_.emplace_back(variable.shape);
    owned_.emplace_back(variable.shape);
    values_.push_back(owned_[owned_.size() - 2].span());
    gradients_.push_back(owned_.back().span());
  }
  if (!memory.has_value()) return;
  if (memory->wire.has_value()) {
    wire_ = *std::move(memory->wire);
    return;
  }
  values_ = memory->values;
  gradients_ = memory->gradients;
}

absl::Status FakeClient::PullFor(int64_t step, StillWanted) {
  EXPECT_FALSE(begun_ || under_way_);
  ahead_.reset();
  ++exchanges_->pulls;
  exchanges_->pulled_for.push_back(step);
  if (!pulled_) {
    for (const absl::Span<float> values : values_) absl::c_fill(values, initial_);
  }
  pulled_ = true;
  SendAll();
  return absl::OkStatus();
}

void FakeClient::PullAhead(int64_t step) {
  EXPECT_FALSE(begun_ || under_way_ || ahead_);
  ahead_ = step;
  exchanges_->asked_ahead.push_back(step);
}

void FakeClient::Begin(int64_t step, std::optional<Aggregation> aggregation) {
  EXPECT_GT(exchanges_->pulls, 0) << "trained on no values";
  EXPECT_FALSE(begun_ || ahead_);
  EXPECT_FALSE(aggregation.has_value() && under_way_.has_value());
  begun_ = true;
  aggregation_ = aggregation;
  applied_ = false;
  untold_ = values_.size();
  offered_.clear();
  if (aggregation.has_value()) exchanges_->aggregations.push_back(*aggregation);
  exchanges_->steps.push_back(step);
  exchanges_->offered.emplace_back();
  exchanges_->omitted.emplace_back();
}

void FakeClient::Offer(size_t variable) {
  EXPECT_TRUE(begun_);
  exchanges_->offered.back().push_back(variable);
  offered_[variable] = GradientOf(variable);
}

absl::StatusOr<std::optional<size_t>> FakeClient::NextValues() {
  EXPECT_TRUE(begun_);
  if (depth_ > 1 || aggregation_.has_value()) return std::nullopt;
  if (!applied_) Apply();
  if (untold_ == 0) return std::nullopt;
  exchanges_->told.push_back(--untold_);
  Send(untold_);
  return untold_;
}

absl::StatusOr<std::optional<PushResult>> FakeClient::End() {
  EXPECT_TRUE(begun_);
  begun_ = false;
  if (on_push) {
    const absl::Status status = on_push();
    if (!status.ok()) return status;
  }
  exchanges_->norms.push_back(Norm());
  if (aggregation_.has_value()) return Result();
  if (!applied_) Apply();
  const std::optional<PushResult> before = std::exchange(under_way_, Result());
  if (depth_ > 1) {
    gradient_set_ = 1 - gradient_set_;
    value_set_ = 1 - value_set_;
  }
  SendAll();
  return depth_ == 1 ? std::exchange(under_way_, std::nullopt) : before;
}

absl::StatusOr<std::optional<PushResult>> FakeClient::Drain() {
  if (under_way_.has_value()) ++exchanges_->drains;
  return std::exchange(under_way_, std::nullopt);
}

absl::Span<const absl::Span<float>> FakeClient::Elements(
    const std::vector<absl::Span<float>>& arrays) const {
  if (wire_.has_value()) return {};
  return arrays;
}

std::vector<float> FakeClient::GradientOf(size_t variable) const {
  std::vector<float> gradient(gradients_[variable].begin(), gradients_[variable].end());
  if (wire_.has_value()) {
    const auto& bytes = wire_->gradients.at(gradient_set_).at(variable);
    EXPECT_EQ(bytes.size(), 4 * gradient.size());
    std::memcpy(gradient.data(), bytes.data(), bytes.size());
  }
  return gradient;
}

void FakeClient::Omit(size_t variable) {
  EXPECT_TRUE(begun_);
  EXPECT_FALSE(aggregation_.has_value());
  exchanges_->omitted.back().push_back(variable);
}

void FakeClient::Send(size_t variable) {
  for (size_t set = 0; wire_.has_value() && set < wire_->values.size(); ++set) {
    std::vector<float> values(values_[variable].begin(), values_[variable].end());
    if (set != value_set_) absl::c_fill(values, std::nanf(""));
    std::memcpy(wire_->values[set].at(variable).data(), values.data(), 4 * values.size());
  }
}

double FakeClient::Norm() const {
  double sum = 0;
  for (size_t v = 0; v < gradients_.size(); ++v) {
    const std::vector<float> gradient = GradientOf(v);
    const auto offered = offered_.find(v);
    if (offered != offered_.end()) {
      EXPECT_EQ(offered->second, gradient) << "variable " << v << " changed after its Offer";
    }
    for (const float g : gradient) sum += static_cast<double>(g) * static_cast<double>(g);
  }
  return std::sqrt(sum);
}

void FakeClient::Apply() {
  applied_ = true;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (absl::c_linear_search(exchanges_->omitted.back(), i)) continue;
    const std::vector<float> gradient = GradientOf(i);
    for (size_t j = 0; j < values_[i].size(); ++j) values_[i][j] -= 0.5f * gradient[j];
  }
}

PushResult FakeClient::Result() const {
  PushResult result;
  result.refused = exchanges_->refused.contains(exchanges_->aggregations.size());
  result.step = exchanges_->steps.back();
  result.staleness = 3;
  result.retries = 1;
  result.bytes_pushed = 100;
  result.bytes_pulled = 200;
  result.waited_for_credit = absl::Milliseconds(250);
  return result;
}

void WorkerTest::SetUp() {
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
  options_.new_membership = [this] { return MembershipId{next_incarnation_++, kSecret}; };
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
  model.set_member_epoch(30);
  model.set_servers_version(1);
  chief_.SetModel(model);
  auto devices = CreateDevices("cpu", {.threads = 1});
  ASSERT_TRUE(devices.ok()) << devices.status();
  devices_ = *std::move(devices);
}

absl::Status WorkerTest::Run() {
  const size_t depth = options_.config.transfer().depth();
  const ParameterClientFactory make_client =
      [this,
       depth](ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
    EXPECT_EQ(request.placement.num_shards(), 1);
    EXPECT_EQ(request.ps_addresses, std::vector<std::string>{"ps-0:1"});
    if (!client_error_.ok()) return client_error_;
    EXPECT_EQ(request.membership.secret, kSecret);
    exchanges_.incarnations.push_back(request.membership.incarnation);
    exchanges_.member_epoch = request.member_epoch;
    client_stop_ = request.stop;
    lent_ = request.memory.has_value();
    wire_ = lent_ && request.memory->wire.has_value();
    auto client =
        std::make_unique<FakeClient>(variables_, initial_, depth, request.memory, &exchanges_);
    client->on_push = on_push_;
    client->on_servers = on_servers_;
    return client;
  };
  Worker worker(options_, &chief_, make_client, devices_.get(), &dataset_, clock_, &stop_);
  return worker.Run();
}

}  // namespace keelson
