// Parameter servers that hold no values: they answer a chief so that it admits them, trains and
// commits rounds. All of them are one gRPC server with a port for each, so that hundreds cost
// little.
#ifndef KEELSON_BENCH_CHIEF_FAKE_SERVERS_H_
#define KEELSON_BENCH_CHIEF_FAKE_SERVERS_H_

#include <grpcpp/server.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson::bench {

// Thread-safe. Every caller is believed to be the job's chief.
class FakeServers final : public v1::ParameterService::CallbackService {
 public:
  // Serves on `count` free ports of 127.0.0.1 until it is destroyed. The parts of snapshots go to
  // `model_dir`. `config_hash`: ConfigHash of the job's configuration. UNAVAILABLE: a port cannot
  // be used.
  static absl::StatusOr<std::unique_ptr<FakeServers>> Start(int count, uint64_t config_hash,
                                                            std::string model_dir);
  ~FakeServers() override;

  // "127.0.0.1:40001", by shard.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // How large the newest job state is that the chief has stored at one of them; 0: none yet.
  size_t job_state_bytes() const;

  // The calls of a chief; what each of them does is said in parameter_service.proto.
  grpc::ServerUnaryReactor* Initialize(grpc::CallbackServerContext* context,
                                       const v1::InitializeShardRequest* request,
                                       v1::InitializeShardResponse* response) override;
  grpc::ServerUnaryReactor* ChiefHeartbeat(grpc::CallbackServerContext* context,
                                           const v1::ChiefHeartbeatRequest* request,
                                           v1::ShardStatus* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetShardStatusRequest* request,
                                      v1::ShardStatus* response) override;
  grpc::ServerUnaryReactor* PrepareCut(grpc::CallbackServerContext* context,
                                       const v1::PrepareCutRequest* request,
                                       v1::PrepareCutResponse* response) override;
  grpc::ServerUnaryReactor* WriteSnapshot(grpc::CallbackServerContext* context,
                                          const v1::WriteSnapshotRequest* request,
                                          v1::WriteSnapshotResponse* response) override;
  grpc::ServerUnaryReactor* CommitRound(grpc::CallbackServerContext* context,
                                        const v1::CommitRoundRequest* request,
                                        v1::CommitRoundResponse* response) override;

 private:
  FakeServers(uint64_t config_hash, std::string model_dir);

  absl::Status Listen(int count);
  absl::Status WritePart(const v1::WriteSnapshotRequest& request,
                         v1::WriteSnapshotResponse* response) const;
  // The status of the server that the caller named as its target.
  v1::ShardStatus& ShardOf(const grpc::CallbackServerContext& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string model_dir_;
  std::vector<std::string> addresses_;
  mutable Mutex mu_;
  size_t job_state_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, v1::ShardStatus> shards_ ABSL_GUARDED_BY(mu_);  // by address
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_FAKE_SERVERS_H_
