// Who writes and reads the shards' parts of a snapshot: the servers, where all roles share the
// model directory, or the chief, which moves the bytes over the wire (--checkpoint_writer).
#ifndef KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_
#define KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "core/client/services/parameter_service.h"

namespace keelson {

// Thread-safe; calls for several servers run side by side.
class ShardStorage {
 public:
  virtual ~ShardStorage() = default;

  // Cuts the shard and writes it to `request.data_path`, durably and under its final name; on an
  // error nothing is left of it. Errors are the server's and those of file_system.h.
  virtual absl::Status Write(ParameterService* server, const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) = 0;

  // Makes the shard ready: from the snapshot `request.restore_prefix`, or from initial values when
  // that is empty. Errors are the server's (ParameterService::Initialize).
  virtual absl::Status Initialize(ParameterService* server,
                                  const v1::InitializeShardRequest& request,
                                  v1::InitializeShardResponse* response) = 0;
};

// The servers do it.
class ServerStorage : public ShardStorage {
 public:
  absl::Status Write(ParameterService* server, const v1::WriteSnapshotRequest& request,
                     v1::WriteSnapshotResponse* response) override;
  absl::Status Initialize(ParameterService* server, const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
};

// This process does it, in memory of a few MiB per server.
class ChiefStorage : public ShardStorage {
 public:
  // `file_system` outlives this.
  explicit ChiefStorage(FileSystem* file_system) : file_system_(file_system) {}

  // DATA_LOSS: other bytes came than the server says it sent.
  absl::Status Write(ParameterService* server, const v1::WriteSnapshotRequest& request,
                     v1::WriteSnapshotResponse* response) override;
  // Errors of StoredBlocks too.
  absl::Status Initialize(ParameterService* server, const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;

 private:
  FileSystem* const file_system_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SHARD_STORAGE_H_
