#include "core/rpc/guarded_call.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/rpc/channel.h"
#include "core/rpc/credentials.h"
#include "core/rpc/protocol.h"
#include "core/rpc/raw_client.h"
#include "core/rpc/server.h"
#include "core/rpc/stalled_call_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kRegister[] = "/keelson.v1.ChiefService/Register";
constexpr char kGetJobStatus[] = "/keelson.v1.ChiefService/GetJobStatus";
constexpr absl::Duration kDeadlineOfCalls = absl::Seconds(60);

// Serves two methods.
class Service : public v1::ChiefService::Service {
 public:
  explicit Service(const AccessGuard* guard) : calls_(guard) {
    const char* const service = v1::ChiefService::service_full_name();
    MarkMethodStreamed(
        MethodIndex(service, "Register"),
        calls_.Unary<v1::RegisterRequest, v1::RegisterResponse>(
            kRegister, [this](const v1::RegisterRequest& request, auto*, CallerKind) {
              ++registered;
              return request.peer() == "bad" ? absl::AbortedError("go away") : absl::OkStatus();
            }));
    MarkMethodStreamed(MethodIndex(service, "GetJobStatus"),
                       calls_.Unary<v1::GetJobStatusRequest, v1::JobStatus>(
                           kGetJobStatus, [](const auto&, v1::JobStatus* status, CallerKind) {
                             status->set_step(7);
                             return absl::OkStatus();
                           }));
  }

  std::atomic<int> registered{0};

 private:
  GuardedCalls calls_;
};

class GuardedCallsTest : public testing::Test {
 protected:
  GuardedCallsTest() {
    RawServing serving;
    serving.guard = &guard_;
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   std::move(serving));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                             grpc::InsecureChannelCredentials());
    stub_ = v1::ChiefService::NewStub(channel_);
  }

  grpc::Status Register(const std::string& peer, const std::string& role = "worker") {
    grpc::ClientContext context;
    AddClaim({role, "", ""}, &context);
    v1::RegisterRequest request;
    request.set_peer(peer);
    v1::RegisterResponse response;
    return stub_->Register(&context, request, &response);
  }

  const AccessGuard guard_;
  Service service_{&guard_};
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ChiefService::Stub> stub_;
};

TEST_F(GuardedCallsTest, ServesAndRefusesByMethodAndRole) {
  EXPECT_TRUE(Register("host:1").ok());
  EXPECT_EQ(Register("bad").error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(service_.registered, 2);
  EXPECT_EQ(Register("host:1", "chief").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(service_.registered, 2);
}

TEST_F(GuardedCallsTest, AnswersShowTheProtocol) {
  grpc::ClientContext context;
  v1::JobStatus status;
  ASSERT_TRUE(stub_->GetJobStatus(&context, {}, &status).ok());
  EXPECT_EQ(CheckAnswer(context, "the service"), absl::OkStatus());
}

TEST_F(GuardedCallsTest, ARequestThatIsTooLargeIsRefusedBeforeItIsDecoded) {
  EXPECT_TRUE(Register(std::string((1 << 20) - 100, 'x')).ok());
  const grpc::Status status = Register(std::string(1 << 20, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("Register: expected a request of at most 1048576 bytes, found 1048580"));
  EXPECT_EQ(service_.registered, 1);
}

TEST_F(GuardedCallsTest, BytesThatAreNoMessageAreRefused) {
  RawCallQueue calls({"worker", "", ""});
  ByteRope bytes;
  bytes.AppendCopy("\xff\xff\xff");
  calls.Start(channel_, kRegister, std::move(bytes), kDeadlineOfCalls, 1);
  const auto done = calls.Next(kDeadlineOfCalls);
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(done->status.error_message(), HasSubstr("expected a keelson.v1.RegisterRequest"));
}

// Calls that anyone may make and that send nothing hold threads: the oldest gives way.
TEST_F(GuardedCallsTest, RequestsThatDoNotEndDoNotKeepOthersOut) {
  std::vector<std::unique_ptr<StalledCall>> silent;
  for (size_t i = 0; i < GuardedCalls::kPendingStrangers + 3; ++i) {
    silent.push_back(std::make_unique<StalledCall>(channel_, kGetJobStatus));
  }
  EXPECT_EQ(silent[0]->Await().error_code(), grpc::StatusCode::CANCELLED);
  grpc::ClientContext context;
  v1::JobStatus status;
  ASSERT_TRUE(stub_->GetJobStatus(&context, {}, &status).ok());
  EXPECT_EQ(status.step(), 7);
}

}  // namespace
}  // namespace keelson
