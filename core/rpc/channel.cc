#include "core/rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/support/channel_arguments.h>

#include <utility>

#include "core/rpc/grpc_library.h"
#include "core/rpc/local_socket.h"

namespace keelson {

namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // A server's answers are not inflated, whatever it may send.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // The time for an attempt: a busy server answers late.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  // A peer whose node is lost closes no connection, and only a new one reaches its successor.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
  // Pings are not limited, however long a call is silent.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Keelson retries by itself: a push that may have been executed is repeated with its sequence
  // number.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A proxy from the environment is not meant for connections within the cluster.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace

std::shared_ptr<grpc::Channel> CreateChannel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  KeepGrpcRunning();
  return grpc::CreateCustomChannel(address, credentials, Arguments());
}

std::shared_ptr<grpc::Channel> ConnectLocalChannel(const std::string& address) {
  KeepGrpcRunning();
  const int connected = ConnectLocally(address);
  if (connected < 0) return nullptr;
  return grpc::CreateCustomInsecureChannelFromFd(address, connected, Arguments());
}

Connection::Connection(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials)
    : address_(std::move(address)),
      credentials_(std::move(credentials)),
      channel_(keelson::CreateChannel(address_, credentials_)) {}

std::shared_ptr<grpc::Channel> Connection::channel() const {
  MutexLock lock(&mu_);
  if (channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE) {
    channel_ = keelson::CreateChannel(address_, credentials_);
  }
  return channel_;
}

}  // namespace keelson
