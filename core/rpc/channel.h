// Channels to other tasks, set up alike everywhere.
#ifndef KEELSON_CORE_RPC_CHANNEL_H_
#define KEELSON_CORE_RPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

namespace keelson {

// Largest message that is sent or taken. Bulk senders keep to kBulkPayloadBytes
// (core/client/transfer_plan.h); the rest is room for headers and for placements of large models.
inline constexpr int kMaxMessageBytes = 64 << 20;

// A channel to "host:port" or a LocalSocket. It connects lazily, resolves the name again at every
// reconnect, and retries at most a second apart, for a peer's address may change while its name
// stays. Each channel has a connection of its own, so bulk and control traffic do not queue behind
// each other.
std::shared_ptr<grpc::Channel> CreateChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_CHANNEL_H_
