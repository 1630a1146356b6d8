// Calls about tables' rows as a server answers them.
#include "ps_server/service/row_calls.h"

#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/table/row_id.h"
#include "gmock/gmock.h"
#include "ps_server/service/row_messages_testing.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

class RowCallsTest : public testing::Test {
 protected:
  explicit RowCallsTest(const std::string& optimizer = "sgd {}") {
    v1::InitializeShardResponse response;
    const absl::Status status =
        server_.handler.Initialize(InitializeRequest(placement_, 0, optimizer), &response);
    EXPECT_TRUE(status.ok()) << status;
  }

  absl::StatusOr<TestResponse> Call(BulkMethod method, const TestRequest& request) {
    return CallBulk(&server_.handler, method, request);
  }
  absl::StatusOr<TestResponse> Push(uint64_t sequence, const std::vector<MessageRows>& apply) {
    return Call(BulkMethod::kPush, RowPushOf(placement_, 0, 1, sequence, apply));
  }
  RowsById Read(uint32_t table, const std::vector<uint64_t>& ids) {
    const std::vector<MessageRows> read = {{table, Ids(ids)}};
    const auto response = Call(BulkMethod::kPull, RowPullOf(placement_, 0, read));
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? RowsOf(placement_, 0, read, *response).front() : RowsById();
  }
  // The text with which a call is refused.
  std::string Refusal(BulkMethod method, const TestRequest& request) {
    const absl::Status status = Call(method, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  const Placement placement_ = TestTablePlacement(1);
  TestServer server_;
};

TEST_F(RowCallsTest, ReadingMakesNoRow) {
  EXPECT_THAT(Read(0, {0, 1, kMost}), IsEmpty());
  EXPECT_THAT(Read(0, {0, 1, kMost}), IsEmpty());
  const v1::ShardStatus status = StatusOf(&server_.handler);
  ASSERT_EQ(status.tables_size(), 2);
  for (const v1::TablePartStatus& table : status.tables()) EXPECT_EQ(table.rows(), 0);
  EXPECT_EQ(status.tables(0).name(), placement_.tables()[0].name);
}

TEST_F(RowCallsTest, ARowBeginsWithItsInitialValues) {
  uint64_t sequence = 0;
  for (const uint64_t id : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, kMost, kMost - 1}) {
    ASSERT_TRUE(Push(++sequence, {{0, {{id, {1, 2, 4}}}}}).ok());
    std::vector<float> expected = InitialRow(TestTables()[0], id);
    for (size_t e = 0; e < 3; ++e) {
      expected[e] -= kTestLearningRate * static_cast<float>(1 << e);
    }
    EXPECT_EQ(Read(0, {id}).at(id), expected) << id;
  }
}

TEST_F(RowCallsTest, TablesOfOneIdAreApart) {
  ASSERT_TRUE(Push(1, {{0, {{7, {1, 1, 1}}}}, {1, {{7, {2}}}}}).ok());
  EXPECT_THAT(Read(1, {7}).at(7), ElementsAre(-2 * kTestLearningRate));
  EXPECT_EQ(Read(0, {7}).at(7)[0], InitialRow(TestTables()[0], 7)[0] - kTestLearningRate);
}

TEST_F(RowCallsTest, ARepeatedPushCountsOnceAndIsAnswered) {
  const std::vector<MessageRows> read = {{1, Ids({7, 8})}};
  const TestRequest push = RowPushOf(placement_, 0, 1, 1, {{1, {{7, {2}}}}}, read);
  for (int i = 0; i < 3; ++i) {
    const auto response = Call(BulkMethod::kPushPull, push);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->header.duplicate_blocks, i == 0 ? 0u : kRowPartitions);
    EXPECT_EQ(response->header.shard_step, 1);
    const RowsById rows = RowsOf(placement_, 0, read, *response).front();
    EXPECT_EQ(rows, (RowsById{{7, {-2 * kTestLearningRate}}}));
  }
  EXPECT_EQ(StatusOf(&server_.handler).shard_step(), 1);
}

