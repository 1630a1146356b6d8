// Members that do not belong.
#include "core/base/fresh_directory_testing.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/cluster/membership_id.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "tests/support/local_cluster.h"
#include "worker/chief_session.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

using testing::HasSubstr;

TEST(MembershipTest, SecondWorkerWithTheSameIndexIsRefusedAfterTheLease) {
  LocalCluster cluster({1, 1, false, SmallConfig(FreshDirectory())});
  cluster.gate().CloseAt(10);
  cluster.Start();
  cluster.WaitForStep(1);

  const RoleContext context = cluster.ContextOf({Role::kWorker, 0});
  ManualClock clock;
  const auto connection = ConnectChiefService(cluster.ChiefAddress(), Credentials());
  FaultyChiefService chief(connection.get());
  chief.Answer(&ChiefService::Register, [&](const auto& request, auto* response) {
    clock.Advance(absl::Seconds(6));
    return connection->Register(request, response);
  });
  ChiefSession::Options options;
  options.self = context.self;
  options.membership = RandomMembershipId();
  options.config_hash = context.config_hash;
  Progress progress;
  StopSignal stop;
  ChiefSession session(options, &chief, &progress, &clock, &stop);
  const absl::Status refused = session.Join();
  EXPECT_EQ(refused.code(), absl::StatusCode::kAlreadyExists) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("worker-0"));
  EXPECT_GT(chief.Count(&ChiefService::Register), 1);

  cluster.gate().Open();
  cluster.ExpectDone();
}

TEST(MembershipTest, WorkerWithAnotherConfigurationIsRefusedWithBothHashes) {
  LocalCluster cluster({1, 1, false, SmallConfig(FreshDirectory())});
  cluster.gate().CloseAt(10);
  cluster.Start();
  cluster.WaitForStep(1);

  RoleContext other = cluster.ContextOf({Role::kWorker, 1});
  other.config.mutable_train()->set_batch_size(4);
  const uint64_t expected = other.config_hash;
  other.config_hash = ConfigHash(other.config);
  const auto chief = ConnectChiefService(cluster.ChiefAddress(), Credentials());
  WorkerFlags flags;
  flags.device = "cpu";
  flags.compute_threads = 1;
  StopSignal stop;
  const auto devices = OpenWorkerDevices(flags, other.cluster);
  ASSERT_TRUE(devices.ok()) << devices.status();
  const absl::Status refused = RunWorkerRole(other, flags, devices->get(), chief.get(),
                                             GrpcParameterClients(other, flags), &stop);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(HashToString(expected)));
  EXPECT_THAT(std::string(refused.message()), HasSubstr(HashToString(other.config_hash)));

  cluster.gate().Open();
  cluster.ExpectDone();
}

TEST(MembershipTest, ServerWithAnotherConfigurationEndsTheJobWithBothHashes) {
  const v1::TrainConfig config = SmallConfig(FreshDirectory());
  LocalCluster cluster({1, 1, false, config});
  // The port is the cluster's; the server behind it is another job's.
  StopSignal end;
  ParameterHandler handler({1, ConfigHash(config) + 1}, Clock::Real(), &end);
  ParameterGrpcService service(&handler, &handler);
  const auto server =
      RpcServer::Start(cluster.ContextOf({Role::kPs, 0}).cluster.ps[0],
                       grpc::InsecureServerCredentials(), {&service}, {service.RawMethods()});
  ASSERT_TRUE(server.ok()) << server.status();
  cluster.StartChief();
  const absl::Status status = cluster.WaitForChief();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(HashToString(ConfigHash(config))));
  EXPECT_THAT(std::string(status.message()), HasSubstr(HashToString(ConfigHash(config) + 1)));
}

}  // namespace
}  // namespace keelson
