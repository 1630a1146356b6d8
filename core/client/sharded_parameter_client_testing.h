// What the tests of ShardedParameterClient share: clients of fake shards, and their modes.
#ifndef KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_TESTING_H_
#define KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_TESTING_H_

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "core/client/exchange/fake_shard_testing.h"
#include "core/client/sharded_parameter_client.h"
#include "gmock/gmock.h"

namespace keelson {

// How a client under test exchanges: how many steps at a time, and on whose thread.
struct Mode {
  std::string name;
  size_t depth;
  bool background;
};

void PrintTo(const Mode& mode, std::ostream* out);
std::vector<Mode> AllModes();
std::string NameOfMode(const testing::TestParamInfo<Mode>& info);

// Worker 3, which repeats calls after a microsecond.
ShardedParameterClient::Options FastOptions();
// The value that all elements have; fails when they differ.
float Uniform(absl::Span<const float> values);
void Fill(absl::Span<float> array, float value);
std::unique_ptr<BulkTransport> Inline(std::vector<BulkHandler*> shards);

// "w" has 8 blocks, two messages in float32; "b" shares the first one, for it comes last.
std::vector<VariableSpec> TwoVariables();

// One shard, and what its clients are created with.
class ClientTestBase {
 protected:
  explicit ClientTestBase(std::vector<VariableSpec> variables = TwoVariables());
  std::unique_ptr<ShardedParameterClient> Create(ShardedParameterClient::Options options);

  const std::vector<VariableSpec> variables_;
  const Placement placement_;
  FakeShard shard_{&placement_};
  ManualClock clock_;
  StopSignal stop_;
};

class ModesTestBase : public ClientTestBase, public testing::TestWithParam<Mode> {
 protected:
  using ClientTestBase::ClientTestBase;
  static ShardedParameterClient::Options ModeOptions();
};

// One client in strict mode.
class ClientTest : public ClientTestBase, public testing::Test {
 protected:
  ClientTest() : client_(Create(FastOptions())) {}
  absl::StatusOr<std::optional<PushResult>> Push(int64_t step);

  std::unique_ptr<ShardedParameterClient> client_;
};

// Clients that cannot be created.
class CreateTest : public testing::Test {
 protected:
  absl::Status Create(std::vector<VariableSpec> variables, size_t shards,
                      ShardedParameterClient::Options options = {});
  static void ExpectInvalid(const absl::Status& status, const std::string& text);

  const std::vector<VariableSpec> variables_ = {{"b", Shape({5}), {}}, {"a", Shape({4}), {}}};
  const Placement placement_ =
      Placement::Compute({{"a", Shape({4}), {}}, {"b", Shape({5}), {}}}, /*num_shards=*/1);
  FakeShard shard_{&placement_};
  ManualClock clock_;
  StopSignal stop_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_TESTING_H_
