// Channels to other tasks, set up alike everywhere.
#ifndef KEELSON_CORE_RPC_CHANNEL_H_
#define KEELSON_CORE_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace keelson {

// Largest message that is sent or taken. Bulk senders keep to kBulkPayloadBytes
// (core/client/plan/transfer_plan.h); the rest is room for headers and for placements of large
// models.
inline constexpr int kMaxMessageBytes = 64 << 20;

// A channel to "host:port" or a LocalSocket. It connects lazily, resolves the name again at every
// reconnect, and retries at most a second apart, for a peer's address may change while its name
// stays. A connection with a call on it whose peer shows no sign of life for 30 s is given up. Each
// channel has a connection of its own, so bulk and control traffic do not queue behind each other.
std::shared_ptr<grpc::Channel> CreateChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// The channel to one peer, made anew once it has failed to connect. So the pace of the calls
// decides how soon a peer is found that was away: each call tries to connect, and none fails with
// the error of an earlier one, as a channel's calls do between its own attempts. Thread-safe.
class Connection {
 public:
  Connection(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials);

  // For one call, which keeps it alive.
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  const std::string address_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  mutable Mutex mu_;
  mutable std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_CHANNEL_H_
