// TableRows against real servers: after every step the rows are what arithmetic says.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/client/grpc_parameter_client.h"
#include "core/client/sharded_parameter_client.h"
#include "core/table/row_testing.h"
#include "gmock/gmock.h"
#include "ps_server/service/loopback_testing.h"
#include "ps_server/service/lossy_server_testing.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

constexpr size_t kTables = 2;

class TableRowsClientTest : public testing::TestWithParam<size_t> {
 protected:
  static ShardedParameterClient::Options ClientOptions() {
    ShardedParameterClient::Options options;
    options.self = {Role::kWorker, 0};
    options.membership = {42, kTestSecret};
    options.retry.first_pause = absl::Microseconds(1);
    options.retry.longest_pause = absl::Microseconds(1);
    options.seed = kTestSeed;
    return options;
  }
  void Connect(std::vector<BulkHandler*> services) {
    auto client = ShardedParameterClient::Create(
        ClientOptions(), placement_.variables(), placement_,
        std::make_unique<InlineBulkTransport>(std::move(services)), &clock_, &stop_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  std::vector<BulkHandler*> Handlers() {
    std::vector<BulkHandler*> handlers;
    for (const auto& server : servers_) handlers.push_back(&server->handler);
    return handlers;
  }

  // Some of `range` ids of no pattern; others in each call.
  std::shared_ptr<const RowIds> NextIds(size_t count, uint64_t range) {
    RowIds ids;
    for (size_t t = 0; t < kTables; ++t) {
      std::vector<uint64_t> some(count);
      for (uint64_t& id : some) id = MixId(random_() % range, 3);
      std::sort(some.begin(), some.end());
      some.erase(std::unique(some.begin(), some.end()), some.end());
      ids.push_back(ListOf(some, TableSalt(tables_[t].name), {0, kRowPartitions}).ids);
    }
    return std::make_shared<RowIds>(std::move(ids));
  }
  TableRows* rows() { return client_->table_rows(); }
  std::vector<float>& Truth(size_t table, uint64_t id) {
    std::vector<float>& row = truth_[{table, id}];
    if (row.empty()) row = InitialRow(tables_[table], id);
    return row;
  }
  // An integer, so that sums are exact.
  static float Gradient(uint64_t id, int64_t step) {
    return static_cast<float>(static_cast<int>((id + static_cast<uint64_t>(step)) % 7) - 3);
  }

  void Pull(std::shared_ptr<const RowIds> ids) {
    ASSERT_TRUE(rows()->Want(std::move(ids)).ok());
    const absl::Status status = client_->Pull();
    ASSERT_TRUE(status.ok()) << status;
  }
  void Step(int64_t step, std::shared_ptr<const RowIds> next,
            std::optional<Aggregation> aggregation = std::nullopt) {
    client_->Begin(step, aggregation);
    if (next != nullptr) {
      ASSERT_TRUE(rows()->Want(std::move(next)).ok());
    }
    std::vector<std::vector<float>> gradients(kTables);
    for (size_t t = 0; t < kTables; ++t) {
      for (const uint64_t id : (*rows()->ids())[t]) {
        const float gradient = Gradient(id, step);
        gradients[t].resize(gradients[t].size() + tables_[t].dim, gradient);
        for (float& element : Truth(t, id)) element -= kTestLearningRate * gradient;
      }
    }
    absl::Status status = rows()->Offer({gradients[0], gradients[1]});
    ASSERT_TRUE(status.ok()) << status;
    status = client_->End().status();
    ASSERT_TRUE(status.ok()) << status;
  }
  void ExpectTruth() {
    for (size_t t = 0; t < kTables; ++t) {
      const std::vector<uint64_t>& ids = (*rows()->ids())[t];
      const size_t dim = tables_[t].dim;
      ASSERT_EQ(rows()->values()[t].size(), ids.size() * dim);
      for (size_t i = 0; i < ids.size(); ++i) {
        const absl::Span<const float> row = rows()->values()[t].subspan(i * dim, dim);
        ASSERT_EQ(std::vector<float>(row.begin(), row.end()), Truth(t, ids[i]))
            << tables_[t].name << " " << ids[i];
      }
    }
  }
  void TrainAndCompare(int64_t steps, size_t ids, uint64_t range) {
    Pull(NextIds(ids, range));
    for (int64_t step = 0; step < steps; ++step) {
      Step(step, NextIds(ids, range));
      ExpectTruth();
    }
  }

  const std::vector<TableSpec> tables_ = TestTables();
  const Placement placement_ = TestTablePlacement(GetParam());
  TestServers servers_ = StartServers(placement_, "sgd {}");
  ManualClock clock_;
  StopSignal stop_;
  std::mt19937_64 random_{7};
  std::map<std::pair<size_t, uint64_t>, std::vector<float>> truth_;
  std::vector<std::unique_ptr<LoopbackServer>> loopback_;
  std::unique_ptr<ParameterClient> client_;
};

INSTANTIATE_TEST_SUITE_P(Shards, TableRowsClientTest, testing::Values(1, 3));

TEST_P(TableRowsClientTest, EveryStepsRowsAreExact) {
  Connect(Handlers());
  TrainAndCompare(20, 200, 1000);
}

TEST_P(TableRowsClientTest, LostAnswersChangeNothing) {
  std::vector<std::unique_ptr<LossyServer>> lossy;
  std::vector<BulkHandler*> handlers;
  for (BulkHandler* handler : Handlers()) {
    handlers.push_back(lossy.emplace_back(std::make_unique<LossyServer>(handler)).get());
  }
  Connect(handlers);
  TrainAndCompare(20, 200, 1000);
  EXPECT_GT(lossy[0]->lost(), 10);
  client_.reset();
}

TEST_P(TableRowsClientTest, OverConnections) {
  std::vector<std::string> addresses;
  for (const auto& server : servers_) {
    loopback_.push_back(std::make_unique<LoopbackServer>(&server->handler));
    addresses.push_back(loopback_.back()->address());
  }
  auto client = ConnectParameterClient(ClientOptions(), placement_.variables(), placement_,
                                       ServersAt(addresses), Credentials(), &clock_, &stop_);
  ASSERT_TRUE(client.ok()) << client.status();
  client_ = *std::move(client);
  TrainAndCompare(5, 3000, 5000);
  client_.reset();
}

TEST_P(TableRowsClientTest, RoundsAreAppliedAtTheirCommit) {
  Connect(Handlers());
  Pull(NextIds(200, 300));
  for (int64_t round = 0; round < 3; ++round) {
    Step(round, nullptr, Aggregation{round, 1, 2});
    for (const auto& server : servers_) {
      const absl::Status status = CommitRound(&server->handler, {round, 1}, 1);
      ASSERT_TRUE(status.ok()) << status;
    }
    Pull(NextIds(200, 300));
    ExpectTruth();
  }
  // The job goes on without rounds.
  Step(3, NextIds(200, 300));
  ExpectTruth();
}

TEST_P(TableRowsClientTest, AServerThatIsInitialisedAgainHasLostItsRowsOnly) {
  Connect(Handlers());
  TrainAndCompare(5, 200, 300);
  v1::InitializeShardRequest request = InitializeRequest(placement_, 0);
  *request.mutable_header() = HeaderOf(kTestChief + 1);
  v1::InitializeShardResponse response;
  const absl::Status status = servers_[0]->handler.Initialize(request, &response);
  ASSERT_TRUE(status.ok()) << status;
  std::erase_if(truth_, [this](const auto& row) {
    const auto& [table, id] = row.first;
    const uint32_t p = RowPartitionOf(MixId(id, TableSalt(tables_[table].name)));
    return placement_.ShardOfRowPartition(p) == 0;
  });
  for (int64_t step = 5; step < 8; ++step) {
    Step(step, NextIds(200, 300));
    ExpectTruth();
  }
}

}  // namespace
}  // namespace keelson
