// Makes shards whose initial values come from files that the chief alone reads (WarmStart).
#ifndef KEELSON_CHIEF_SERVERS_WARM_START_STORAGE_H_
#define KEELSON_CHIEF_SERVERS_WARM_START_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/servers/shard_storage.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/cluster/placement.h"
#include "core/tensor/variable.h"
#include "core/warm_start/warm_start.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Opens the files when initial values are asked for the first time, which a job with a snapshot of
// its own never does, and logs what comes from where. Keeps them open, so that all servers get the
// same values. Sends each
// server the values of its shard from them, a few MiB at a time; where initializers say the values,
// the server makes them. Snapshots are the affair of another storage.
class WarmStartStorage : public ShardStorage {
 public:
  // `variables` are those of the placement, in any order, as WithInitialValues returns them for the
  // configuration.
  WarmStartStorage(const v1::TrainConfig& config, std::vector<VariableSpec> variables,
                   std::unique_ptr<ShardStorage> snapshots)
      : config_(WithProposedValues(config.initial_values(), config.checkpoint().model_dir())),
        seed_(config.train().seed()),
        variables_(std::move(variables)),
        snapshots_(std::move(snapshots)) {}

  // Reads all of it once, since a server waits for its next values for seconds only. Errors of
  // WarmStart.
  absl::Status PrepareInitialValues(const StopSignal& stop) override;
  absl::Status Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                     v1::WriteSnapshotResponse* response) override;
  // Errors are also those of WarmStart.
  absl::Status Initialize(ParameterControl* server, const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;

 private:
  absl::StatusOr<std::shared_ptr<const WarmStart>> Opened();
  // The position in `variables_` of each of the placement's variables. INVALID_ARGUMENT: there is
  // none.
  absl::StatusOr<std::vector<size_t>> PositionsOf(const Placement& placement) const;

  const v1::InitialValuesConfig config_;
  const uint64_t seed_;
  const std::vector<VariableSpec> variables_;
  const std::unique_ptr<ShardStorage> snapshots_;

  Mutex mu_;  // held while files are opened
  std::shared_ptr<const WarmStart> warm_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_WARM_START_STORAGE_H_