TEST_F(RowCallsTest, AnAnswerHasTheRowsAfterTheMessage) {
  const std::vector<MessageRows> read = {{0, Ids({1})}, {1, Ids({7})}};
  const TestRequest push =
      RowPushOf(placement_, 0, 1, 1, {{0, {{1, {1, 1, 1}}}}, {1, {{7, {2}}}}}, read);
  const auto response = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(response.ok()) << response.status();
  const std::vector<RowsById> rows = RowsOf(placement_, 0, read, *response);
  EXPECT_EQ(rows[0].at(1)[0], InitialRow(TestTables()[0], 1)[0] - kTestLearningRate);
  EXPECT_EQ(rows[1].at(7)[0], -2 * kTestLearningRate);
}

TEST_F(RowCallsTest, RowsRideWithBlocks) {
  TestRequest push = ConstantPushOf(placement_, 0, 1, 1, 0.5f);
  const std::vector<MessageRows> read = {{1, Ids({7})}};
  AddRows(placement_, 0, {{1, {{7, {2}}}}}, read, &push);
  const auto response = Call(BulkMethod::kPushPull, push);
  ASSERT_TRUE(response.ok()) << response.status();
  size_t blocks = 0;
  for (const BlockHeader& block : response->header.blocks) {
    blocks += 4 * placement_.BlockElements(block.partition, block.block);
  }
  EXPECT_EQ(RowsOf(placement_, 0, read, *response, blocks).front().at(7)[0],
            -2 * kTestLearningRate);
  EXPECT_EQ(response->header.shard_step, 1);
}

TEST_F(RowCallsTest, EveryFormatOfGradientsAndRows) {
  uint64_t sequence = 0;
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16, WireFormat::kInt8}) {
    const uint64_t id = 100 + sequence;
    ASSERT_TRUE(Push(++sequence, {{1, {{id, {2}}}, format}}).ok());
    const std::vector<MessageRows> read = {{1, Ids({id}), format}};
    const auto response = Call(BulkMethod::kPull, RowPullOf(placement_, 0, read));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(RowsOf(placement_, 0, read, *response).front().at(id)[0], -1)
        << WireFormatName(format);
  }
}

TEST_F(RowCallsTest, ConcurrentPushesAddUp) {
  constexpr uint64_t kThreads = 3, kPushes = 40, kIds = 500;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t sequence = 1; sequence <= kPushes; ++sequence) {
        RowsById rows;
        for (uint64_t id = sequence % 2; id < kIds; id += 2) rows[id * 0x9e3779b97f4a7c15] = {2};
        const auto response =
            Call(BulkMethod::kPush, RowPushOf(placement_, 0, t + 1, sequence, {{1, rows}}));
        ASSERT_TRUE(response.ok()) << response.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < kIds; ++id) ids.push_back(id * 0x9e3779b97f4a7c15);
  const RowsById rows = Read(1, ids);
  ASSERT_EQ(rows.size(), kIds);
  for (const auto& [id, row] : rows) {
    EXPECT_EQ(row[0], -2 * kTestLearningRate * kThreads * kPushes / 2) << id;
  }
}

// ---- Rounds.

TEST_F(RowCallsTest, ARoundAppliesTheMeanOverAllItsPushes) {
  const auto stage = [&](uint64_t incarnation, float weight, const RowsById& rows) {
    TestRequest push =
        StagedPushOf(placement_, 0, incarnation, 1, {.round = 0, .attempt = 1}, weight, 0);
    AddRows(placement_, 0, {{1, rows}}, {}, &push);
    return Call(BulkMethod::kPush, push).status();
  };
  ASSERT_TRUE(stage(1, 1, {{7, {4}}, {8, {8}}}).ok());
  ASSERT_TRUE(stage(2, 3, {{7, {8}}}).ok());
  ASSERT_TRUE(stage(1, 1, {{7, {4}}, {8, {8}}}).ok());  // repeated
  EXPECT_THAT(Read(1, {7, 8}), IsEmpty());
  ASSERT_TRUE(CommitRound(&server_.handler, {0, 1}, 2).ok());
  const RowsById rows = Read(1, {7, 8});
  EXPECT_EQ(rows.at(7)[0], -kTestLearningRate * (4 + 3 * 8) / 4);
  EXPECT_EQ(rows.at(8)[0], -kTestLearningRate * 8 / 4);
}

