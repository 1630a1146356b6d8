// A small model, its placements, and the messages to servers that hold it, for tests.
#ifndef KEELSON_PS_SERVER_SHARD_TESTING_H_
#define KEELSON_PS_SERVER_SHARD_TESTING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/clock.h"
#include "core/base/stop_signal.h"
#include "ps_server/block_store.h"
#include "ps_server/parameter_handler.h"

namespace keelson {

// Elements of whole arrays by name: a variable, or "<variable>/<Slot>".
using Arrays = std::map<std::string, std::vector<float>>;

inline constexpr uint64_t kTestConfigHash = 0xabc;
inline constexpr uint64_t kTestChief = 77;
inline constexpr uint64_t kTestSeed = 5;
inline constexpr float kTestLearningRate = 0.5f;

// Two variables that are split over shards, and three that are not.
std::vector<VariableSpec> TestVariables();
// Blocks begin and end within rows.
Placement TestPlacement(int num_shards);
v1::OptimizerConfig OptimizerFromText(const std::string& text);
BlockStore::Options StoreOptions(Placement placement, int shard, const std::string& optimizer);

// The gradient of element `element` in push `sequence`: anything, but always the same.
float TestGradient(int variable, int64_t element, uint64_t sequence);
std::string BytesOf(const std::vector<float>& values);

// From kTestChief, for initial values.
v1::InitializeShardRequest InitializeRequest(const Placement& placement, int shard,
                                             const std::string& optimizer = "sgd {}");
// Asks for every block of the shard.
v1::PullRequest PullOf(const Placement& placement, int shard);
// One message with TestGradient for every block of the shard.
v1::PushRequest PushOf(const Placement& placement, int shard, uint64_t incarnation,
                       uint64_t sequence);
// The same with one value for all elements.
v1::PushRequest ConstantPushOf(const Placement& placement, int shard, uint64_t incarnation,
                               uint64_t sequence, float gradient);
// Puts the blocks of an answer where they belong.
void Receive(const Placement& placement, const v1::PullResponse& response, Arrays* arrays);

// A server without a transport.
struct TestServer {
  ManualClock clock;
  StopSignal end;
  ParameterHandler handler{{/*incarnation=*/9, kTestConfigHash}, &clock, &end};
};
using TestServers = std::vector<std::unique_ptr<TestServer>>;

TestServers NewServers(int count);
// One initialised server per shard; with initial values when `restore_prefix` is empty.
TestServers StartServers(const Placement& placement, const std::string& optimizer,
                         const std::string& restore_prefix);
Arrays PullAll(const Placement& placement, const TestServers& servers);
// PushOf to every shard; fails when any block has seen it before.
void PushAll(const Placement& placement, const TestServers& servers, uint64_t incarnation,
             uint64_t sequence);

std::string NewTestDirectory();

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SHARD_TESTING_H_
