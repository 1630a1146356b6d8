// The data path of a parameter server with almost no work: the handlers "discard" and "sum" of the
// benchmark.
#ifndef KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_
#define KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_

#include <memory>

#include "core/base/mutex.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/units/shard_store.h"

namespace keelson::bench {

// Thread-safe. Implements Initialize, Bulk and GetStatus; other calls return UNIMPLEMENTED.
class BareParameterService : public ParameterControl, public BulkHandler {
 public:
  enum class OnPush {
    kDiscard,  // receive the payload and drop it, whatever it is
    kSum,      // add it to the values
  };
  explicit BareParameterService(OnPush on_push) : on_push_(on_push) {}

  // Only the request's placement and shard are used.
  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override;
  // A discarded push is answered; the values of a fused one are as they always were. UNAVAILABLE:
  // not initialised. INVALID_ARGUMENT: bulk_calls.h.
  absl::StatusOr<ByteRope> Bulk(BulkMethod method, ByteRope request) override;
  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override;

  absl::Status PrepareCut(const v1::PrepareCutRequest&, v1::PrepareCutResponse*) override {
    return NotServed();
  }
  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest&, v1::WriteSnapshotResponse*) override {
    return NotServed();
  }
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest&, ByteSink,
                              v1::WriteSnapshotResponse*) override {
    return NotServed();
  }
  absl::Status InitializeStreamed(const v1::InitializeChunk&, ChunkSource,
                                  v1::InitializeShardResponse*) override {
    return NotServed();
  }
  absl::Status ChiefHeartbeat(const v1::ChiefHeartbeatRequest&, v1::ShardStatus*) override {
    return NotServed();
  }
  absl::Status CommitRound(const v1::CommitRoundRequest&, v1::CommitRoundResponse*) override {
    return NotServed();
  }
  absl::Status FindChief(const v1::FindChiefRequest&, v1::FindChiefResponse*) override {
    return NotServed();
  }
  absl::Status Finish(const v1::FinishShardRequest&, v1::FinishShardResponse*) override {
    return NotServed();
  }

 private:
  static absl::Status NotServed() {
    return absl::UnimplementedError("not a call of the benchmark");
  }
  std::shared_ptr<ShardStore> Store();

  const OnPush on_push_;
  Mutex mu_;
  std::shared_ptr<ShardStore> store_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_
