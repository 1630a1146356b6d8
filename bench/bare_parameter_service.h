// The data path of a parameter server with almost no work: the handlers "discard" and "sum" of the
// benchmark.
#ifndef KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_
#define KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_

#include <memory>

#include "core/base/mutex.h"
#include "core/client/services/bulk_handler.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/units/block_store.h"

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

  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override;
  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;
  absl::Status Attend(const v1::AttendRequest& request, v1::ShardStatus* response) override;
  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override;
  absl::Status FindChief(const v1::FindChiefRequest& request,
                         v1::FindChiefResponse* response) override;
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override;

 private:
  std::shared_ptr<BlockStore> Store();

  const OnPush on_push_;
  Mutex mu_;
  std::shared_ptr<BlockStore> store_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_BARE_PARAMETER_SERVICE_H_
