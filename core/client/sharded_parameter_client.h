// ParameterClient over the servers of a placement.
#ifndef KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_
#define KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_

#include <memory>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/client/parameter_client.h"
#include "core/client/parameter_service.h"
#include "core/client/retry.h"
#include "core/client/transfer_plan.h"
#include "core/cluster/placement.h"
#include "core/cluster/task.h"

namespace keelson {

// Talks to all shards side by side. Blocks whose version has not changed are not fetched again; a
// shard that was initialised anew (its store id differs) is fetched whole.
class ShardedParameterClient : public ParameterClient {
 public:
  struct Options {
    Task self;
    uint64_t incarnation = 0;
    RetryOptions retry;
    // Threads beside the caller's; sensible: shards - 1 for remote services, 0 in process.
    int threads = 0;
  };

  // `variables` are the model's, in the caller's order; `shards[s]` serves shard s. Services, clock
  // and stop signal outlive the client. INVALID_ARGUMENT: the placement is of other variables, or
  // of another number of shards.
  static absl::StatusOr<std::unique_ptr<ShardedParameterClient>> Create(
      const Options& options, absl::Span<const VariableSpec> variables, const Placement& placement,
      std::vector<ParameterService*> shards, const Clock* clock, const StopSignal* stop);

  absl::Span<const Tensor> values() const override { return values_; }
  absl::Status Pull() override;
  absl::StatusOr<PushResult> Push(int64_t step, absl::Span<const Tensor> gradients) override;

 private:
  struct Message {
    PlannedMessage plan;
    std::vector<uint64_t> known_versions;  // per block
  };
  struct Shard {
    ParameterService* service;
    std::vector<Message> messages;
    uint64_t store_id = 0;
    int64_t pulled_step = 0;
    int64_t staleness = 0;
    int64_t retries = 0;
    absl::Status status;
  };

  ShardedParameterClient(const Options& options, absl::Span<const VariableSpec> variables,
                         const Placement& placement, const Clock* clock, const StopSignal* stop);

  absl::Status ForEachShard(absl::FunctionRef<absl::Status(int, Shard*)> work);
  absl::Status PullShard(int index, Shard* shard);
  // False: the server has been initialised anew, and nothing was received.
  absl::StatusOr<bool> PullMessage(int index, Shard* shard, Message* message);
  absl::Status Receive(int index, const v1::PullResponse& response, Message* message);
  absl::Status PushShard(int index, int64_t step, absl::Span<const Tensor> gradients, Shard* shard);
  void FillHeader(v1::RequestHeader* header) const;

  const Options options_;
  const uint64_t placement_fingerprint_;
  const Clock* const clock_;
  const StopSignal* const stop_;
  ThreadPool pool_;
  std::vector<Tensor> values_;
  std::vector<Shard> shards_;
  uint64_t sequence_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SHARDED_PARAMETER_CLIENT_H_
