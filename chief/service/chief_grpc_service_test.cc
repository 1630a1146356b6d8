#include "chief/service/chief_grpc_service.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/coordination/member_ids_testing.h"
#include "chief/service/chief_handler.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/cluster/task_proto.h"
#include "core/rpc/credentials.h"
#include "core/rpc/server.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr Task kAWorker = {Role::kWorker, 3};
constexpr Task kAnEvaluator = {Role::kEvaluator, 0};

// A chief that guards its calls, in a job without a token.
class ChiefGrpcServiceTest : public testing::Test {
 protected:
  ChiefGrpcServiceTest() { server_ = Start(&service_, &guard_); }

  static std::unique_ptr<RpcServer> Start(ChiefGrpcService* service, const AccessGuard* guard) {
    RawServing serving;
    serving.guard = guard;
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {service},
                                   std::move(serving));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  std::unique_ptr<ChiefService> ConnectAs(const std::string& role,
                                          const std::string& protocol = kProtocol) const {
    Credentials credentials = CredentialsAs(role);
    credentials.claim.protocol = protocol;
    return ConnectChiefService(absl::StrCat("127.0.0.1:", server_->port()), credentials);
  }
  static v1::RequestHeader HeaderOf(Task task) {
    v1::RequestHeader header;
    *header.mutable_task() = TaskToProto(task);
    SetMembershipId(TestId(7 + static_cast<uint64_t>(task.role)), &header);
    return header;
  }
  static v1::RegisterRequest RegistrationOf(Task task) {
    v1::RegisterRequest request;
    *request.mutable_header() = HeaderOf(task);
    request.set_config_hash(kHash);
    request.set_peer("host:1");
    return request;
  }

  ManualClock clock_;
  Coordinator coordinator_{{kHash, absl::Seconds(10)}, &clock_};
  ChiefHandler handler_{&coordinator_};
  const AccessGuard guard_;
  ChiefGrpcService service_{&handler_, &guard_};
  std::unique_ptr<RpcServer> server_;
};

