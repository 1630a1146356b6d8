#include "core/rpc/channel.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

std::chrono::system_clock::time_point Limit() {
  return std::chrono::system_clock::now() + std::chrono::seconds(30);
}

std::unique_ptr<RpcServer> StartServer(int port, grpc::Service* service) {
  auto server = RpcServer::Start(absl::StrCat("127.0.0.1:", port),
                                 grpc::InsecureServerCredentials(), {service});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// Until a connection has failed.
void AwaitFailure(grpc::Channel* channel) {
  while (true) {
    const grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return;
    ASSERT_TRUE(channel->WaitForStateChange(state, Limit()));
  }
}

TEST(ConnectionTest, APeerThatIsBackIsReachedByTheNextCall) {
  v1::ChiefService::Service service;  // answers UNIMPLEMENTED
  auto server = StartServer(0, &service);
  const int port = server->port();
  const Connection connection(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
  const auto first = connection.channel();
  ASSERT_TRUE(first->WaitForConnected(Limit()));
  EXPECT_EQ(connection.channel(), first);
  server.reset();
  AwaitFailure(first.get());
  server = StartServer(port, &service);
  const auto second = connection.channel();
  EXPECT_NE(second, first) << "the first waits for its next attempt";
  EXPECT_TRUE(second->WaitForConnected(Limit()));
  EXPECT_EQ(connection.channel(), second);
}

}  // namespace
}  // namespace keelson
