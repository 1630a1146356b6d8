// Bulk calls of a process that hosts shards itself.
#ifndef KEELSON_CORE_CLIENT_TRANSPORT_OWN_SHARD_TRANSPORT_H_
#define KEELSON_CORE_CLIENT_TRANSPORT_OWN_SHARD_TRANSPORT_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/client/services/bulk_handler.h"
#include "core/client/services/bulk_server.h"
#include "core/client/transport/bulk_transport.h"

namespace keelson {

// The shards that this process can host.
struct OwnShards {
  std::string address;                      // of the process, as the shards' servers name it
  std::map<size_t, BulkHandler*> handlers;  // by shard; outlive the transport
};

// A shard that is at the process's own address, and for which it has a handler, is called within
// Start. The calls of the others travel, so that a caller does better to start those first.
class OwnShardTransport : public BulkTransport {
 public:
  // `servers[s]` has shard s. `remote` leads to all of them, but is not called for a shard while
  // that one is the process's own.
  OwnShardTransport(OwnShards own, const std::vector<BulkServer>& servers,
                    std::unique_ptr<BulkTransport> remote);

  size_t num_shards() const override { return remote_->num_shards(); }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override;
  std::optional<BulkCompletion> Next(absl::Duration timeout) override;
  void Wake() override { remote_->Wake(); }
  void Reset(size_t shard) override;
  void Redirect(size_t shard, const BulkServer& server) override;

 private:
  bool IsOwn(size_t shard, const BulkServer& server) const {
    return server.address == own_.address && own_.handlers.contains(shard);
  }

  const OwnShards own_;
  std::vector<bool> is_own_;  // by shard
  const std::unique_ptr<BulkTransport> remote_;
  InlineBulkTransport inline_;  // has all shards for which there are handlers
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSPORT_OWN_SHARD_TRANSPORT_H_