TEST_F(RowCallsTest, ARoundThatLacksAPartitionIsNotCommitted) {
  const TestRequest push = StagedPushOf(placement_, 0, 1, 1, {.round = 0, .attempt = 1}, 1, 0.5f);
  ASSERT_TRUE(Call(BulkMethod::kPush, push).ok());
  const absl::Status status = CommitRound(&server_.handler, {0, 1}, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("partition 0 of the tables: expected 1 contributions, found 0"));
}

// ---- What is refused, and changes nothing.

TEST_F(RowCallsTest, RefusesSectionsThatBreakTheRules) {
  const TestRequest good =
      RowPushOf(placement_, 0, 1, 1, {{0, {{1, {1, 1, 1}}}}, {1, {{7, {2}}}}}, {{1, Ids({7})}});
  const auto refusal = [&](auto change) {
    TestRequest bad = good;
    change(&bad);
    return Refusal(BulkMethod::kPushPull, bad);
  };
  EXPECT_THAT(refusal([](TestRequest* bad) { bad->header.rows[1].table = 2; }),
              HasSubstr("rows[1].table: expected < 2, found 2"));
  EXPECT_THAT(refusal([](TestRequest* bad) { bad->header.rows[1].num_partitions = 255; }),
              HasSubstr("rows[1].first_partition, num_partitions: expected rows[0]'s 256"));
  EXPECT_THAT(refusal([](TestRequest* bad) { bad->header.rows[0].id_bytes = 1 << 20; }),
              HasSubstr("bytes at the end of the payload, found"));
  EXPECT_THAT(refusal([](TestRequest* bad) { bad->payload += "more"; }),
              HasSubstr("bytes at the end of the payload, found"));
  EXPECT_THAT(refusal([](TestRequest* bad) { bad->payload[bad->payload.size() - 1] = 6; }),
              HasSubstr("table \"users\""));
  EXPECT_THAT(Refusal(BulkMethod::kPush, good),
              HasSubstr("rows[2].purpose: expected APPLY in a Push, found READ"));
  EXPECT_THAT(Refusal(BulkMethod::kPull, RowPushOf(placement_, 0, 1, 1, {{1, {{7, {2}}}}})),
              HasSubstr("rows[0].purpose: expected READ in a Pull, found APPLY"));
  EXPECT_THAT(Read(0, {1}), IsEmpty());
  EXPECT_THAT(Read(1, {7}), IsEmpty());
}

TEST_F(RowCallsTest, RefusesIdsOfAnotherShard) {
  const Placement two = TestTablePlacement(2);
  TestServers servers = StartServers(two, "sgd {}");
  uint64_t foreign = 0;
  while (RowPartitionOf(MixId(foreign, TableSalt("users"))) < kRowPartitions / 2) ++foreign;
  TestRequest push = RowPushOf(two, 1, 1, 1, {{1, {{foreign, {2}}}}});
  ASSERT_TRUE(CallBulk(&servers[1]->handler, BulkMethod::kPush, push).ok());
  const absl::Status status = CallBulk(&servers[0]->handler, BulkMethod::kPush, push).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a run within the shard's 128 partitions from 0 on, found 128 "
                        "partitions from 128 on"));
}

TEST(RowCallsWithoutTablesTest, RefusesSections) {
  const Placement placement = TestPlacement(1);
  TestServers servers = StartServers(placement, "sgd {}");
  TestRequest pull = RowPullOf(TestTablePlacement(1), 0, {{1, Ids({7})}});
  pull.header.placement_fingerprint = placement.Fingerprint();
  const absl::Status status = CallBulk(&servers[0]->handler, BulkMethod::kPull, pull).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rows: expected none, since the model has no tables, found 1 sections"));
}

