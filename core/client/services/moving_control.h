// The control calls of a server whose address is not known yet, or may change.
#ifndef KEELSON_CORE_CLIENT_SERVICES_MOVING_CONTROL_H_
#define KEELSON_CORE_CLIENT_SERVICES_MOVING_CONTROL_H_

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "core/client/services/parameter_control.h"

namespace keelson {

// Passes each call on to where the server was when the call began. Calls are UNAVAILABLE while it
// is nowhere, as if it did not answer. Thread-safe.
class MovingControl : public ParameterControl {
 public:
  using Connect = std::function<std::unique_ptr<ParameterControl>(const std::string& address)>;

  // The server is nowhere at first. `peer` is its name in error texts, "worker-1".
  MovingControl(std::string peer, Connect connect)
      : peer_(std::move(peer)), connect_(std::move(connect)) {}

  // Calls that begin from now on go to this address, "host:port"; empty: nowhere. Those under way
  // end where they are.
  void MoveTo(const std::string& address);

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                              v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status ReplicateShard(const v1::ReplicateShardRequest& request,
                              v1::InitializeShardResponse* response) override;
  absl::Status ReplicateRound(const v1::ReplicateRoundRequest& request,
                              v1::ReplicateRoundResponse* response) override;
  absl::Status ReadShard(const v1::ReadShardRequest& request, ShardSink sink) override;
  absl::Status ReadRound(const v1::ReadRoundRequest& request, ByteRope* part) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;
  // Also those of the connections that it has left, and will have.
  void CancelFileCalls() override;
  void GiveUpCalls() override;

 private:
  template <typename Request, typename... Rest>
  absl::Status Call(absl::Status (ParameterControl::*method)(const Request&, Rest...),
                    const Request& request, std::type_identity_t<Rest>... rest);
  // Calls the method of the connection, and of those that it has left.
  void AtEach(void (ParameterControl::*method)()) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string peer_;
  const Connect connect_;

  Mutex mu_;
  std::shared_ptr<ParameterControl> current_ ABSL_GUARDED_BY(mu_);  // null: nowhere
  // Those with calls under way, and some that have none any more.
  std::vector<std::weak_ptr<ParameterControl>> left_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_SERVICES_MOVING_CONTROL_H_
