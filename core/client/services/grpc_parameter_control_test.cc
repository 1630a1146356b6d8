#include "core/client/services/grpc_parameter_control.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/rpc/protocol.h"
#include "core/rpc/server.h"
#include "gmock/gmock.h"
#include "keelson/v1/chief_service.grpc.pb.h"
#include "keelson/v1/parameter_service.grpc.pb.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Puts something of each request into its answer; refuses CommitRound of round 0.
class EchoService final : public v1::ParameterService::Service {
 public:
  // The protocol that later answers show; empty: none. Any thread may call.
  void ShowProtocol(absl::string_view protocol) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(&mu_);
    protocol_ = std::string(protocol);
  }
  // Calls about files, and heartbeats, wait until they are cancelled.
  std::atomic<bool> hangs{false};
  std::atomic<int> hanging{0};

  grpc::Status Initialize(grpc::ServerContext* context, const v1::InitializeShardRequest* request,
                          v1::InitializeShardResponse* response) override {
    AwaitCancellation(context);
    response->mutable_status()->set_config_hash(request->config_hash());
    return Ok(context);
  }
  grpc::Status WriteSnapshot(grpc::ServerContext* context, const v1::WriteSnapshotRequest* request,
                             v1::WriteSnapshotResponse* response) override {
    AwaitCancellation(context);
    response->set_shard_step(request->step());
    return Ok(context);
  }
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetShardStatusRequest*,
                         v1::ShardStatus* response) override {
    response->set_state(v1::ShardStatus::READY);
    return Ok(context);
  }
  grpc::Status FindChief(grpc::ServerContext* context, const v1::FindChiefRequest*,
                         v1::FindChiefResponse* response) override {
    response->set_address("chief-0:2222");
    return Ok(context);
  }
  grpc::Status Finish(grpc::ServerContext* context, const v1::FinishShardRequest* request,
                      v1::FinishShardResponse*) override {
    finished_by = request->header().incarnation();
    return Ok(context);
  }

  grpc::Status ChiefHeartbeat(grpc::ServerContext* context,
                              const v1::ChiefHeartbeatRequest* request,
                              v1::ShardStatus* response) override {
    AwaitCancellation(context);
    response->set_job_state_version(request->job_state_version());
    return Ok(context);
  }
  grpc::Status CommitRound(grpc::ServerContext* context, const v1::CommitRoundRequest* request,
                           v1::CommitRoundResponse* response) override {
    if (request->round() == 0) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "expected 2, found 1");
    }
    response->set_shard_step(request->round() + 1);
    return Ok(context);
  }
  // Three messages of bytes, then the end, which data_shard 1 does without.
  grpc::Status StreamSnapshot(grpc::ServerContext* context,
                              const v1::StreamSnapshotRequest* request,
                              grpc::ServerWriter<v1::SnapshotChunk>* writer) override {
    AwaitCancellation(context);
    for (const char* data : {"ab", "cd", "ef"}) {
      v1::SnapshotChunk chunk;
      chunk.set_data(data);
      writer->Write(chunk);
    }
    v1::SnapshotChunk chunk;
    chunk.mutable_end()->set_shard_step(5);
    if (request->data_shard() == 0) writer->Write(chunk);
    return request->data_shard() == 2 ? grpc::Status(grpc::StatusCode::ABORTED, "replaced")
                                      : Ok(context);
  }
  // Counts the blocks; refuses what begins with a config hash.
  grpc::Status InitializeStreamed(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::InitializeChunk>* reader,
                                  v1::InitializeShardResponse* response) override {
    AwaitCancellation(context);
    v1::InitializeChunk chunk;
    int64_t blocks = 0;
    while (reader->Read(&chunk)) {
      if (chunk.start().config_hash() != 0) {
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "another configuration");
      }
      blocks += chunk.blocks_size();
    }
    response->mutable_status()->set_shard_step(blocks);
    return Ok(context);
  }

  std::atomic<uint64_t> finished_by{0};

 private:
  void AwaitCancellation(grpc::ServerContext* context) {
    if (!hangs) return;
    ++hanging;
    while (!context->IsCancelled()) std::this_thread::yield();
  }
  grpc::Status Ok(grpc::ServerContext* context) const {
    MutexLock lock(&mu_);
    if (!protocol_.empty()) context->AddInitialMetadata(kProtocolKey, protocol_);
    return grpc::Status::OK;
  }

  mutable Mutex mu_;
  std::string protocol_ ABSL_GUARDED_BY(mu_) = kProtocol;
};

class GrpcParameterControlTest : public testing::Test {
 protected:
  GrpcParameterControlTest() {
    auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&echo_});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = absl::StrCat("127.0.0.1:", server_->port());
    client_ = ConnectParameterControl("ps-1", address_, Credentials());
  }

  EchoService echo_;
  std::unique_ptr<RpcServer> server_;
  std::string address_;
  std::unique_ptr<ParameterControl> client_;
};