TEST_F(ChiefGrpcServiceTest, ServesItsCallersByRole) {
  v1::RegisterResponse registered;
  ASSERT_EQ(ConnectAs("worker")->Register(RegistrationOf(kAWorker), &registered), absl::OkStatus());
  EXPECT_EQ(registered.phase(), v1::WAITING_FOR_SERVERS);
  v1::JobStatus status;
  ASSERT_EQ(ConnectAs("")->GetJobStatus({}, &status), absl::OkStatus());
  EXPECT_EQ(status.members_size(), 1);
  EXPECT_EQ(ConnectAs("chief")->Register(RegistrationOf(kAWorker), &registered).code(),
            absl::StatusCode::kPermissionDenied);
  v1::EndTrainingResponse ended;
  EXPECT_EQ(ConnectAs("evaluator")->EndTraining({}, &ended).code(),
            absl::StatusCode::kPermissionDenied)
      << "a member ends the training under its own name";
  v1::SaveSnapshotRequest save;
  v1::SaveSnapshotResponse saved;
  EXPECT_EQ(ConnectAs("worker")->SaveSnapshot(save, &saved).code(),
            absl::StatusCode::kPermissionDenied);
  *save.mutable_header() = HeaderOf(kAWorker);
  EXPECT_EQ(ConnectAs("worker")->SaveSnapshot(save, &saved).code(),
            absl::StatusCode::kFailedPrecondition)
      << "the job does not train";
  v1::EndTrainingRequest end;
  *end.mutable_header() = HeaderOf(kAWorker);
  EXPECT_EQ(ConnectAs("worker")->EndTraining(end, &ended).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ChiefGrpcServiceTest, ALongReportIsRefusedUnread) {
  v1::RegisterRequest request = RegistrationOf(kAWorker);
  for (int i = 0; i < 600'000; ++i) request.add_leases();
  v1::RegisterResponse registered;
  const absl::Status status = ConnectAs("worker")->Register(request, &registered);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Register: expected a request of at most 1048576 bytes, found 12000"));
  EXPECT_TRUE(coordinator_.reports()->GetStatus().members.empty());
}

TEST_F(ChiefGrpcServiceTest, AMemberActsInItsOwnRoleOnly) {
  const auto worker = ConnectAs("worker");
  v1::RegisterResponse registered;
  const absl::Status status = worker->Register(RegistrationOf(kAnEvaluator), &registered);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a task of the caller's role, found ROLE_EVALUATOR"));
  EXPECT_EQ(worker->Register(RegistrationOf(kAWorker), &registered), absl::OkStatus());
  v1::EndTrainingRequest end;
  *end.mutable_header() = HeaderOf(kAWorker);
  v1::EndTrainingResponse ended;
  EXPECT_EQ(ConnectAs("evaluator")->EndTraining(end, &ended).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ChiefGrpcServiceTest, CallsThatWaitAreAnsweredWhenTheJobGoesOn) {
  const auto worker = ConnectAs("worker");
  v1::RegisterResponse registered;
  ASSERT_EQ(worker->Register(RegistrationOf(kAWorker), &registered), absl::OkStatus());
  v1::GetModelRequest model;
  *model.mutable_header() = HeaderOf(kAWorker);
  model.mutable_max_wait()->set_seconds(20);
  v1::AcquireWorkRequest work;
  *work.mutable_header() = HeaderOf(kAWorker);
  *work.mutable_max_wait() = model.max_wait();
  v1::GetModelResponse refused;
  EXPECT_EQ(ConnectAs("evaluator")->GetModel(model, &refused).code(),
            absl::StatusCode::kPermissionDenied);
  v1::AcquireWorkResponse granted;
  std::thread member([&] {
    v1::GetModelResponse found;
    EXPECT_EQ(worker->GetModel(model, &found), absl::OkStatus());
    EXPECT_EQ(worker->AcquireWork(work, &granted), absl::OkStatus());
  });
  // The clock moves once: whoever renews a lease after that is the call that waits.
  clock_.Advance(absl::Seconds(1));
  const auto heard_of = [&] { return coordinator_.reports()->GetStatus().members[0].last_heard; };
  while (heard_of() != clock_.Monotonic()) std::this_thread::yield();
  coordinator_.start()->StartTraining(
      {}, WorkLedger({.max_steps = 5, .num_records = 9, .batch_size = 1}));
  member.join();
  EXPECT_EQ(granted.tickets_size(), 1);
}

TEST_F(ChiefGrpcServiceTest, OnlyAMemberScoresSnapshots) {
  v1::AcknowledgeEvaluationRequest request;
  *request.mutable_header() = HeaderOf(kAnEvaluator);
  request.set_step(INT64_MAX);
  v1::AcknowledgeEvaluationResponse response;
  EXPECT_EQ(ConnectAs("worker")->AcknowledgeEvaluation(request, &response).code(),
            absl::StatusCode::kPermissionDenied);
  const auto evaluator = ConnectAs("evaluator");
  EXPECT_EQ(evaluator->AcknowledgeEvaluation(request, &response).code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, -1);
  v1::RegisterResponse registered;
  ASSERT_EQ(evaluator->Register(RegistrationOf(kAnEvaluator), &registered), absl::OkStatus());
  request.set_step(12);
  coordinator_.evaluations()->SetSnapshotStep(12);
  EXPECT_EQ(evaluator->AcknowledgeEvaluation(request, &response), absl::OkStatus());
  EXPECT_EQ(coordinator_.reports()->GetStatus().evaluated_step, 12);
}

v1::AnnounceHostRequest AnnouncementOf(const Task& task) {
  v1::AnnounceHostRequest request;
  *request.mutable_header()->mutable_task() = TaskToProto(task);
  request.mutable_header()->set_incarnation(5);
  request.set_config_hash(kHash);
  request.set_hosts(2);
  request.set_port(4711);
  return request;
}

TEST_F(ChiefGrpcServiceTest, ProcessesSayWhereTheyAre) {
  ClusterSpec cluster;
  cluster.self = {Role::kChief, 0};
  cluster.distributed = true;
  cluster.chief[0] = "node0:29500";
  cluster.world_size = cluster.min_workers = 2;
  AnnouncedHosts hosts(cluster, kHash, &clock_);
  const AccessGuard with_token({"a-job-token-of-a-test", ""});
  ChiefGrpcService service(&handler_, &with_token, &hosts);
  const auto server = Start(&service, &with_token);
  const auto announce = [&](const std::string& role, const std::string& token,
                            const std::string& protocol = kProtocol) {
    Credentials credentials = CredentialsAs(role);
    credentials.claim.job_token = token;
    credentials.claim.protocol = protocol;
    const auto chief = ConnectChiefService(absl::StrCat("127.0.0.1:", server->port()), credentials);
    v1::AnnounceHostResponse response;
    const absl::Status status = chief->AnnounceHost(AnnouncementOf({Role::kWorker, 0}), &response);
    return status.ok() ? response.address() : std::string(status.message());
  };
  // It is on the leader's machine.
  EXPECT_EQ(announce("worker", "a-job-token-of-a-test"), "node0:4711");
  EXPECT_THAT(announce("worker", ""), HasSubstr("the job's token is needed"));
  EXPECT_THAT(announce("worker", "another-token-of-a-test"), HasSubstr("is not that of the job"));
  EXPECT_THAT(announce("evaluator", "a-job-token-of-a-test"),
              HasSubstr("AnnounceHost: not for \"evaluator\""));
  EXPECT_THAT(announce("worker", "a-job-token-of-a-test", "999"),
              HasSubstr("of another build: expected message protocol"));
}

TEST_F(ChiefGrpcServiceTest, AChiefWhoseClusterListsItsTasksTakesNoAnnouncement) {
  v1::AnnounceHostResponse response;
  EXPECT_THAT(std::string(ConnectAs("worker")
                              ->AnnounceHost(AnnouncementOf({Role::kWorker, 0}), &response)
                              .message()),
              HasSubstr("AnnounceHost: this chief's cluster lists the addresses of its tasks"));
  EXPECT_EQ(
      ConnectAs("worker")->AnnounceHost(AnnouncementOf({Role::kEvaluator, 0}), &response).code(),
      absl::StatusCode::kPermissionDenied);
}

TEST_F(ChiefGrpcServiceTest, NobodyChangesAModeWithoutTheRoleOrEndsTrainingWithoutAMembership) {
  v1::SetModeRequest mode;
  mode.mutable_mode()->mutable_async();
  v1::SetModeResponse set;
  v1::EndTrainingRequest end;
  *end.mutable_header() = HeaderOf(kAnEvaluator);
  v1::EndTrainingResponse ended;
  EXPECT_EQ(ConnectAs("evaluator")->EndTraining(end, &ended).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ConnectAs("worker")->EndTraining(end, &ended).code(),
            absl::StatusCode::kPermissionDenied);
  const AccessGuard with_token({"a-job-token-of-a-test", ""});
  ChiefGrpcService service(&handler_, &with_token);
  const auto server = Start(&service, &with_token);
  const auto worker =
      ConnectChiefService(absl::StrCat("127.0.0.1:", server->port()), CredentialsAs("worker"));
  EXPECT_EQ(worker->SetMode(mode, &set).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ChiefGrpcServiceTest, ACallerOfAnotherBuildIsToldBothVersions) {
  for (const char* protocol : {"", "999"}) {
    v1::RegisterResponse registered;
    const absl::Status status =
        ConnectAs("worker", protocol)->Register(RegistrationOf(kAWorker), &registered);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("expected message protocol ", kProtocol, ", found ",
                                       protocol[0] == '\0' ? "none" : protocol)));
  }
  EXPECT_FALSE(coordinator_.roster()->AnyAlive(Role::kWorker));
}

}  // namespace
}  // namespace keelson
