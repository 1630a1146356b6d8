// Bulk calls to servers on the same machine, through memory (core/rpc/memory_call.h).
#ifndef KEELSON_CORE_CLIENT_TRANSPORT_MEMORY_BULK_TRANSPORT_H_
#define KEELSON_CORE_CLIENT_TRANSPORT_MEMORY_BULK_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/client/services/bulk_server.h"
#include "core/client/transport/bulk_transport.h"
#include "core/rpc/credentials.h"
#include "core/rpc/memory_client.h"

namespace keelson {

// A request is copied in Start, so that nothing holds it afterwards. A connection that ends, or of
// which a call is not answered in time, is given up with all of its calls, and the next call makes
// another one.
class MemoryBulkTransport : public BulkTransport {
 public:
  // Connects to the server of each shard but those `uncalled`, for `calls` calls at a time.
  // UNAVAILABLE: a server is on another host, or MemoryClient::Connect failed.
  static absl::StatusOr<std::unique_ptr<MemoryBulkTransport>> Connect(
      const std::vector<BulkServer>& servers, Claim claim, size_t calls,
      const std::set<size_t>& uncalled = {});
  ~MemoryBulkTransport() override;

  size_t num_shards() const override { return shards_.size(); }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override;
  std::optional<BulkCompletion> Next(absl::Duration timeout) override;
  void Wake() override;
  void Reset(size_t shard) override;
  void Redirect(size_t shard, const BulkServer& server) override;

  // Connects to the shard's server, unless that was done. UNAVAILABLE: as Connect's.
  absl::Status Reach(size_t shard) { return Connect(&shards_[shard]); }

 private:
  struct Shard {
    explicit Shard(const BulkServer& server);

    std::string address;                             // of the memory socket; empty: another host
    std::string peer;                                // for error texts
    std::unique_ptr<MemoryClient> client;            // null: to be connected
    std::unordered_map<uint64_t, absl::Time> calls;  // under way: their deadlines, by tag
  };

  MemoryBulkTransport(Claim claim, size_t calls, int wake)
      : claim_(std::move(claim)), calls_(calls), wake_(wake) {}

  absl::Status Connect(Shard* shard) const;
  absl::Status Send(Shard* shard, BulkMethod method, const ByteRope& request, uint64_t tag);
  // Waits until something has happened, at most until `until`. False: nothing has.
  bool Wait(absl::Time until);
  // Takes the answers that are there.
  void Receive(Shard* shard);
  void GiveUpLate(absl::Time now);
  // Ends the shard's calls: those whose deadline is over with DEADLINE_EXCEEDED.
  void GiveUp(Shard* shard, absl::Time now, absl::string_view why);
  std::optional<BulkCompletion> TakeCompleted();
  absl::Time FirstDeadline() const;

  const Claim claim_;
  const size_t calls_;
  const int wake_;
  std::vector<Shard> shards_;
  std::deque<BulkCompletion> completed_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSPORT_MEMORY_BULK_TRANSPORT_H_
