// Bulk calls to remote servers.
#ifndef KEELSON_CORE_CLIENT_TRANSPORT_GRPC_BULK_TRANSPORT_H_
#define KEELSON_CORE_CLIENT_TRANSPORT_GRPC_BULK_TRANSPORT_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/client/services/bulk_server.h"
#include "core/client/transport/bulk_transport.h"
#include "core/rpc/credentials.h"
#include "core/rpc/raw_client.h"

namespace keelson {

// The thread in Next does the input and output of all connections.
class GrpcBulkTransport : public BulkTransport {
 public:
  // `servers[s]` has shard s. Each server gets `connections` >= 1 of them, and a shard's calls take
  // turns on them. `local_sockets`: they lead to the BulkAddress of a server that listens there,
  // which is tried again after a failure.
  GrpcBulkTransport(const std::vector<BulkServer>& servers, Credentials credentials,
                    int connections, bool local_sockets = true);

  size_t num_shards() const override { return shards_.size(); }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override;
  std::optional<BulkCompletion> Next(absl::Duration timeout) override;
  void Wake() override { calls_.Wake(); }
  void Reset(size_t shard) override;
  void Redirect(size_t shard, const BulkServer& server) override;

 private:
  struct Shard {
    explicit Shard(const BulkServer& server);

    std::string address;
    std::string peer;  // for error texts
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    size_t next_channel = 0;
    int calls_under_way = 0;
  };

  void Connect(Shard* shard) const;

  const std::shared_ptr<grpc::ChannelCredentials> channel_credentials_;
  const int connections_;
  const bool local_sockets_;
  const std::array<std::string, kNumBulkMethods> paths_;
  std::vector<Shard> shards_;
  std::unordered_map<uint64_t, size_t> shard_of_tag_;  // of the calls under way
  RawCallQueue calls_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_TRANSPORT_GRPC_BULK_TRANSPORT_H_
