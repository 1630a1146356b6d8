#include "core/client/sharded_parameter_client_testing.h"

#include <algorithm>
#include <utility>

namespace keelson {

using ::testing::HasSubstr;

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

std::vector<Mode> AllModes() {
  return {{"Strict", 1, false}, {"StrictBackground", 1, true}, {"Depth2", 2, true}};
}

std::string NameOfMode(const testing::TestParamInfo<Mode>& info) { return info.param.name; }

ShardedParameterClient::Options FastOptions() {
  ShardedParameterClient::Options options;
  options.self = {Role::kWorker, 3};
  options.membership = {42, 43};
  options.member_epoch = 17;
  options.retry.first_pause = absl::Microseconds(1);
  options.retry.longest_pause = absl::Microseconds(1);
  return options;
}

float Uniform(absl::Span<const float> values) {
  EXPECT_EQ(std::count(values.begin(), values.end(), values[0]),
            static_cast<int64_t>(values.size()));
  return values[0];
}

void Fill(absl::Span<float> array, float value) { std::fill(array.begin(), array.end(), value); }

std::unique_ptr<BulkTransport> Inline(std::vector<BulkHandler*> shards) {
  return std::make_unique<InlineBulkTransport>(std::move(shards));
}

std::vector<VariableSpec> TwoVariables() {
  return {{"w", Shape({2000, 1000}), {}}, {"b", Shape({10}), {}}};
}

ClientTestBase::ClientTestBase(std::vector<VariableSpec> variables)
    : variables_(std::move(variables)), placement_(Placement::Compute(variables_, 1)) {}

std::unique_ptr<ShardedParameterClient> ClientTestBase::Create(
    ShardedParameterClient::Options options) {
  auto client = ShardedParameterClient::Create(std::move(options), variables_, placement_,
                                               Inline({&shard_}), &clock_, &stop_);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

ShardedParameterClient::Options ModesTestBase::ModeOptions() {
  ShardedParameterClient::Options options = FastOptions();
  options.depth = GetParam().depth;
  options.background = GetParam().background;
  return options;
}

absl::StatusOr<std::optional<PushResult>> ClientTest::Push(int64_t step) {
  client_->Begin(step);
  return client_->End();
}

absl::Status CreateTest::Create(std::vector<VariableSpec> variables, size_t shards,
                                ShardedParameterClient::Options options) {
  return ShardedParameterClient::Create(std::move(options), std::move(variables), placement_,
                                        Inline(std::vector<BulkHandler*>(shards, &shard_)), &clock_,
                                        &stop_)
      .status();
}

void CreateTest::ExpectInvalid(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

}  // namespace keelson
