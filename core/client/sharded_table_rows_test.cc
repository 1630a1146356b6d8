#include "core/client/sharded_table_rows.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/client/sharded_parameter_client_testing.h"
#include "core/table/row_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Row = std::vector<float>;

// Tables "items" and "users", by name; the parameter says whether the exchange has a thread.
class TableRowsTest : public testing::TestWithParam<bool> {
 protected:
  void Make(size_t shards = 1, int64_t users_dim = 3,
            std::vector<VariableSpec> variables = {{"w", Shape({10}), {}}}) {
    variables_ = std::move(variables);
    placement_ = Placement::Compute(variables_, shards, Placement::kDefaultBlockElements,
                                    {{"items", 2, {Initializer::Kind::kUniform, -1, 1}},
                                     {"users", users_dim, {Initializer::Kind::kConstant, 5, 0}}});
    for (size_t s = 0; s < shards; ++s) {
      shards_.push_back(std::make_unique<FakeShard>(&placement_, 1.0f, s));
    }
    Connect();
  }
  void Connect() {
    std::vector<BulkHandler*> handlers;
    for (const auto& shard : shards_) handlers.push_back(shard.get());
    options_.background = GetParam();
    auto client = ShardedParameterClient::Create(options_, variables_, placement_,
                                                 Inline(std::move(handlers)), &clock_, &stop_);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    rows_ = client_->table_rows();
  }

  std::shared_ptr<const RowIds> Ids(const std::vector<uint64_t>& items,
                                    const std::vector<uint64_t>& users) {
    return std::make_shared<RowIds>(RowIds{ListOf(items, TableSalt("items"), {0, 256}).ids,
                                           ListOf(users, TableSalt("users"), {0, 256}).ids});
  }
  // Of no pattern.
  static std::vector<uint64_t> Many(size_t n, uint64_t first = 0) {
    std::vector<uint64_t> ids(n);
    for (size_t i = 0; i < n; ++i) ids[i] = MixId(first + i, 1);
    return ids;
  }

  void Pull(std::shared_ptr<const RowIds> ids) {
    absl::Status status = rows_->Want(std::move(ids));
    ASSERT_TRUE(status.ok()) << status;
    status = client_->Pull();
    ASSERT_TRUE(status.ok()) << status;
  }
  // Pushes `gradient` for every element of every row; wants the rows of `next`, if any.
  PushResult Step(int64_t step, float gradient, std::shared_ptr<const RowIds> next = nullptr,
                  std::optional<Aggregation> aggregation = std::nullopt) {
    client_->Begin(step, aggregation);
    if (next != nullptr) {
      EXPECT_TRUE(rows_->Want(std::move(next)).ok());
    }
    Fill(client_->gradients()[0], gradient);
    client_->Offer(0);
    const absl::Status offered = Offer(gradient);
    EXPECT_TRUE(offered.ok()) << offered;
    const auto result = client_->End();
    EXPECT_TRUE(result.ok() && result->has_value()) << result.status();
    return result.ok() && result->has_value() ? **result : PushResult();
  }
  absl::Status Offer(float gradient) {
    std::vector<std::vector<float>> arrays;
    for (const absl::Span<const float> rows : rows_->values()) {
      arrays.emplace_back(rows.size(), gradient);
    }
    const std::vector<absl::Span<const float>> spans(arrays.begin(), arrays.end());
    return rows_->Offer(spans);
  }

  int64_t dim(size_t table) const { return placement_.tables()[table].dim; }
  // A row of values().
  Row RowOf(size_t table, uint64_t id) const {
    const std::vector<uint64_t>& ids = rows_->ids()->at(table);
    const size_t i = std::find(ids.begin(), ids.end(), id) - ids.begin();
    EXPECT_LT(i, ids.size());
    const absl::Span<const float> row = rows_->values()[table].subspan(i * dim(table), dim(table));
    return Row(row.begin(), row.end());
  }
  Row Initial(size_t table, uint64_t id) const {
    const TableSpec& spec = placement_.tables()[table];
    Row row(spec.dim);
    InitialRows(spec.initializer, 0, TableSalt(spec.name)).Fill(id, absl::MakeSpan(row));
    return row;
  }
  // What the servers have, or the initial values.
  Row Stored(size_t table, uint64_t id) const {
    const uint32_t p = RowPartitionOf(MixId(id, TableSalt(placement_.tables()[table].name)));
    const FakeTables& tables = shards_[placement_.ShardOfRowPartition(p)]->tables;
    const auto row = tables.rows.find({static_cast<uint32_t>(table), id});
    return row == tables.rows.end() ? Initial(table, id) : row->second;
  }
  void ExpectValuesAreThoseOfTheServers() {
    for (size_t t = 0; t < 2; ++t) {
      for (const uint64_t id : (*rows_->ids())[t]) {
        ASSERT_EQ(RowOf(t, id), Stored(t, id)) << "table " << t << " id " << id;
      }
    }
  }
  // The calls of a shard.
  const std::vector<FakeShard::Call>& Calls(size_t shard = 0) const {
    return shards_[shard]->calls;
  }

