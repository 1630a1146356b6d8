// A parameter server whose control calls fail, wait or are answered as a test says.
#ifndef KEELSON_TESTING_SERVICES_FAULTY_PARAMETER_CONTROL_H_
#define KEELSON_TESTING_SERVICES_FAULTY_PARAMETER_CONTROL_H_

#include <atomic>

#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/client/services/parameter_control.h"
#include "testing/services/call_faults.h"

namespace keelson {

// Thread-safe.
class FaultyParameterControl : public ParameterControl, public CallFaults {
 public:
  // `server` executes what no fault takes, and outlives this; without it calls return OK and an
  // empty response.
  explicit FaultyParameterControl(ParameterControl* server = nullptr) : server_(server) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  absl::Status PrepareCut(const v1::PrepareCutRequest& request,
                          v1::PrepareCutResponse* response) override;
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& request, ChunkSource next,
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
  void CancelFileCalls() override;
  void GiveUpCalls() override;

  // Raised when calls about files are cancelled, which is for the test's answers to obey.
  const StopSignal& file_calls_end() const { return file_calls_end_; }
  // Whether its calls were given up, which ends none of them here.
  bool given_up() const { return given_up_; }

 private:
  template <typename Request, typename Response>
  absl::Status Forward(Method<ParameterControl, Request, Response*> method, const Request& request,
                       Response* response);

  ParameterControl* const server_;
  StopSignal file_calls_end_;
  std::atomic<bool> given_up_ = false;
};

}  // namespace keelson

#endif  // KEELSON_TESTING_SERVICES_FAULTY_PARAMETER_CONTROL_H_
