// Creates channels to other tasks, with the same options everywhere.
#ifndef KEELSON_CORE_RPC_CHANNEL_H_
#define KEELSON_CORE_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "core/base/mutex.h"

namespace keelson {

// The largest message that is sent or received. Bulk senders use at most kBulkPayloadBytes
// (core/client/plan/transfer_plan.h); the rest is for headers and for placements of large models.
inline constexpr int kMaxMessageBytes = 64 << 20;

// A channel to "host:port" or a LocalSocket. It connects lazily, resolves the name again at every
// reconnect, and retries at most a second apart, for a peer's address may change while its name
// stays. A connection with a call on it whose peer shows no sign of life for 30 s is given up. Each
// channel has a connection of its own, so bulk and control traffic do not queue behind each other.
std::shared_ptr<grpc::Channel> CreateChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// A channel that has a connection to a LocalSocket, which buffers more than one that gRPC makes
// itself. Its calls fail with UNAVAILABLE once that has ended. It is for calls alone: gRPC ends the
// process that asks for its state. Null: nobody listens there.
std::shared_ptr<grpc::Channel> ConnectLocalChannel(const std::string& address);

// The channel to one peer, replaced after it has failed to connect. So each call tries to connect,
// and how soon a peer that was away is reached depends on the calls only; a single channel would
// fail calls between its own attempts with the error of the last one. Thread-safe.
class Connection {
 public:
  Connection(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials);

  // The channel for one call, which keeps it alive.
  std::shared_ptr<grpc::Channel> channel() const;

 private:
  const std::string address_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  mutable Mutex mu_;
  mutable std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_CHANNEL_H_
