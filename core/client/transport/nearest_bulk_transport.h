// Bulk calls through memory for as long as all servers are on this machine.
#ifndef KEELSON_CORE_CLIENT_TRANSPORT_NEAREST_BULK_TRANSPORT_H_
#define KEELSON_CORE_CLIENT_TRANSPORT_NEAREST_BULK_TRANSPORT_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/client/services/bulk_server.h"
#include "core/client/transport/bulk_transport.h"
#include "core/client/transport/memory_bulk_transport.h"

namespace keelson {

// When a shard is redirected to a server that memory does not lead to, the calls of all shards go
// another way from then on: one thread can wait for the answers of one transport only. The calls
// under way fail with UNAVAILABLE then, those of the other shards too.
class NearestBulkTransport : public BulkTransport {
 public:
  using Connect = std::function<std::unique_ptr<BulkTransport>(const std::vector<BulkServer>&)>;

  // `memory` leads to `servers`; `connect` makes the transport that replaces it.
  NearestBulkTransport(std::vector<BulkServer> servers, std::unique_ptr<MemoryBulkTransport> memory,
                       Connect connect);

  size_t num_shards() const override { return servers_.size(); }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override;
  std::optional<BulkCompletion> Next(absl::Duration timeout) override;
  void Wake() override { current_.load()->Wake(); }
  void Reset(size_t shard) override { current_.load()->Reset(shard); }
  void Redirect(size_t shard, const BulkServer& server) override;

 private:
  void LeaveMemory();

  std::vector<BulkServer> servers_;
  const Connect connect_;
  // Lives on when it was left, for Wake may be in it.
  const std::unique_ptr<MemoryBulkTransport> memory_;
  std::unique_ptr<BulkTransport> other_;  // null: memory leads to all servers
  std::atomic<BulkTransport*> current_;   // one of these
  size_t through_memory_ = 0;             // calls whose completions have not been returned
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSPORT_NEAREST_BULK_TRANSPORT_H_
