#include "core/rpc/health_service.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/health_endpoint.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

constexpr absl::Duration kDeadline = absl::Seconds(30);

std::unique_ptr<Health::Stub> StubFor(int port) {
  return Health::NewStub(
      CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
}

// A call of Watch that has sent its first status.
struct Watcher {
  Watcher(Health::Stub* stub, const std::string& service) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    context.set_wait_for_ready(true);
    HealthCheckRequest request;
    request.set_service(service);
    reader = stub->Watch(&context, request);
    first = Next();
  }
  int Next() {
    HealthCheckResponse response;
    return reader->Read(&response) ? response.status() : -1;
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;
  int first = -1;
};

class HealthServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&health_});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = StubFor(server_->port());
  }
  grpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
    context.set_wait_for_ready(true);
    HealthCheckRequest request;
    request.set_service(service);
    return stub_->Check(&context, request, response);
  }
  // -1: an error.
  int StatusOf(const std::string& service) {
    HealthCheckResponse response;
    const grpc::Status status = Check(service, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() ? response.status() : -1;
  }

  std::atomic<bool> ready_{false};
  HealthService health_{&ready_, {"keelson.v1.ChiefService"}};
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthServiceTest, ServesWhenReadyAndNotWhenStopping) {
  for (const char* service : {"", "keelson.v1.ChiefService"}) {
    EXPECT_EQ(StatusOf(service), HealthCheckResponse::NOT_SERVING);
  }
  ready_ = true;
  for (const char* service : {"", "keelson.v1.ChiefService"}) {
    EXPECT_EQ(StatusOf(service), HealthCheckResponse::SERVING);
  }
  health_.Stop();
  EXPECT_EQ(StatusOf(""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, AnUnknownServiceIsNotFound) {
  HealthCheckResponse response;
  const grpc::Status status = Check("keelson.v1.Other", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("keelson.v1.Other"));
  EXPECT_EQ(Watcher(stub_.get(), "keelson.v1.Other").first, HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(HealthServiceTest, AWatcherHearsOfChangesAndOfTheEnd) {
  Watcher watcher(stub_.get(), "");
  EXPECT_EQ(watcher.first, HealthCheckResponse::NOT_SERVING);
  ready_ = true;
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::SERVING);
  health_.Stop();
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watcher.Next(), -1);
  EXPECT_EQ(watcher.reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, WatchersAreLimitedAndLeaveRoomWhenTheyGo) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 32; ++i) watchers.push_back(std::make_unique<Watcher>(stub_.get(), ""));
  EXPECT_EQ(watchers.back()->first, HealthCheckResponse::NOT_SERVING);
  Watcher refused(stub_.get(), "");
  EXPECT_EQ(refused.first, -1);
  EXPECT_EQ(refused.reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  watchers.front()->context.TryCancel();
  EXPECT_EQ(watchers.front()->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The server notices it a little later.
  const absl::Time give_up = absl::Now() + kDeadline;
  int first = -1;
  while (first == -1 && absl::Now() < give_up) first = Watcher(stub_.get(), "").first;
  EXPECT_EQ(first, HealthCheckResponse::NOT_SERVING);
  health_.Stop();
  for (const auto& watcher : watchers) watcher->context.TryCancel();
}

TEST_F(HealthServiceTest, AServerThatGoesEndsItsWatchers) {
  Watcher watcher(stub_.get(), "");
  EXPECT_EQ(watcher.first, HealthCheckResponse::NOT_SERVING);
  server_ = nullptr;
  EXPECT_EQ(watcher.Next(), -1);
}

TEST(HealthEndpoint, AnswersOnAPortOfItsOwn) {
  std::atomic<bool> ready{true};
  auto endpoint = HealthEndpoint::Start("127.0.0.1:0", &ready);
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const auto stub = StubFor((*endpoint)->port());
  Watcher watcher(stub.get(), "");
  EXPECT_EQ(watcher.first, HealthCheckResponse::SERVING);
  ready = false;
  EXPECT_EQ(watcher.Next(), HealthCheckResponse::NOT_SERVING);
  *endpoint = nullptr;
  EXPECT_EQ(watcher.Next(), -1);
}

TEST(HealthEndpoint, PortInUseSaysSo) {
  std::atomic<bool> ready{true};
  const auto first = HealthEndpoint::Start("127.0.0.1:0", &ready);
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  const auto second = HealthEndpoint::Start(address, &ready);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Address already in use"));
}

}  // namespace
}  // namespace keelson
