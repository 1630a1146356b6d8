#include "core/client/transport/grpc_bulk_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/channel.h"
#include "core/rpc/grpc_status.h"
#include "core/rpc/local_socket.h"

namespace keelson {

GrpcBulkTransport::Shard::Shard(const BulkServer& server)
    : address(server.address), peer(absl::StrCat(server.name, " at ", server.address)) {}

GrpcBulkTransport::GrpcBulkTransport(const std::vector<BulkServer>& servers,
                                     Credentials credentials, int connections, bool local_sockets)
    : channel_credentials_(std::move(credentials.channel)),
      connections_(std::max(1, connections)),
      local_sockets_(local_sockets),
      paths_{BulkMethodPath(BulkMethod::kPull), BulkMethodPath(BulkMethod::kPush),
             BulkMethodPath(BulkMethod::kPushPull)},
      calls_(std::move(credentials.claim)) {
  for (const BulkServer& server : servers) shards_.emplace_back(server);
}

void GrpcBulkTransport::Connect(Shard* shard) const {
  const std::string address = local_sockets_ ? BulkAddress(shard->address) : shard->address;
  for (int c = 0; c < connections_; ++c) {
    std::shared_ptr<grpc::Channel> channel;
    if (IsLocalSocket(address)) channel = ConnectLocalChannel(address);
    if (channel == nullptr) channel = CreateChannel(shard->address, channel_credentials_);
    shard->channels.push_back(std::move(channel));
  }
}

void GrpcBulkTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                              absl::Duration timeout, uint64_t tag) {
  Shard& peer = shards_[shard];
  if (peer.channels.empty()) Connect(&peer);
  ++peer.calls_under_way;
  shard_of_tag_[tag] = shard;
  const size_t channel = peer.next_channel++ % peer.channels.size();
  calls_.Start(peer.channels[channel], paths_[static_cast<size_t>(method)], std::move(request),
               timeout, tag);
}

std::optional<BulkCompletion> GrpcBulkTransport::Next(absl::Duration timeout) {
  std::optional<RawCallQueue::Completion> ended = calls_.Next(timeout);
  if (!ended.has_value()) return std::nullopt;
  const size_t shard = shard_of_tag_.extract(ended->tag).mapped();
  Shard& peer = shards_[shard];
  --peer.calls_under_way;
  const absl::Status status = FromGrpcStatus(ended->status, peer.peer);
  // The next call connects again: a server that has just started may listen on a local socket now.
  if (absl::IsUnavailable(status) && peer.calls_under_way == 0) peer.channels.clear();
  return BulkCompletion{ended->tag, status, std::move(ended->response)};
}

void GrpcBulkTransport::Reset(size_t shard) {
  Shard& peer = shards_[shard];
  for (const auto& channel : peer.channels) calls_.Cancel(channel.get());
  peer.channels.clear();
}

void GrpcBulkTransport::Redirect(size_t shard, const BulkServer& server) {
  Reset(shard);
  Shard& peer = shards_[shard];
  const int calls_under_way = peer.calls_under_way;
  peer = Shard(server);
  peer.calls_under_way = calls_under_way;
}

}  // namespace keelson
