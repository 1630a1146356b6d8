#include "core/client/grpc_parameter_service.h"

#include <atomic>

#include "absl/strings/str_cat.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Puts something of each request into its answer; refuses Pull.
class EchoService final : public v1::ParameterService::Service {
 public:
  grpc::Status Initialize(grpc::ServerContext*, const v1::InitializeShardRequest* request,
                          v1::InitializeShardResponse* response) override {
    response->mutable_status()->set_config_hash(request->config_hash());
    return grpc::Status::OK;
  }
  grpc::Status Pull(grpc::ServerContext*, const v1::PullRequest*, v1::PullResponse*) override {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "block 7: expected 0..3");
  }
  grpc::Status Push(grpc::ServerContext*, const v1::PushRequest* request,
                    v1::PushResponse* response) override {
    response->set_shard_step(static_cast<int64_t>(request->sequence()));
    return grpc::Status::OK;
  }
  grpc::Status PushPull(grpc::ServerContext*, const v1::PushRequest* request,
                        v1::PushPullResponse* response) override {
    response->set_payload(absl::StrCat(request->sequence()));
    return grpc::Status::OK;
  }
  grpc::Status WriteSnapshot(grpc::ServerContext*, const v1::WriteSnapshotRequest* request,
                             v1::WriteSnapshotResponse* response) override {
    response->add_entries()->set_key(request->data_path());
    return grpc::Status::OK;
  }
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetShardStatusRequest*,
                         v1::ShardStatus* response) override {
    response->set_state(v1::ShardStatus::READY);
    return grpc::Status::OK;
  }
  grpc::Status FindChief(grpc::ServerContext*, const v1::FindChiefRequest*,
                         v1::FindChiefResponse* response) override {
    response->set_address("chief-0:2222");
    return grpc::Status::OK;
  }
  grpc::Status Finish(grpc::ServerContext*, const v1::FinishShardRequest* request,
                      v1::FinishShardResponse*) override {
    finished_by = request->header().incarnation();
    return grpc::Status::OK;
  }

  std::atomic<uint64_t> finished_by{0};
};

ByteRope PushOf(uint64_t sequence) {
  BulkRequest request;
  request.sequence = sequence;
  ByteRope rope;
  rope.AppendOwned(EncodeBulkRequest(request, 0));
  return rope;
}

class GrpcParameterServiceTest : public testing::Test {
 protected:
  GrpcParameterServiceTest() {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&echo_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
    client_ = ConnectParameterService("ps-1", address_, grpc::InsecureChannelCredentials());
  }

  EchoService echo_;
  std::unique_ptr<RpcServer> server_;
  std::string address_;
  std::unique_ptr<ParameterService> client_;
};

TEST_F(GrpcParameterServiceTest, EveryCallReachesItsMethod) {
  v1::InitializeShardRequest initialize;
  initialize.set_config_hash(12);
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(client_->Initialize(initialize, &initialized).ok());
  EXPECT_EQ(initialized.status().config_hash(), 12u);

  const auto pushed = client_->Bulk(BulkMethod::kPush, PushOf(34));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  v1::PushResponse push;
  ASSERT_TRUE(push.ParseFromString(pushed->ToString()));
  EXPECT_EQ(push.shard_step(), 34);

  const auto exchanged = client_->Bulk(BulkMethod::kPushPull, PushOf(35));
  ASSERT_TRUE(exchanged.ok()) << exchanged.status();
  v1::PushPullResponse exchange;
  ASSERT_TRUE(exchange.ParseFromString(exchanged->ToString()));
  EXPECT_EQ(exchange.payload(), "35");

  v1::WriteSnapshotRequest write;
  write.set_data_path("model.ckpt-1.data-00000-of-00001");
  v1::WriteSnapshotResponse written;
  ASSERT_TRUE(client_->WriteSnapshot(write, &written).ok());
  ASSERT_EQ(written.entries_size(), 1);
  EXPECT_EQ(written.entries(0).key(), write.data_path());

  v1::ShardStatus status;
  ASSERT_TRUE(client_->GetStatus({}, &status).ok());
  EXPECT_EQ(status.state(), v1::ShardStatus::READY);

  v1::FindChiefResponse chief;
  ASSERT_TRUE(client_->FindChief({}, &chief).ok());
  EXPECT_EQ(chief.address(), "chief-0:2222");

  v1::FinishShardRequest finish;
  finish.mutable_header()->set_incarnation(56);
  v1::FinishShardResponse finished;
  ASSERT_TRUE(client_->Finish(finish, &finished).ok());
  EXPECT_EQ(echo_.finished_by, 56u);
}

TEST_F(GrpcParameterServiceTest, ErrorsOfTheServerKeepCodeAndText) {
  const absl::Status status = client_->Bulk(BulkMethod::kPull, {}).status();
  EXPECT_EQ(status, absl::InvalidArgumentError("block 7: expected 0..3"));
}

TEST_F(GrpcParameterServiceTest, ServerThatIsAwayIsUnavailableByName) {
  server_.reset();
  v1::ShardStatus control;
  absl::Status status = client_->GetStatus({}, &control);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1 at " + address_));
  status = client_->Bulk(BulkMethod::kPull, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1 at " + address_));
}

}  // namespace
}  // namespace keelson
