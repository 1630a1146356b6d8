#include "core/rpc/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/rpc/channel.h"
#include "core/rpc/local_listener.h"
#include "core/rpc/raw_client.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using RawPush = v1::ParameterService::WithGenericMethod_Push<v1::ParameterService::Service>;

absl::StatusOr<std::unique_ptr<RpcServer>> ServeEcho(const std::string& address, RawPush* service) {
  RawServing raw;
  raw.methods = {{"/keelson.v1.ParameterService/Push", [](ByteRope request) { return request; }}};
  return RpcServer::Start(address, grpc::InsecureServerCredentials(), {service}, std::move(raw));
}

// A port that was free a moment ago.
int FreePort() {
  RawPush service;
  return (*ServeEcho("127.0.0.1:0", &service))->port();
}

TEST(LocalSocketTest, ServesTheSameCallsAsThePort) {
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  EXPECT_EQ(ConnectLocalChannel(BulkAddress(address)), nullptr) << "nobody listens yet";
  RawPush service;
  const auto server = ServeEcho(address, &service);
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  EXPECT_EQ(BulkAddress(address), LocalSocket(port));
  EXPECT_EQ(BulkAddress(absl::StrCat("localhost:", port)), LocalSocket(port));
  EXPECT_EQ(BulkAddress(absl::StrCat("127.0.0.2:", port)), absl::StrCat("127.0.0.2:", port));

  RawCallQueue calls;
  const std::string bytes(300000, 'b');
  ByteRope request;
  request.AppendBorrowed(bytes.data(), bytes.size());
  calls.Start(CreateChannel(BulkAddress(address), grpc::InsecureChannelCredentials()),
              "/keelson.v1.ParameterService/Push", std::move(request), absl::Seconds(60), 1);
  const auto done = calls.Next(absl::Seconds(60));
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(done->status.ok()) << done->status.error_message();
  EXPECT_TRUE(done->response.ToString() == bytes);
}

TEST(LocalSocketTest, AChannelThatIsConnectedServesCallsUntilItsConnectionEnds) {
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  EXPECT_EQ(ConnectLocalChannel(LocalSocket(1)), nullptr);
  RawPush service;
  auto server = ServeEcho(address, &service);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto channel = ConnectLocalChannel(BulkAddress(address));
  ASSERT_NE(channel, nullptr);
  RawCallQueue calls;
  const std::string bytes(3 << 20, 'b');  // more than the kernel buffers
  const auto call = [&] {
    ByteRope request;
    request.AppendBorrowed(bytes.data(), bytes.size());
    calls.Start(channel, "/keelson.v1.ParameterService/Push", std::move(request), absl::Seconds(60),
                1);
    return *calls.Next(absl::Seconds(60));
  };
  const RawCallQueue::Completion answered = call();
  EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_TRUE(answered.response.ToString() == bytes);
  server->reset();
  EXPECT_EQ(call().status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(LocalSocketTest, BuffersMoreThanTheSystemsDefault) {
  const std::string address = "unix-abstract:keelson-local-socket-test";
  const auto send_buffer = [](int fd) {
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size);
    return bytes;
  };
  const int unchanged = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int system_default = send_buffer(unchanged);
  close(unchanged);
  const auto listener = LocalListener::Listen(address);
  ASSERT_TRUE(listener.ok()) << listener.status();
  absl::Notification accepted;
  int at_server = -1;
  (*listener)->Start([&](int fd) {
    at_server = fd;
    accepted.Notify();
  });
  const int at_client = ConnectLocally(address);
  ASSERT_GE(at_client, 0);
  ASSERT_TRUE(accepted.WaitForNotificationWithTimeout(absl::Seconds(60)));
  (*listener)->Stop();
  EXPECT_GT(send_buffer(at_client), system_default);
  EXPECT_GT(send_buffer(at_server), system_default);
  EXPECT_LT(ConnectLocally(address), 0);
  close(at_client);
  close(at_server);
}

TEST(LocalSocketTest, TooLongANameIsRefused) {
  EXPECT_EQ(LocalListener::Listen(absl::StrCat("unix-abstract:", std::string(200, 'n'))).status(),
            absl::InvalidArgumentError("File name too long"));
}

TEST(LocalSocketTest, IsGoneWithItsServer) {
  const std::string address = absl::StrCat("127.0.0.1:", FreePort());
  RawPush service;
  {
    const auto server = ServeEcho(address, &service);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_NE(ConnectLocalChannel(BulkAddress(address)), nullptr);
  }
  EXPECT_EQ(ConnectLocalChannel(BulkAddress(address)), nullptr);
}

TEST(LocalSocketTest, InUseSaysSo) {
  const int port = FreePort();
  // Another process has the name, but not the port.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(fd, 0);
  const std::string name = absl::StrCat("keelson-", port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), length), 0);

  RawPush service;
  const auto server = ServeEcho(absl::StrCat("127.0.0.1:", port), &service);
  EXPECT_EQ(server.status(),
            absl::InvalidArgumentError(
                absl::StrCat("cannot listen on unix-abstract:", name, ": Address already in use")));
  close(fd);
}

TEST(LocalSocketTest, BelongsToServersThatHaveThePortForThemselves) {
  EXPECT_EQ(LocalSocketPort("0.0.0.0:2222"), 2222);
  EXPECT_EQ(LocalSocketPort("[::]:2222"), 2222);
  EXPECT_EQ(LocalSocketPort("localhost:2222"), 2222);
  EXPECT_EQ(LocalSocketPort("10.0.0.1:2222"), 0);
  EXPECT_EQ(LocalSocketPort("127.0.0.2:2222"), 0);
  EXPECT_EQ(LocalSocketPort("0.0.0.0:0"), 0);
  EXPECT_EQ(LocalSocketPort("nonsense"), 0);
}

TEST(LocalSocketTest, OtherHostsKeepTheirAddress) {
  EXPECT_EQ(BulkAddress("mnist-ps-0.default.svc:2222"), "mnist-ps-0.default.svc:2222");
  EXPECT_EQ(BulkAddress("10.0.0.1:2222"), "10.0.0.1:2222");
  EXPECT_EQ(BulkAddress("nonsense"), "nonsense");
}

}  // namespace
}  // namespace keelson
