// The chief's calls that make a server's shard: of initial values, of a snapshot's files, or of
// values that the chief sends.
#ifndef KEELSON_PS_SERVER_SERVICE_INITIALIZE_CALLS_H_
#define KEELSON_PS_SERVER_SERVICE_INITIALIZE_CALLS_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/client/services/parameter_control.h"
#include "core/cluster/placement.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/served_shard.h"
#include "ps_server/snapshots/snapshot_files.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// Thread-safe. Errors: see ParameterService; their texts begin with the call. One shard is made of
// initial values or of files at a time; while one is received from a peer, another call may replace
// it.
class InitializeCalls {
 public:
  struct Options {
    // Of the configuration that chiefs must have; none: any.
    std::optional<uint64_t> config_hash = std::nullopt;
    // A shard that takes more (LeastBytesOf) is refused before anything is allocated.
    int64_t max_shard_bytes = std::numeric_limits<int64_t>::max();
    // Threads that read the rows of a snapshot; at least 1.
    int restore_threads = 1;
  };

  // All outlive this.
  InitializeCalls(const Options& options, SnapshotFiles* files, ChiefAdmission* chiefs,
                  ServedShard* shard, const Clock* clock)
      : options_(options), files_(files), chiefs_(chiefs), shard_(shard), clock_(clock) {}

  // After OK the shard is there: made by this call, or before by one of the same origin.
  absl::Status Initialize(const v1::InitializeShardRequest& request);
  absl::Status InitializeStreamed(const v1::InitializeChunk& first,
                                  ParameterControl::ChunkSource next);
  // Makes the shard as a copy of another server's, whatever was there.
  absl::Status InitializeCopy(const v1::InitializeChunk& first, ParameterControl::ChunkSource next);

 private:
  using FillStore = absl::FunctionRef<absl::StatusOr<std::unique_ptr<ShardStore>>(
      ShardStore::Options, ServedShard::Making)>;

  // FAILED_PRECONDITION: another configuration.
  absl::Status CheckConfig(const v1::InitializeShardRequest& request) const;
  // `copy`: ServedShard::Origin.
  absl::Status InitializeFrom(absl::string_view call, const v1::InitializeShardRequest& request,
                              FillStore fill, uint64_t copy = 0);
  // FAILED_PRECONDITION: it takes more than Options::max_shard_bytes.
  absl::Status CheckShardFits(const Placement& placement, size_t shard,
                              const VariableOptimizers& optimizers) const;
  absl::StatusOr<std::unique_ptr<ShardStore>> MakeStore(const v1::InitializeShardRequest& request,
                                                        const ServedShard::Origin& origin,
                                                        ServedShard::Making making, FillStore fill);

  const Options options_;
  SnapshotFiles* const files_;
  ChiefAdmission* const chiefs_;
  ServedShard* const shard_;
  const Clock* const clock_;

  // Held while a shard is made of initial values or of files. Never while a peer is waited for.
  Mutex initialize_mu_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_INITIALIZE_CALLS_H_
