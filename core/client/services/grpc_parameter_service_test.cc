#include "core/client/services/grpc_parameter_service.h"

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

  grpc::Status Attend(grpc::ServerContext*, const v1::AttendRequest* request,
                      v1::ShardStatus* response) override {
    response->set_memory_version(request->memory_version());
    return grpc::Status::OK;
  }
  grpc::Status CommitRound(grpc::ServerContext*, const v1::CommitRoundRequest* request,
                           v1::CommitRoundResponse* response) override {
    response->set_shard_step(request->round() + 1);
    return grpc::Status::OK;
  }
  // Three messages of bytes, then the end, which data_shard 1 does without.
  grpc::Status StreamSnapshot(grpc::ServerContext*, const v1::StreamSnapshotRequest* request,
                              grpc::ServerWriter<v1::SnapshotChunk>* writer) override {
    for (const char* data : {"ab", "cd", "ef"}) {
      v1::SnapshotChunk chunk;
      chunk.set_data(data);
      writer->Write(chunk);
    }
    v1::SnapshotChunk chunk;
    chunk.mutable_end()->set_shard_step(5);
    if (request->data_shard() == 0) writer->Write(chunk);
    return request->data_shard() == 2 ? grpc::Status(grpc::StatusCode::ABORTED, "replaced")
                                      : grpc::Status::OK;
  }
  // Counts the blocks; refuses what begins with a config hash.
  grpc::Status InitializeStreamed(grpc::ServerContext*,
                                  grpc::ServerReader<v1::InitializeChunk>* reader,
                                  v1::InitializeShardResponse* response) override {
    v1::InitializeChunk chunk;
    int64_t blocks = 0;
    while (reader->Read(&chunk)) {
      if (chunk.start().config_hash() != 0) {
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "another configuration");
      }
      blocks += chunk.blocks_size();
    }
    response->mutable_status()->set_shard_step(blocks);
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

TEST_F(GrpcParameterServiceTest, TheChiefsTurnAndCommitsReachTheirMethods) {
  v1::AttendRequest attend;
  attend.set_memory_version(7);
  v1::ShardStatus status;
  ASSERT_TRUE(client_->Attend(attend, &status).ok());
  EXPECT_EQ(status.memory_version(), 7u);
  v1::CommitRoundRequest commit;
  commit.set_round(8);
  v1::CommitRoundResponse committed;
  ASSERT_TRUE(client_->CommitRound(commit, &committed).ok());
  EXPECT_EQ(committed.shard_step(), 9);
}

TEST_F(GrpcParameterServiceTest, StreamsASnapshot) {
  std::string bytes;
  const auto take = [&bytes](absl::string_view data) {
    bytes.append(data.data(), data.size());
    return absl::OkStatus();
  };
  v1::WriteSnapshotResponse response;
  ASSERT_TRUE(client_->StreamSnapshot({}, take, &response).ok());
  EXPECT_EQ(bytes, "abcdef");
  EXPECT_EQ(response.shard_step(), 5);

  v1::StreamSnapshotRequest request;
  request.set_data_shard(1);
  absl::Status status = client_->StreamSnapshot(request, take, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a snapshot without its end"));
  request.set_data_shard(2);
  EXPECT_EQ(client_->StreamSnapshot(request, take, &response), absl::AbortedError("replaced"));
}

TEST_F(GrpcParameterServiceTest, WhoTakesASnapshotMayEndIt) {
  int taken = 0;
  v1::WriteSnapshotResponse response;
  const absl::Status status = client_->StreamSnapshot(
      {},
      [&taken](absl::string_view) {
        return ++taken < 2 ? absl::OkStatus() : absl::ResourceExhaustedError("disk full");
      },
      &response);
  EXPECT_EQ(status, absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(taken, 2);
}

TEST_F(GrpcParameterServiceTest, StreamsAShardIn) {
  v1::InitializeChunk first;
  first.add_blocks();
  int sent = 0;
  const auto next = [&sent]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    if (sent == 3) return std::nullopt;
    v1::InitializeChunk chunk;
    for (int i = 0; i <= sent; ++i) chunk.add_blocks();
    ++sent;
    return chunk;
  };
  v1::InitializeShardResponse response;
  ASSERT_TRUE(client_->InitializeStreamed(first, next, &response).ok());
  EXPECT_EQ(response.status().shard_step(), 7);

  const auto damaged = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return absl::DataLossError("model.ckpt-3: checksum");
  };
  EXPECT_EQ(client_->InitializeStreamed(first, damaged, &response),
            absl::DataLossError("model.ckpt-3: checksum"));
}

TEST_F(GrpcParameterServiceTest, AServerThatRefusesAShardGetsNoMoreOfIt) {
  v1::InitializeChunk first;
  first.mutable_start()->set_config_hash(1);
  const auto endless = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return v1::InitializeChunk();
  };
  v1::InitializeShardResponse response;
  EXPECT_EQ(client_->InitializeStreamed(first, endless, &response),
            absl::FailedPreconditionError("another configuration"));
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
