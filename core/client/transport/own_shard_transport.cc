#include "core/client/transport/own_shard_transport.h"

#include <utility>

namespace keelson {
namespace {

std::vector<BulkHandler*> HandlersOf(const OwnShards& own, size_t num_shards) {
  std::vector<BulkHandler*> handlers(num_shards);
  for (size_t s = 0; s < num_shards; ++s) {
    const auto handler = own.handlers.find(s);
    if (handler != own.handlers.end()) handlers[s] = handler->second;
  }
  return handlers;
}

}  // namespace

OwnShardTransport::OwnShardTransport(OwnShards own, const std::vector<BulkServer>& servers,
                                     std::unique_ptr<BulkTransport> remote)
    : own_(std::move(own)),
      remote_(std::move(remote)),
      inline_(HandlersOf(own_, servers.size()), [this] { remote_->Wake(); }) {
  for (size_t s = 0; s < servers.size(); ++s) is_own_.push_back(IsOwn(s, servers[s]));
}

void OwnShardTransport::Start(size_t shard, BulkMethod method, ByteRope request,
                              absl::Duration timeout, uint64_t tag) {
  BulkTransport* const route = is_own_[shard] ? &inline_ : remote_.get();
  route->Start(shard, method, std::move(request), timeout, tag);
}

std::optional<BulkCompletion> OwnShardTransport::Next(absl::Duration timeout) {
  std::optional<BulkCompletion> own = inline_.Next(absl::ZeroDuration());
  return own.has_value() ? std::move(own) : remote_->Next(timeout);
}

void OwnShardTransport::Reset(size_t shard) {
  inline_.Reset(shard);
  remote_->Reset(shard);
}

void OwnShardTransport::Redirect(size_t shard, const BulkServer& server) {
  inline_.Reset(shard);
  is_own_[shard] = IsOwn(shard, server);
  // What leads to another server need not be able to lead to this process.
  is_own_[shard] ? remote_->Reset(shard) : remote_->Redirect(shard, server);
}

}  // namespace keelson