  std::vector<VariableSpec> variables_;
  Placement placement_;
  std::vector<std::unique_ptr<FakeShard>> shards_;
  ShardedParameterClient::Options options_ = FastOptions();
  ManualClock clock_;
  StopSignal stop_;
  std::unique_ptr<ShardedParameterClient> client_;
  TableRows* rows_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Threads, TableRowsTest, testing::Bool());

TEST_P(TableRowsTest, ReadingCreatesNoRowsAndFindsInitialValues) {
  Make();
  EXPECT_EQ(rows_->ids(), nullptr);
  const auto ids = Ids({0, 7, ~uint64_t{0}}, {7, uint64_t{1} << 63});
  Pull(ids);
  EXPECT_EQ(rows_->ids(), ids);
  EXPECT_THAT(RowOf(1, 7), ElementsAre(5, 5, 5));
  ExpectValuesAreThoseOfTheServers();
  EXPECT_THAT(shards_[0]->tables.rows, IsEmpty());
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_P(TableRowsTest, AStepPushesItsRowsAndBringsThoseOfTheNextInOneCall) {
  Make();
  Pull(Ids({1, 2, 3}, {10}));
  shards_[0]->calls.clear();
  const auto next = Ids({3, 4}, {10, 11});
  const PushResult result = Step(0, 2, next);
  ASSERT_EQ(Calls().size(), 1u);
  EXPECT_EQ(Calls()[0].method, BulkMethod::kPushPull);
  EXPECT_TRUE(Calls()[0].request.last_part);
  EXPECT_EQ(result.bytes_pushed, static_cast<int64_t>(Calls()[0].bytes.size()));
  EXPECT_EQ(rows_->ids(), next);
  EXPECT_THAT(RowOf(1, 10), ElementsAre(3, 3, 3)) << "its own update";
  EXPECT_THAT(RowOf(1, 11), ElementsAre(5, 5, 5));
  EXPECT_EQ(RowOf(0, 3)[0], Initial(0, 3)[0] - 2);
  ExpectValuesAreThoseOfTheServers();
  EXPECT_EQ(Uniform(client_->values()[0]), -1);
  Step(1, 1, Ids({}, {10}));
  EXPECT_THAT(RowOf(1, 10), ElementsAre(2, 2, 2));
  EXPECT_EQ(Calls().size(), 2u);
}

TEST_P(TableRowsTest, RowsOfABatchThatWasNotKnownAreFetchedAfterwards) {
  Make();
  const auto first = Ids({1}, {10});
  Pull(first);
  Step(0, 2);
  EXPECT_EQ(rows_->ids(), first);
  EXPECT_THAT(RowOf(1, 10), ElementsAre(5, 5, 5)) << "as they were";
  Pull(Ids({}, {10, 11}));
  EXPECT_THAT(RowOf(1, 10), ElementsAre(3, 3, 3));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, APullWithoutAWishFetchesTheSameRowsAgain) {
  Make();
  const auto ids = Ids({}, {10});
  Pull(ids);
  shards_[0]->tables.rows[{1, 10}] = {7, 8, 9};
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_EQ(rows_->ids(), ids);
  EXPECT_THAT(RowOf(1, 10), ElementsAre(7, 8, 9));
}

TEST_P(TableRowsTest, GradientsMayBeOfOtherRowsThanThoseThatAreThere) {
  Make();
  const std::vector<float> gradient(6, 2);
  const std::vector<absl::Span<const float>> gradients = {{}, gradient};
  client_->Begin(0);
  client_->Offer(0);
  EXPECT_EQ(rows_->OfferOf(Ids({}, {10}), gradients).message(),
            "rows of table \"users\": expected gradients of 3 elements, found 6");
  ASSERT_TRUE(rows_->Want(Ids({}, {10, 12})).ok());
  ASSERT_EQ(rows_->OfferOf(Ids({}, {10, 11}), gradients), absl::OkStatus());
  EXPECT_EQ(rows_->OfferOf(Ids({}, {10, 11}), gradients).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(client_->End().ok());
  EXPECT_THAT(RowOf(1, 10), ElementsAre(3, 3, 3)) << "its own update";
  EXPECT_THAT(RowOf(1, 12), ElementsAre(5, 5, 5));
  EXPECT_THAT(Stored(1, 11), ElementsAre(3, 3, 3));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, AnotherWishReplacesTheOneBefore) {
  Make();
  Pull(Ids({}, {10}));
  ASSERT_TRUE(rows_->Want(Ids({}, {11})).ok());
  Step(0, 1, Ids({}, {12}));
  EXPECT_THAT((*rows_->ids())[1], ElementsAre(12));
}

TEST_P(TableRowsTest, AStepWithoutIdsCountsForEveryPartition) {
  Make(2);
  Pull(Ids({}, {}));
  Step(0, 1, Ids({}, {}));
  for (size_t s = 0; s < 2; ++s) {
    for (uint32_t p = 0; p < 256; ++p) {
      EXPECT_EQ(shards_[s]->tables.pushes[p], p / 128 == s ? 1 : 0) << p;
    }
  }
}

TEST_P(TableRowsTest, LostAnswersAreAskedForWithTheSameBytesAndCountOnce) {
  Make(2);
  const std::vector<uint64_t> ids = Many(500);
  Pull(Ids(ids, ids));
  for (const auto& shard : shards_) {
    shard->calls.clear();
    shard->after = [failures = 2](auto*, auto*) mutable {
      return failures-- > 0 ? absl::UnavailableError("lost") : absl::OkStatus();
    };
  }
  EXPECT_EQ(Step(0, 2, Ids(ids, ids)).retries, 4);
  for (const auto& shard : shards_) {
    ASSERT_EQ(shard->calls.size(), 3u);
    EXPECT_EQ(shard->calls[1].bytes, shard->calls[0].bytes);
    EXPECT_EQ(shard->calls[2].bytes, shard->calls[0].bytes);
  }
  for (const uint64_t id : ids) ASSERT_THAT(RowOf(1, id), ElementsAre(3, 3, 3));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, ShardsGetTheirOwnRows) {
  Make(3);
  const std::vector<uint64_t> ids = Many(3000);
  Pull(Ids(ids, Many(1000, 9000)));
  Step(0, 2, Ids(Many(2000, 1000), ids));
  ExpectValuesAreThoseOfTheServers();
  size_t stored = 0;
  for (const auto& shard : shards_) {
    EXPECT_GT(shard->tables.rows.size(), 1000u);
    stored += shard->tables.rows.size();
    EXPECT_EQ(shard->calls.size(), 2u);
  }
  EXPECT_EQ(stored, 4000u);
}

TEST_P(TableRowsTest, ShardsWithoutVariablesHaveRows) {
  Make(4);
  EXPECT_THAT(placement_.PartitionsOf(3), IsEmpty());
  const std::vector<uint64_t> ids = Many(400);
  Pull(Ids(ids, ids));
  Step(0, 1, Ids(ids, ids));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, ManyRowsAreSeveralMessagesOfWholePartitions) {
  Make(1, 1024, TwoVariables());
  const std::vector<uint64_t> ids = Many(3000);
  Pull(Ids(ids, ids));
  EXPECT_GT(Calls().size(), 4u);
  shards_[0]->calls.clear();
  client_->Begin(0);
  ASSERT_TRUE(rows_->Want(Ids(ids, Many(3000, 2000))).ok());
  ASSERT_TRUE(Offer(2).ok());
  ASSERT_TRUE(client_->End().ok());
  ExpectValuesAreThoseOfTheServers();
  EXPECT_THAT(shards_[0]->tables.pushes, Each(1));
  ASSERT_GT(Calls().size(), 4u);
  uint32_t next = 0;
  for (size_t i = 0; i < Calls().size(); ++i) {
    const BulkRequest& request = Calls()[i].request;
    EXPECT_LE(Calls()[i].bytes.size(), kBulkPayloadBytes + 2000);
    EXPECT_EQ(request.last_part, i + 1 == Calls().size());
    EXPECT_EQ(request.sequence, 1u);
    if (request.rows.empty()) continue;
    EXPECT_EQ(request.rows[0].first_partition, next);
    next += request.rows[0].num_partitions;
  }
  EXPECT_EQ(next, 256u);
  // Fewer messages than in the step before.
  Step(1, 1, Ids({1}, {2}));
  Step(2, 1, Ids({3}, {2}));
  EXPECT_TRUE(Calls().back().request.last_part);
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, AnswersOfAStoreThatIsGoneAreFetchedAgain) {
  Make(1, 1024);
  const std::vector<uint64_t> ids = Many(3000);
  Pull(Ids({}, ids));
  shards_[0]->calls.clear();
  // After the first of several answers.
  shards_[0]->after = [this, first = true](auto*, auto*) mutable {
    if (std::exchange(first, false)) shards_[0]->StartOver(1);
    return absl::OkStatus();
  };
  Step(0, 2, Ids({}, ids));
  ExpectValuesAreThoseOfTheServers();
  EXPECT_EQ(Calls().back().method, BulkMethod::kPull);
  const size_t rows = shards_[0]->tables.rows.size();
  EXPECT_GT(rows, 0u);
  EXPECT_LT(rows, 3000u) << "the first message's are lost with the store";
}

TEST_P(TableRowsTest, AStoreThatIsNewFromTheFirstAnswerOnIsNotAskedAgain) {
  Make();
  Pull(Ids({}, {10}));
  shards_[0]->StartOver(1);
  shards_[0]->calls.clear();
  Step(0, 2, Ids({}, {10}));
  EXPECT_EQ(Calls().size(), 1u);
  EXPECT_THAT(RowOf(1, 10), ElementsAre(3, 3, 3));
}

TEST_P(TableRowsTest, RowsOfARoundComeWithThePullAfterItsCommit) {
  Make(2);
  const std::vector<uint64_t> ids = Many(300);
  Pull(Ids(ids, ids));
  for (const auto& shard : shards_) shard->calls.clear();
  const auto before = rows_->ids();
  Step(0, 2, Ids(ids, Many(300, 100)), Aggregation{0, 1, 10});
  for (size_t s = 0; s < 2; ++s) {
    ASSERT_EQ(Calls(s).size(), 1u);
    EXPECT_EQ(Calls(s)[0].method, BulkMethod::kPush);
  }
  EXPECT_EQ(rows_->ids(), before);
  EXPECT_THAT(RowOf(1, ids[0]), ElementsAre(5, 5, 5));
  for (const auto& shard : shards_) shard->CommitRound();
  ASSERT_TRUE(client_->Pull().ok());
  EXPECT_NE(rows_->ids(), before);
  EXPECT_THAT(RowOf(1, ids[200]), ElementsAre(3, 3, 3));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, RowsTravelInTheFormatsOfTheirTables) {
  options_.table_formats = {{WireFormat::kInt8, WireFormat::kBfloat16, 0},
                            {WireFormat::kFloat16, WireFormat::kInt8, 0}};
  Make();
  Pull(Ids({1}, {10}));
  Step(0, 2, Ids({1}, {10}));
  EXPECT_THAT(shards_[0]->tables.rows[std::make_pair(1u, uint64_t{10})], ElementsAre(3, 3, 3));
  EXPECT_THAT(RowOf(1, 10), ElementsAre(3, 3, 3));
  const Row stored = Stored(0, 1);
  for (size_t e = 0; e < 2; ++e) EXPECT_NEAR(RowOf(0, 1)[e], stored[e], 0.01);
  EXPECT_EQ(stored[0], Initial(0, 1)[0] - 2);
}

TEST_P(TableRowsTest, AnswersMayBeCutAnywhere) {
  Make();
  shards_[0]->fragment_bytes = 5;
  const std::vector<uint64_t> ids = Many(200);
  Pull(Ids(ids, ids));
  Step(0, 2, Ids(Many(200, 100), Many(200, 50)));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, RefusesIdsThatAreNotInRowOrder) {
  Make();
  const std::vector<uint64_t> good = (*Ids({}, Many(10)))[1];
  std::vector<uint64_t> twice = good;
  twice[1] = twice[0];
  EXPECT_EQ(rows_->Want(std::make_shared<RowIds>(RowIds{{}, twice})),
            absl::InvalidArgumentError(
                absl::StrCat("rows of table \"users\": expected distinct ids by partition, then "
                             "ascending, found ",
                             good[0], " after ", good[0])));
  std::vector<uint64_t> swapped = good;
  std::swap(swapped.front(), swapped.back());
  EXPECT_THAT(std::string(rows_->Want(std::make_shared<RowIds>(RowIds{{}, swapped})).message()),
              HasSubstr("rows of table \"users\": expected distinct ids"));
  EXPECT_EQ(rows_->Want(std::make_shared<RowIds>(RowIds{{}})),
            absl::InvalidArgumentError("rows: expected ids of 2 tables, found 1"));
  EXPECT_TRUE(rows_->Want(std::make_shared<RowIds>(RowIds{{}, good})).ok());
}

TEST_P(TableRowsTest, RefusesMoreRowsOfAPartitionThanAMessageHasRoomFor) {
  Make(1, 1024);
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; ids.size() < 900; ++id) {
    if (RowPartitionOf(MixId(id, TableSalt("users"))) == 77) ids.push_back(id);
  }
  EXPECT_THAT(std::string(rows_->Want(Ids({}, ids)).message()),
              HasSubstr("rows of partition 77: expected at most 786432 bytes of ids and 3473408 of "
                        "ids and rows in one batch, found 7203 and "));
  ids.resize(800);
  Pull(Ids({}, ids));
  Step(0, 1, Ids({}, ids));
  ExpectValuesAreThoseOfTheServers();
}

TEST_P(TableRowsTest, AStepNeedsTheGradientsOfItsRows) {
  Make();
  client_->Begin(0);
  EXPECT_EQ(Offer(1),
            absl::FailedPreconditionError(
                "rows: expected gradients of rows that were fetched, found none fetched"));
  EXPECT_EQ(client_->End().status().code(), absl::StatusCode::kFailedPrecondition);
  Connect();
  Pull(Ids({}, {10}));
  client_->Begin(0);
  EXPECT_EQ(client_->NextValues().status(),
            absl::FailedPreconditionError(
                "rows: expected the gradients of the step's rows before its end, found none"));
  const std::vector<float> few(2);
  EXPECT_EQ(rows_->Offer({few}),
            absl::InvalidArgumentError("rows: expected gradients of 2 tables, found 1"));
  EXPECT_EQ(rows_->Offer({absl::Span<const float>(), few}),
            absl::InvalidArgumentError(
                "rows of table \"users\": expected gradients of 3 elements, found 2"));
  ASSERT_TRUE(Offer(1).ok());
  EXPECT_EQ(Offer(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(client_->End().ok());
}

TEST_P(TableRowsTest, MalformedAnswersEndTheExchange) {
  const std::vector<std::pair<std::string, std::function<void(BulkResponse*, std::string*)>>>
      cases = {
          {"expected 2 sections of rows, found 1", [](auto* r, auto*) { r->rows.pop_back(); }},
          {"rows[1]: expected what was asked for", [](auto* r, auto*) { ++r->rows[1].num_ids; }},
          {"payload shorter than its rows", [](auto* r, auto*) { r->rows[1].num_rows = 1000; }},
          {"expected 2 presence bits among 3 ids, found 3",
           [](auto*, auto* payload) { (*payload)[payload->size() - 25] = 7; }},
          {"expected 2 presence bits among 3 ids, found 3",
           [](auto*, auto* payload) { (*payload)[payload->size() - 25] |= 8; }},
          {"payload", [](auto*, auto* payload) { payload->pop_back(); }}};
  Make();
  for (const auto& [text, damage] : cases) {
    shards_[0]->tables.rows = {{{1, 10}, {1, 2, 3}}, {{1, 11}, {1, 2, 3}}};
    Connect();
    shards_[0]->after = [change = damage](BulkResponse* response, std::string* payload) {
      change(response, payload);
      return absl::OkStatus();
    };
    ASSERT_TRUE(rows_->Want(Ids({1}, {10, 11, 12})).ok());
    const absl::Status status = client_->Pull();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("ps-0: malformed answer to Pull: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

TEST_P(TableRowsTest, RefusesWhatTablesCannotHave) {
  Make();
  const auto error = [this](const ShardedParameterClient::Options& options) {
    return std::string(ShardedParameterClient::Create(options, variables_, placement_,
                                                      Inline({shards_[0].get()}), &clock_, &stop_)
                           .status()
                           .message());
  };
  ShardedParameterClient::Options options = FastOptions();
  options.depth = 2;
  options.background = true;
  EXPECT_EQ(error(options), "depth: expected 1 with embedding tables, found 2");
  options = FastOptions();
  options.table_formats.resize(1);
  EXPECT_EQ(error(options), "formats: expected those of 2 tables, found 1");
  options.table_formats.resize(2);
  options.table_formats[1].push = WireFormat::kTopK;
  EXPECT_EQ(error(options), "formats of table \"users\": expected a format of rows, found top_k");
}

TEST(TableRowsAbsentTest, AModelWithoutTablesHasNone) {
  const std::vector<VariableSpec> variables = {{"w", Shape({10}), {}}};
  const Placement placement = Placement::Compute(variables, 1);
  FakeShard shard(&placement);
  ManualClock clock;
  StopSignal stop;
  const auto client = ShardedParameterClient::Create(FastOptions(), variables, placement,
                                                     Inline({&shard}), &clock, &stop);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->table_rows(), nullptr);
}

}  // namespace
}  // namespace keelson
