#include "core/client/services/grpc_chief_service.h"

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "core/base/mutex.h"
#include "core/rpc/protocol.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"
#include "keelson/v1/chief_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Puts something of each request into its answer; refuses AcquireWork.
class EchoChief final : public v1::ChiefService::Service {
 public:
  // The protocol that later answers show; empty: none. Any thread may call.
  void ShowProtocol(absl::string_view protocol) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    protocol_ = std::string(protocol);
  }

  grpc::Status Register(grpc::ServerContext* context, const v1::RegisterRequest*,
                        v1::RegisterResponse* response) override {
    response->set_phase(v1::TRAINING);
    return Ok(context);
  }
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest*,
                        v1::GetModelResponse* response) override {
    deadline_seconds = absl::ToUnixSeconds(absl::FromChrono(context->deadline()));
    response->add_ps_addresses("ps-0:2222");
    return Ok(context);
  }
  grpc::Status Heartbeat(grpc::ServerContext* context, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    response->set_error(absl::StrCat(request->progress().figures().steps(), " steps"));
    return Ok(context);
  }
  grpc::Status AcquireWork(grpc::ServerContext* context, const v1::AcquireWorkRequest*,
                           v1::AcquireWorkResponse*) override {
    return grpc::Status(grpc::StatusCode::ABORTED, "the lease was lost");
  }
  grpc::Status Leave(grpc::ServerContext* context, const v1::LeaveRequest* request,
                     v1::LeaveResponse*) override {
    left = request->header().incarnation();
    return Ok(context);
  }
  grpc::Status AcknowledgeEvaluation(grpc::ServerContext* context,
                                     const v1::AcknowledgeEvaluationRequest* request,
                                     v1::AcknowledgeEvaluationResponse* response) override {
    accuracy = request->metrics().at("accuracy");
    response->set_phase(v1::DONE);
    return Ok(context);
  }
  grpc::Status EndTraining(grpc::ServerContext* context, const v1::EndTrainingRequest*,
                           v1::EndTrainingResponse*) override {
    const auto found = context->client_metadata().find("authorization");
    if (found == context->client_metadata().end()) return Ok(context);
    // Back to the caller, who is to see what was sent.
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                        std::string(found->second.data(), found->second.size()));
  }
  grpc::Status GetJobStatus(grpc::ServerContext* context, const v1::GetJobStatusRequest*,
                            v1::JobStatus* response) override {
    response->set_step(99);
    return Ok(context);
  }

  std::atomic<int64_t> deadline_seconds{0};
  std::atomic<uint64_t> left{0};
  std::atomic<double> accuracy{0};

 private:
  grpc::Status Ok(grpc::ServerContext* context) const {
    MutexLock lock(&mu_);
    if (!protocol_.empty()) context->AddInitialMetadata(kProtocolKey, protocol_);
    return grpc::Status::OK;
  }

  mutable Mutex mu_;
  std::string protocol_ ABSL_GUARDED_BY(mu_) = kProtocol;
};

class GrpcChiefServiceTest : public testing::Test {
 protected:
  GrpcChiefServiceTest() {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&echo_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
    client_ = ConnectChiefService(address_, Credentials());
  }

  EchoChief echo_;
  std::unique_ptr<RpcServer> server_;
  std::string address_;
  std::unique_ptr<ChiefService> client_;
};

TEST_F(GrpcChiefServiceTest, EveryCallReachesItsMethod) {
  v1::RegisterResponse registered;
  ASSERT_TRUE(client_->Register({}, &registered).ok());
  EXPECT_EQ(registered.phase(), v1::TRAINING);

  v1::GetModelResponse model;
  ASSERT_TRUE(client_->GetModel({}, &model).ok());
  EXPECT_THAT(model.ps_addresses(), testing::ElementsAre("ps-0:2222"));

  v1::HeartbeatRequest heartbeat;
  heartbeat.mutable_progress()->mutable_figures()->set_steps(12);
  v1::HeartbeatResponse beaten;
  ASSERT_TRUE(client_->Heartbeat(heartbeat, &beaten).ok());
  EXPECT_EQ(beaten.error(), "12 steps");

  v1::LeaveRequest leave;
  leave.mutable_header()->set_incarnation(34);
  v1::LeaveResponse left;
  ASSERT_TRUE(client_->Leave(leave, &left).ok());
  EXPECT_EQ(echo_.left, 34u);

  v1::AcknowledgeEvaluationRequest acknowledge;
  (*acknowledge.mutable_metrics())["accuracy"] = 0.75;
  v1::AcknowledgeEvaluationResponse acknowledged;
  ASSERT_TRUE(client_->AcknowledgeEvaluation(acknowledge, &acknowledged).ok());
  EXPECT_EQ(acknowledged.phase(), v1::DONE);
  EXPECT_EQ(echo_.accuracy, 0.75);

  v1::JobStatus status;
  ASSERT_TRUE(client_->GetJobStatus({}, &status).ok());
  EXPECT_EQ(status.step(), 99);
}

TEST_F(GrpcChiefServiceTest, TheTokenGoesWithACall) {
  v1::EndTrainingResponse response;
  EXPECT_EQ(client_->EndTraining({}, &response), absl::OkStatus());
  Credentials credentials;
  credentials.claim.auth_token = "0123456789abcdef";
  const auto with_token = ConnectChiefService(address_, credentials);
  EXPECT_EQ(with_token->EndTraining({}, &response),
            absl::PermissionDeniedError("Bearer 0123456789abcdef"));
}

TEST_F(GrpcChiefServiceTest, CallsThatWaitHaveTheirTimeAndSomeMore) {
  v1::GetModelRequest request;
  request.mutable_max_wait()->set_seconds(3600);
  v1::GetModelResponse model;
  const int64_t before = absl::ToUnixSeconds(absl::Now());
  ASSERT_TRUE(client_->GetModel(request, &model).ok());
  EXPECT_GT(echo_.deadline_seconds, before + 3600);
  EXPECT_LT(echo_.deadline_seconds, absl::ToUnixSeconds(absl::Now()) + 3600 + 60);
}

TEST_F(GrpcChiefServiceTest, AChiefOfAnotherBuildIsRefusedWithBothVersions) {
  for (const absl::string_view protocol : {"", "of-another-build"}) {
    echo_.ShowProtocol(protocol);
    v1::RegisterResponse registered;
    EXPECT_EQ(client_->Register({}, &registered),
              absl::FailedPreconditionError(absl::StrCat(
                  "chief at ", address_, " is of another build: expected message protocol ",
                  kProtocol, ", found ", protocol.empty() ? "none" : protocol)));
    v1::JobStatus status;
    EXPECT_EQ(client_->GetJobStatus({}, &status), absl::OkStatus());
  }
}

TEST_F(GrpcChiefServiceTest, ErrorsOfTheChiefKeepCodeAndText) {
  v1::AcquireWorkResponse response;
  EXPECT_EQ(client_->AcquireWork({}, &response), absl::AbortedError("the lease was lost"));
}

TEST_F(GrpcChiefServiceTest, ChiefThatIsAwayIsUnavailableByName) {
  server_.reset();
  v1::JobStatus response;
  const absl::Status status = client_->GetJobStatus({}, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("chief at " + address_));
}

}  // namespace
}  // namespace keelson