TEST(NonFiniteRowsTest, AreRefusedWhereTheConfigurationSaysSo) {
  const Placement placement = TestTablePlacement(1);
  TestServer server;
  v1::InitializeShardRequest request = InitializeRequest(placement, 0, "sgd {}");
  request.set_reject_non_finite(true);
  v1::InitializeShardResponse response;
  ASSERT_TRUE(server.handler.Initialize(request, &response).ok());
  const TestRequest push = RowPushOf(
      placement, 0, 1, 1, {{1, {{7, {std::numeric_limits<float>::infinity()}}, {8, {1}}}}});
  const absl::Status status = CallBulk(&server.handler, BulkMethod::kPush, push).status();
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("table \"users\": gradients: expected finite elements, found one that is not"));
  EXPECT_EQ(StatusOf(&server.handler).tables(1).rows(), 0);
}

// ---- Limits.

// Rows of "users" with a gradient each, on servers that have no room for all of them.
class FullTableTest : public testing::Test {
 protected:
  // Initializes, and pushes gradients of 2 for the ids below `ids`.
  v1::TablePartStatus Fill(ParameterHandler* handler, int64_t max_rows, uint64_t ids) {
    std::vector<TableSpec> tables = TestTables();
    tables[1].max_rows = max_rows;
    placement_ = Placement::Compute(TestVariables(), 1, /*block_elements=*/1000, tables);
    v1::InitializeShardResponse response;
    EXPECT_TRUE(handler->Initialize(InitializeRequest(placement_, 0, "sgd {}"), &response).ok());
    for (uint64_t sequence : {1, 2}) {
      RowsById rows;
      for (uint64_t id = 0; id < ids; ++id) rows[id] = {2};
      const auto pushed =
          CallBulk(handler, BulkMethod::kPush, RowPushOf(placement_, 0, 1, sequence, {{1, rows}}));
      EXPECT_TRUE(pushed.ok()) << pushed.status();
    }
    return StatusOf(handler).tables(1);
  }
  // Expects that the rows there are have had both pushes.
  void ExpectWhole(ParameterHandler* handler, uint64_t ids, int64_t rows) {
    std::vector<uint64_t> all;
    for (uint64_t id = 0; id < ids; ++id) all.push_back(id);
    const std::vector<MessageRows> read = {{1, Ids(all)}};
    const auto response = CallBulk(handler, BulkMethod::kPull, RowPullOf(placement_, 0, read));
    ASSERT_TRUE(response.ok()) << response.status();
    const RowsById found = RowsOf(placement_, 0, read, *response).front();
    EXPECT_EQ(static_cast<int64_t>(found.size()), rows);
    for (const auto& [id, row] : found) EXPECT_EQ(row[0], -4 * kTestLearningRate) << id;
  }

  Placement placement_;
};

TEST_F(FullTableTest, NoMoreThanMaxRowsAreMade) {
  TestServer server;
  const v1::TablePartStatus status = Fill(&server.handler, 512, 5000);
  EXPECT_EQ(status.rows(), 512);
  EXPECT_EQ(status.refused_rows(), 2 * (5000 - 512));
  ExpectWhole(&server.handler, 5000, 512);
}

TEST_F(FullTableTest, ABoundBelowThePartitionsIsOneEach) {
  TestServer server;
  EXPECT_EQ(Fill(&server.handler, 1, 5000).rows(), kRowPartitions);
}

TEST_F(FullTableTest, NoMoreRowsAreMadeThanThereIsMemoryFor) {
  ManualClock clock;
  StopSignal end;
  ParameterHandler handler(
      {.incarnation = 9, .config_hash = kTestConfigHash, .max_shard_bytes = 1'000'000}, &clock,
      &end);
  const v1::TablePartStatus status = Fill(&handler, 0, 60'000);
  EXPECT_GT(status.rows(), 1'000);
  EXPECT_LT(status.rows(), 1'000'000 / 32);
  EXPECT_EQ(status.refused_rows(), 2 * (60'000 - status.rows()));
  ExpectWhole(&handler, 60'000, status.rows());
}

}  // namespace
}  // namespace keelson
