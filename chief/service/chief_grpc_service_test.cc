#include "chief/service/chief_grpc_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/coordination/coordinator_testing.h"
#include "chief/service/chief_handler.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/cluster/task_proto.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ChiefGrpcServiceTest : public testing::Test {
 protected:
  ChiefGrpcServiceTest() {
    RawServing serving;
    serving.guard = &guard_;
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&service_},
                                   std::move(serving));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::unique_ptr<ChiefService> ConnectAs(const std::string& role) const {
    return ConnectChiefService(absl::StrCat("127.0.0.1:", server_->port()), CredentialsAs(role));
  }
  static v1::RegisterRequest RegisterRequest() {
    v1::RegisterRequest request;
    *request.mutable_header()->mutable_task() = TaskToProto({Role::kWorker, 3});
    request.mutable_header()->set_incarnation(7);
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
  ASSERT_EQ(ConnectAs("worker")->Register(RegisterRequest(), &registered), absl::OkStatus());
  EXPECT_EQ(registered.phase(), v1::WAITING_FOR_SERVERS);
  v1::JobStatus status;
  ASSERT_EQ(ConnectAs("")->GetJobStatus({}, &status), absl::OkStatus());
  EXPECT_EQ(status.members_size(), 1);
  EXPECT_EQ(ConnectAs("chief")->Register(RegisterRequest(), &registered).code(),
            absl::StatusCode::kPermissionDenied);
  v1::EndTrainingResponse ended;
  EXPECT_EQ(ConnectAs("evaluator")->EndTraining({}, &ended).code(),
            absl::StatusCode::kPermissionDenied)
      << "a member ends the training under its own name";
}

TEST_F(ChiefGrpcServiceTest, ALongReportIsRefusedUnread) {
  v1::RegisterRequest request = RegisterRequest();
  for (int i = 0; i < 600'000; ++i) request.add_leases();
  v1::RegisterResponse registered;
  const absl::Status status = ConnectAs("worker")->Register(request, &registered);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Register: expected a request of at most 1048576 bytes, found 12000"));
  EXPECT_TRUE(coordinator_.GetStatus().members.empty());
}

}  // namespace
}  // namespace keelson
