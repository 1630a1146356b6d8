// A small model, its placements, and the messages to servers that hold it, for tests.
#ifndef KEELSON_PS_SERVER_SERVICE_SHARD_TESTING_H_
#define KEELSON_PS_SERVER_SERVICE_SHARD_TESTING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/stop_signal.h"
#include "core/wire/bulk_messages.h"
#include "core/wire/byte_rope.h"
#include "ps_server/service/parameter_handler.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// The elements of whole arrays, by name: a variable's, or "<variable>/<Slot>".
using Arrays = std::map<std::string, std::vector<float>>;

inline constexpr uint64_t kTestConfigHash = 0xabc;
inline constexpr uint64_t kTestChief = 77;
// The secret of every member.
inline constexpr uint64_t kTestSecret = 0x5ec2e7;
inline constexpr uint64_t kTestSeed = 5;
inline constexpr float kTestLearningRate = 0.5f;

// Two variables that are split over shards, and three that are not.
std::vector<VariableSpec> TestVariables();
// Blocks begin and end within rows.
Placement TestPlacement(size_t num_shards);
v1::OptimizerConfig OptimizerFromText(const std::string& text);
ShardStore::Options StoreOptions(Placement placement, size_t shard, const std::string& optimizer);

// The gradient of element `element` in push `sequence`: an arbitrary value, always the same.
float TestGradient(size_t variable, int64_t element, uint64_t sequence);
std::string BytesOf(const std::vector<float>& values);

// The payload of one block.
std::string EncodeGradient(WireFormat format, const std::vector<float>& gradient);
// The elements that the payload stands for, as an update must decode them.
std::vector<float> DecodeGradient(WireFormat format, const std::string& bytes, int64_t elements);

// `bytes` in fragments of 1..longest bytes, each in its own allocation.
ByteRope Fragmented(absl::string_view bytes, size_t longest, uint64_t seed);

// Applies a float32 gradient.
bool ApplyTo(Block* block, const Optimizer& optimizer, const PushIdentity& push,
             const std::vector<float>& gradient);

// A bulk message with its payload.
struct TestRequest {
  BulkRequest header;
  std::string payload;
};
struct TestResponse {
  BulkResponse header;
  std::string payload;
};

ByteRope MessageOf(const TestRequest& request);
TestResponse ParseResponse(const ByteRope& message);
absl::StatusOr<TestResponse> CallBulk(BulkHandler* server, BulkMethod method,
                                      const TestRequest& request);

// A request of kTestChief for initial values, with TestMembers.
v1::InitializeShardRequest InitializeRequest(const Placement& placement, size_t shard,
                                             const std::string& optimizer = "sgd {}");
// A pull of every block of the shard.
TestRequest PullOf(const Placement& placement, size_t shard);
// One message with TestGradient for every block of the shard.
TestRequest PushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                   uint64_t sequence);
// PushOf with one value for all elements.
TestRequest ConstantPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                           uint64_t sequence, float gradient);
// PushOf with the blocks' gradients and values in these formats.
TestRequest EncodedPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                          uint64_t sequence, WireFormat format, WireFormat pull_format);
// ConstantPushOf for a round.
TestRequest StagedPushOf(const Placement& placement, size_t shard, uint64_t incarnation,
                         uint64_t sequence, const RoundId& round, float weight, float gradient);
// Copies the float32 blocks of an answer into the variables' arrays.
void Receive(const Placement& placement, const TestResponse& response, Arrays* arrays);

// A server without a transport.
struct TestServer {
  explicit TestServer(const std::string& directory = FreshDirectory());

  const std::string model_dir;
  ManualClock clock;
  StopSignal end;
  ParameterHandler handler;
};
using TestServers = std::vector<std::unique_ptr<TestServer>>;

TestServers NewServers(size_t count, const std::string& model_dir = FreshDirectory());
// One initialised server per shard; with initial values when there is no `restore_step`.
TestServers StartServers(const Placement& placement, const std::string& optimizer,
                         const std::string& model_dir = FreshDirectory(),
                         std::optional<int64_t> restore_step = std::nullopt);
// What kTestChief asks of the server that holds a shard.
v1::WriteSnapshotRequest SnapshotRequest(int64_t step, size_t shard = 0, size_t num_shards = 1);
// Has the servers of all shards write a snapshot into the directory that they share, and writes its
// index. Returns its prefix.
std::string WriteBundle(const std::vector<ParameterControl*>& servers, const std::string& model_dir,
                        int64_t step);
Arrays PullAll(const Placement& placement, const TestServers& servers);
// Returns the header of a chief whose term is its incarnation.
v1::RequestHeader HeaderOf(uint64_t incarnation);
v1::ShardStatus StatusOf(ParameterControl* service);
absl::Status CommitRound(ParameterControl* service, const RoundId& round, uint32_t contributions);
// The members of test jobs: incarnations 0 to 299, all of the task and with the secret that
// TestRequests name, and `others`, without those in `without`.
v1::MemberList TestMembers(uint64_t epoch, const std::set<uint64_t>& without = {},
                           const std::set<uint64_t>& others = {});
// Announces them, as the next epoch, through ChiefHeartbeat; fails when the chief is not admitted.
void Announce(ParameterControl* service, const std::set<uint64_t>& without,
              const std::set<uint64_t>& others = {});
// PushOf to every shard; fails when any block has seen it before.
void PushAll(const Placement& placement, const TestServers& servers, uint64_t incarnation,
             uint64_t sequence);

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SHARD_TESTING_H_
