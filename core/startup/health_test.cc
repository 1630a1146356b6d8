#include "core/startup/health.h"

#include <gmock/gmock.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "core/http/http_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// An endpoint at a free port.
std::unique_ptr<HealthEndpoint> AnyEndpoint() {
  static const std::atomic<bool> ready{true};
  auto endpoint = HealthEndpoint::Start("127.0.0.1:0", &ready);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

RoleContext WorkerAt(int port) {
  RoleContext context;
  context.self = {Role::kWorker, 1};
  context.cluster.self = context.self;
  context.cluster.distributed = true;
  context.cluster.workers = {{1, absl::StrCat("127.0.0.1:", port)}};
  return context;
}

bool Listens(int port) { return HttpConnection::To(port).ok(); }

TEST(StartHealthEndpoint, ServesAtTheTasksAddress) {
  const int port = AnyEndpoint()->port();
  const RoleContext context = WorkerAt(port);
  auto endpoint = StartHealthEndpoint(context);
  ASSERT_NE(endpoint, nullptr);
  EXPECT_EQ(endpoint->port(), port);
  EXPECT_TRUE(Listens(port));
  endpoint = nullptr;
  EXPECT_FALSE(Listens(port));
}

TEST(StartHealthEndpoint, GoesOnWithoutAPortThatIsInUse) {
  const auto other = AnyEndpoint();
  const RoleContext context = WorkerAt(other->port());
  testing::internal::CaptureStderr();
  EXPECT_EQ(StartHealthEndpoint(context), nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("going on without gRPC's health service"));
  EXPECT_THAT(log, HasSubstr("Address already in use"));
}

TEST(StartHealthEndpoint, GuessesNoAddress) {
  RoleContext context;
  context.self = {Role::kEvaluator, 0};
  context.cluster.self = context.self;
  EXPECT_EQ(StartHealthEndpoint(context), nullptr);
}

}  // namespace
}  // namespace keelson
