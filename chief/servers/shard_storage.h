// Writes and reads the shards' parts of a snapshot (--checkpoint_writer): the servers do it where
// all roles share the model directory; otherwise the chief does, and the bytes are streamed.
#ifndef KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_
#define KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// Thread-safe; calls for several servers run side by side.
class ShardStorage {
 public:
  virtual ~ShardStorage() = default;

  // Before a job begins with initial values: finds out where they come from, which stays for calls
  // of Initialize, and that they can be read. Errors: a configured file cannot be used. CANCELLED:
  // `stop` was raised.
  virtual absl::Status PrepareInitialValues([[maybe_unused]] const StopSignal& stop) {
    return absl::OkStatus();
  }

  // Cuts the shard and writes it as the data file that `request` says, durably and under the name
  // PendingPath; on an error nothing is left of it. Errors are the server's and those of
  // file_system.h.
  virtual absl::Status Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) = 0;

  // Makes the shard ready: from the snapshot of `request.restore_step`, or from initial values when
  // there is none. Errors are the server's (ParameterControl::Initialize).
  virtual absl::Status Initialize(ParameterControl* server,
                                  const v1::InitializeShardRequest& request,
                                  v1::InitializeShardResponse* response) = 0;
};

// The servers access the model directory.
class ServerStorage : public ShardStorage {
 public:
  absl::Status Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                     v1::WriteSnapshotResponse* response) override;
  absl::Status Initialize(ParameterControl* server, const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
};

// This process accesses the model directory, with buffers of a few MiB per server.
class ChiefStorage : public ShardStorage {
 public:
  // `directory` is the model directory, and outlives this.
  explicit ChiefStorage(const CheckpointDirectory* directory) : directory_(directory) {}

  // DATA_LOSS: other bytes came than the server says it sent.
  absl::Status Write(ParameterControl* server, const v1::WriteSnapshotRequest& request,
                     v1::WriteSnapshotResponse* response) override;
  // Errors are also those of StoredBlocks.
  absl::Status Initialize(ParameterControl* server, const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;

 private:
  const CheckpointDirectory* const directory_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_
