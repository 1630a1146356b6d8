#include "chief/service/proposal_grpc_service.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "chief/proposal/job_proposals.h"
#include "core/base/file_system_testing.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/config/train_config.h"
#include "core/rpc/server.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(ProposalGrpcServiceTest, TakesProposalsAndHasOthersAskAgain) {
  MemoryFileSystem files;
  ManualClock clock;
  JobProposals proposals("/model", &files, &clock);
  const AccessGuard guard;
  v1::JobStatus job;
  job.set_phase(v1::WAITING_FOR_MODEL);
  ProposalGrpcService service(
      [&](const v1::ProposeJobRequest& request, v1::ProposeJobResponse* response) {
        return proposals.Propose(request, response);
      },
      job, &guard);
  const std::unique_ptr<RpcServer> server =
      RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service}).value();
  const auto connect = [&](const char* role) {
    return ConnectChiefService(absl::StrCat("127.0.0.1:", server->port()), CredentialsAs(role),
                               absl::Seconds(10));
  };
  const std::unique_ptr<ChiefService> worker = connect("worker");
  v1::JobStatus status;
  ASSERT_TRUE(worker->GetJobStatus({}, &status).ok());
  EXPECT_EQ(status.phase(), v1::WAITING_FOR_MODEL);
  v1::RegisterResponse registered;
  EXPECT_EQ(worker->Register({}, &registered).code(), absl::StatusCode::kUnavailable);
  // A member of before the chief was restarted registers again, and proposes before that.
  v1::HeartbeatRequest heartbeat;
  heartbeat.mutable_header()->mutable_task()->set_role(v1::ROLE_WORKER);
  v1::HeartbeatResponse beaten;
  EXPECT_EQ(worker->Heartbeat(heartbeat, &beaten).code(), absl::StatusCode::kAborted);
  v1::ProposeJobRequest request;
  request.set_proposal_id(7);
  *request.mutable_config() = ParseTrainConfig(R"(
    model { name: "line" external { variables { name: "w" } } }
    optimizer { sgd {} } learning_rate { base: 0.1 } data { external { train_records: 10 } }
    train { batch_size: 2 max_steps: 20 })",
                                               "test")
                                  .value();
  v1::ProposeJobResponse response;
  EXPECT_EQ(connect("nobody")->ProposeJob(request, &response).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(worker->ProposeJob(request, &response).ok());
  EXPECT_TRUE(response.has_config());
  server->Shutdown(absl::ZeroDuration());
}

}  // namespace
}  // namespace keelson
