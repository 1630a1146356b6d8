#include "core/rpc/server.h"

#include <grpc/support/log.h>

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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

// Serves Register and keeps the size of what it was sent.
class SizeService : public v1::ChiefService::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse*) override {
    received = request->ByteSizeLong();
    return grpc::Status::OK;
  }
  std::atomic<size_t> received{0};
};

TEST(RpcServerLimitsTest, CompressedMessagesAreNotInflated) {
  SizeService service;
  auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::ChiefService::NewStub(CreateChannel(
      absl::StrCat("127.0.0.1:", (*server)->port()), grpc::InsecureChannelCredentials()));
  v1::RegisterRequest request;
  request.set_peer(std::string(20 << 20, 'x'));
  v1::RegisterResponse response;
  grpc::ClientContext plain;
  EXPECT_TRUE(stub->Register(&plain, request, &response).ok());
  EXPECT_GT(service.received, 20u << 20);
  service.received = 0;
  grpc::ClientContext compressed;
  compressed.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status status = stub->Register(&compressed, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
  EXPECT_EQ(service.received, 0u);
}

// gRPC writes a line for each call whose compression is switched off.
TEST(RpcServerLimitsTest, WhatGrpcSaysOfAPeerStaysOneLine) {
  RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {}).IgnoreError();
  testing::internal::CaptureStderr();
  gpr_log(GPR_ERROR, "invalid value: %s", "x\nE 2026-01-01T00:00:00.000Z ps-0 forged\x1b[2J");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::EndsWith("invalid value: x\\nE 2026-01-01T00:00:00.000Z ps-0 "
                                "forged\\x1b[2J\n"));
}

TEST(RpcServerLimitsTest, APeerCannotFillTheLogWithWhatGrpcSays) {
  constexpr size_t kCalls = 200;
  SizeService service;
  auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto stub = v1::ChiefService::NewStub(CreateChannel(
      absl::StrCat("127.0.0.1:", (*server)->port()), grpc::InsecureChannelCredentials()));
  v1::RegisterRequest request;
  request.set_peer(std::string(1000, 'x'));
  testing::internal::CaptureStderr();
  for (size_t i = 0; i < kCalls; ++i) {
    v1::RegisterResponse response;
    grpc::ClientContext compressed;
    compressed.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    EXPECT_FALSE(stub->Register(&compressed, request, &response).ok());
  }
  const std::vector<std::string> lines =
      absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_LT(lines.size(), kCalls / 2);
  EXPECT_THAT(lines, testing::Each(testing::HasSubstr("gRPC: ")));
}

}  // namespace
}  // namespace keelson
