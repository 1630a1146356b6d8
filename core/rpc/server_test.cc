#include "core/rpc/server.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "gmock/gmock.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class RpcServerTest : public testing::Test {
 protected:
  v1::ChiefService::Service service_;  // answers UNIMPLEMENTED
};

TEST_F(RpcServerTest, TakesAFreePortAndAcceptsConnections) {
  auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_});
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_GT((*server)->port(), 0);
  auto channel = CreateChannel(absl::StrCat("127.0.0.1:", (*server)->port()),
                               grpc::InsecureChannelCredentials());
  EXPECT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(20))));
}

TEST_F(RpcServerTest, PortInUseSaysSo) {
  auto first = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_});
  ASSERT_TRUE(first.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  const auto second = RpcServer::Start(address, grpc::InsecureServerCredentials(), {&service_});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Address already in use"));
}

TEST_F(RpcServerTest, MalformedAddressSaysSo) {
  const auto server = RpcServer::Start("nonsense", grpc::InsecureServerCredentials(), {&service_});
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("nonsense"));
}

}  // namespace
}  // namespace keelson