TEST_F(GrpcParameterControlTest, EveryCallReachesItsMethod) {
  v1::InitializeShardRequest initialize;
  initialize.set_config_hash(12);
  v1::InitializeShardResponse initialized;
  ASSERT_TRUE(client_->Initialize(initialize, &initialized).ok());
  EXPECT_EQ(initialized.status().config_hash(), 12u);

  v1::WriteSnapshotRequest write;
  write.set_step(13);
  v1::WriteSnapshotResponse written;
  ASSERT_TRUE(client_->WriteSnapshot(write, &written).ok());
  EXPECT_EQ(written.shard_step(), 13);

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

TEST_F(GrpcParameterControlTest, TheChiefsTurnAndCommitsReachTheirMethods) {
  v1::ChiefHeartbeatRequest heartbeat;
  heartbeat.set_job_state_version(7);
  v1::ShardStatus status;
  ASSERT_TRUE(client_->ChiefHeartbeat(heartbeat, &status).ok());
  EXPECT_EQ(status.job_state_version(), 7u);
  v1::CommitRoundRequest commit;
  commit.set_round(8);
  v1::CommitRoundResponse committed;
  ASSERT_TRUE(client_->CommitRound(commit, &committed).ok());
  EXPECT_EQ(committed.shard_step(), 9);
}

TEST_F(GrpcParameterControlTest, StreamsASnapshot) {
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

TEST_F(GrpcParameterControlTest, WhoTakesASnapshotMayEndIt) {
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

TEST_F(GrpcParameterControlTest, StreamsAShardIn) {
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

TEST_F(GrpcParameterControlTest, AServerThatRefusesAShardGetsNoMoreOfIt) {
  v1::InitializeChunk first;
  first.mutable_start()->set_config_hash(1);
  const auto endless = []() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    return v1::InitializeChunk();
  };
  v1::InitializeShardResponse response;
  EXPECT_EQ(client_->InitializeStreamed(first, endless, &response),
            absl::FailedPreconditionError("another configuration"));
}

TEST_F(GrpcParameterControlTest, CallsAboutFilesAreCancelledAndOthersAreNot) {
  echo_.hangs = true;
  std::vector<absl::Status> ended(4);
  std::vector<std::thread> calls;
  calls.emplace_back([&] {
    v1::InitializeShardResponse response;
    ended[0] = client_->Initialize({}, &response);
  });
  calls.emplace_back([&] {
    v1::WriteSnapshotResponse response;
    ended[1] = client_->WriteSnapshot({}, &response);
  });
  calls.emplace_back([&] {
    v1::WriteSnapshotResponse response;
    const auto take = [](absl::string_view) { return absl::OkStatus(); };
    ended[2] = client_->StreamSnapshot({}, take, &response);
  });
  calls.emplace_back([&] {
    v1::InitializeShardResponse response;
    ended[3] = client_->InitializeStreamed(
        {}, [] { return std::nullopt; }, &response);
  });
  while (echo_.hanging < 4) std::this_thread::yield();
  client_->CancelFileCalls();
  for (std::thread& call : calls) call.join();
  for (const absl::Status& status : ended) {
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  }
  v1::WriteSnapshotResponse response;
  EXPECT_EQ(client_->WriteSnapshot({}, &response).code(), absl::StatusCode::kCancelled);
  v1::ShardStatus shard;
  EXPECT_EQ(client_->GetStatus({}, &shard), absl::OkStatus());
}

TEST_F(GrpcParameterControlTest, CallsOfAServerThatIsLostAreGivenUpAndLaterOnesAreMade) {
  echo_.hangs = true;
  absl::Status heartbeat;
  absl::Status writing;
  std::thread caller([&] {
    v1::ShardStatus status;
    heartbeat = client_->ChiefHeartbeat({}, &status);
  });
  std::thread writer([&] {
    v1::WriteSnapshotResponse response;
    writing = client_->WriteSnapshot({}, &response);
  });
  while (echo_.hanging < 2) std::this_thread::yield();
  client_->GiveUpCalls();
  caller.join();
  EXPECT_EQ(heartbeat, absl::UnavailableError(absl::StrCat(
                           "ps-1 at ", address_, ": nobody waits for its answer any more")));
  echo_.hangs = false;
  v1::ShardStatus status;
  EXPECT_EQ(client_->ChiefHeartbeat({}, &status), absl::OkStatus());
  client_->CancelFileCalls();
  writer.join();
  EXPECT_EQ(writing.code(), absl::StatusCode::kCancelled) << "it was not given up";
}

TEST_F(GrpcParameterControlTest, AServerOfAnotherBuildIsRefusedWithBothVersions) {
  for (const absl::string_view protocol : {"", "of-another-build"}) {
    echo_.ShowProtocol(protocol);
    v1::ShardStatus status;
    EXPECT_EQ(client_->ChiefHeartbeat({}, &status),
              absl::FailedPreconditionError(absl::StrCat(
                  "ps-1 at ", address_, " is of another build: expected message protocol ",
                  kProtocol, ", found ", protocol.empty() ? "none" : protocol)));
    v1::FindChiefResponse chief;
    EXPECT_EQ(client_->FindChief({}, &chief).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(client_->GetStatus({}, &status), absl::OkStatus());
  }
}

TEST(OldServerTest, AServerWithoutAMethodIsOfAnotherBuild) {
  class NoService final : public v1::ChiefService::Service {
  } without;
  auto server = RpcServer::Start("127.0.0.1:0", grpc::InsecureServerCredentials(), {&without});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto client =
      ConnectParameterControl("ps-1", absl::StrCat("127.0.0.1:", (*server)->port()), Credentials());
  v1::ShardStatus response;
  const absl::Status status = client->ChiefHeartbeat({}, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("expected message protocol ", kProtocol, ", found none")));
}

TEST_F(GrpcParameterControlTest, ErrorsOfTheServerKeepCodeAndText) {
  v1::CommitRoundResponse response;
  EXPECT_EQ(client_->CommitRound({}, &response),
            absl::FailedPreconditionError("expected 2, found 1"));
}

TEST_F(GrpcParameterControlTest, ServerThatIsAwayIsUnavailableByName) {
  server_.reset();
  v1::ShardStatus response;
  const absl::Status status = client_->GetStatus({}, &response);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("ps-1 at " + address_));
}

}  // namespace
}  // namespace keelson
