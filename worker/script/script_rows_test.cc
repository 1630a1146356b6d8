#include "worker/script/script_rows.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/script/script_peer_testing.h"
#include "worker/fake_chief.h"
#include "worker/script/script_worker.h"
#include "worker/worker_testing.h"

namespace keelson {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ScriptMessageKind;

// By table of the client, by id.
using StoredRows = std::vector<std::map<uint64_t, std::vector<float>>>;

// What the servers have of tables, and what was asked of them.
struct TableStore {
  StoredRows rows = StoredRows(2);
  std::vector<RowIds> pulled;  // by pull
  std::vector<RowIds> pushed;  // by step
};

// The tables "items" [2] and "users" [3], of rows that start with 5 and are stepped by plain
// gradient descent of rate 1.
class FakeTableRows : public TableRows {
 public:
  explicit FakeTableRows(TableStore* store) : store_(store) {}

  absl::Status Want(std::shared_ptr<const RowIds> ids) override {
    wanted_ = std::move(ids);
    return absl::OkStatus();
  }
  const std::shared_ptr<const RowIds>& ids() const override { return ids_; }
  absl::Span<const absl::Span<const float>> values() const override { return spans_; }
  absl::Status Offer(absl::Span<const absl::Span<const float>> gradients) override {
    return OfferOf(ids_, gradients);
  }
  absl::Status OfferOf(std::shared_ptr<const RowIds> ids,
                       absl::Span<const absl::Span<const float>> gradients) override {
    offered_ = true;
    store_->pushed.push_back(*ids);
    for (size_t t = 0; t < 2; ++t) {
      EXPECT_EQ(gradients[t].size(), (*ids)[t].size() * Dim(t));
      for (size_t i = 0; i < (*ids)[t].size(); ++i) {
        std::vector<float>& row = RowOf(t, (*ids)[t][i]);
        for (size_t j = 0; j < Dim(t); ++j) row[j] -= gradients[t][i * Dim(t) + j];
      }
    }
    return absl::OkStatus();
  }

  // Whether gradients were offered since this was asked last.
  bool TakeOffered() { return std::exchange(offered_, false); }
  // The rows that are wanted have come.
  void Land() {
    if (wanted_ == nullptr) return;
    ids_ = std::exchange(wanted_, nullptr);
    matrices_.assign(2, {});
    spans_.clear();
    for (size_t t = 0; t < 2; ++t) {
      for (const uint64_t id : (*ids_)[t]) {
        const std::vector<float>& row = RowOf(t, id);
        matrices_[t].insert(matrices_[t].end(), row.begin(), row.end());
      }
      spans_.emplace_back(matrices_[t]);
    }
  }

 private:
  static size_t Dim(size_t table) { return table == 0 ? 2 : 3; }
  std::vector<float>& RowOf(size_t table, uint64_t id) {
    std::vector<float>& row = store_->rows[table][id];
    row.resize(Dim(table), 5);
    return row;
  }

  TableStore* const store_;
  bool offered_ = false;
  std::shared_ptr<const RowIds> ids_, wanted_;
  std::vector<std::vector<float>> matrices_;
  std::vector<absl::Span<const float>> spans_;
};

// A FakeClient with these tables. As of servers that others push to, a pull brings newer values.
class RowsClient : public FakeClient {
 public:
  RowsClient(const std::vector<VariableSpec>& variables, std::optional<ParameterMemory> memory,
             Exchanges* exchanges, TableStore* store)
      : FakeClient(variables, 1.0f, 1, std::move(memory), exchanges), store_(store), rows_(store) {}

  TableRows* table_rows() override { return &rows_; }
  absl::Status PullFor(int64_t step, StillWanted wanted) override {
    RETURN_IF_ERROR(FakeClient::PullFor(step, std::move(wanted)));
    for (const absl::Span<float> array : values()) {
      for (float& value : array) value += 0.25f;
    }
    rows_.Land();
    if (rows_.ids() != nullptr) store_->pulled.push_back(*rows_.ids());
    return absl::OkStatus();
  }
  void Begin(int64_t step, std::optional<Aggregation> aggregation) override {
    FakeClient::Begin(step, aggregation);
    aggregated_ = aggregation.has_value();
    EXPECT_FALSE(rows_.TakeOffered());
  }
  absl::StatusOr<std::optional<PushResult>> End() override {
    EXPECT_TRUE(rows_.TakeOffered());
    absl::StatusOr<std::optional<PushResult>> result = FakeClient::End();
    if (result.ok() && !aggregated_) rows_.Land();
    return result;
  }

 private:
  TableStore* const store_;
  FakeTableRows rows_;
  bool aggregated_ = false;
};

// A worker whose model has the tables "users" and "items", in this order; the test is its script.
class ScriptTablesTest : public testing::Test {
 protected:
  static constexpr uint64_t kUsers = 0, kItems = 1;

  void SetUp() override {
    options_.self = {Role::kWorker, 1};
    options_.variables = {{"w", Shape({2}), {}}};
    options_.tables = {{"users", 3, {}}, {"items", 2, {}}};
    options_.records = {32, 5, false, 0};
    options_.retry.first_pause = options_.retry.longest_pause = absl::Nanoseconds(1);
    options_.new_membership = [this] { return MembershipId{next_incarnation_++, 3}; };
    v1::GetModelResponse model;
    *model.mutable_placement() = Placement::Compute(options_.variables, 1).ToProto();
    model.add_ps_addresses("ps-0:1");
    chief_.SetModel(model);
    auto socket = ScriptSocket::Create(script_.TakeAgentEnd(), &gone_);
    ASSERT_TRUE(socket.ok()) << socket.status();
    socket_ = *std::move(socket);
  }
  void TearDown() override {
    script_.Close();
    if (thread_.Joinable()) thread_.Join();
  }

  void Join() {
    worker_ = std::make_unique<ScriptWorker>(
        options_, &chief_,
        [this](ParameterClientRequest request) -> absl::StatusOr<std::unique_ptr<ParameterClient>> {
          auto client = std::make_unique<RowsClient>(options_.variables, request.memory,
                                                     &exchanges_, &store_);
          client->on_push = on_push_;
          return client;
        },
        socket_.get(), Clock::Real(), &gone_);
    thread_ = Thread([this] { status_ = worker_->Run(); });
    script_.Hello();
    script_.ExpectModel();
    store_.pulled.clear();
  }
  uint64_t NextTicket() {
    script_.Send(Kind::kNext, {1});
    return script_.Expect(Kind::kTicket).at(0);
  }
  void Begin(uint64_t ticket) {
    script_.Send(Kind::kBegin, {ticket});
    EXPECT_EQ(script_.Expect(Kind::kReady).at(1), 1u);
  }
  // Takes the step with the gradients of these spaces; returns whether it counts.
  bool Step(uint64_t ticket, const std::vector<uint64_t>& spaces) {
    std::vector<uint64_t> numbers = {ticket, 0, 0, 0, 0, spaces.size()};
    numbers.insert(numbers.end(), spaces.begin(), spaces.end());
    script_.gradients(0)[0] = script_.gradients(0)[1] = 0;
    script_.Send(Kind::kStep, numbers);
    return script_.Expect(Kind::kResult).at(1) == 1;
  }
  // Asks for rows of users in a space; returns how many are distinct.
  size_t Users(uint64_t space, char* memory, const std::vector<uint64_t>& ids,
               Kind kind = Kind::kRows) {
    std::memcpy(memory, ids.data(), 8 * ids.size());
    script_.Send(kind, {space, kUsers, 3, ids.size()});
    if (kind != Kind::kRows) return 0;
    const std::vector<uint64_t> ready = script_.Expect(Kind::kRowsReady);
    EXPECT_EQ(ready.at(0), space);
    EXPECT_EQ(ready.at(1), 1u);
    return ready.at(2);
  }
  const std::vector<float>& StoredUser(uint64_t id) { return store_.rows[1][id]; }
  absl::Status Refused() {
    const std::optional<ScriptMessage> failed = script_.Receive();
    EXPECT_TRUE(failed.has_value() && failed->kind == Kind::kFailed);
    thread_.Join();
    return status_;
  }

  ScriptWorkerOptions options_;
  FakeChief chief_;
  Exchanges exchanges_;
  TableStore store_;
  std::function<absl::Status()> on_push_;
  uint64_t next_incarnation_ = 9;
  StopSignal gone_;
  ScriptPeer script_;
  std::unique_ptr<ScriptSocket> socket_;
  std::unique_ptr<ScriptWorker> worker_;
  absl::Status status_;
  Thread thread_;
};

TEST_F(ScriptTablesTest, EachIdHasAPositionAmongTheDistinctRows) {
  chief_.AddLease(1, 0, 1);
  store_.rows[1] = {{7, {1, 2, 3}}, {9, {4, 5, 6}}};
  Join();
  char* const memory = script_.MakeSpace(4, 4096);
  ASSERT_EQ(Users(4, memory, {9, 7, 9, 8}), 3u);
  const SpaceRows rows(memory, 4, 3);
  EXPECT_EQ(rows.positions[0], rows.positions[2]);
  const auto row = [&](size_t i) {
    const float* const begin = rows.values + 3 * rows.positions[i];
    return std::vector<float>(begin, begin + 3);
  };
  EXPECT_THAT(row(0), ElementsAre(4, 5, 6));
  EXPECT_THAT(row(1), ElementsAre(1, 2, 3));
  EXPECT_THAT(row(3), Each(5)) << "it has none";
}

TEST_F(ScriptTablesTest, AStepPushesTheGradientsOfItsRows) {
  chief_.AddLease(1, 0, 2);
  Join();
  char* const memory = script_.MakeSpace(0, 4096);
  std::memcpy(memory, std::vector<uint64_t>{7, 7}.data(), 16);
  const SpaceRows users(memory, 2, 3);
  const SpaceRows items(users.end, 1, 2);
  items.ids[0] = 11;
  script_.Send(Kind::kRows, {0, kUsers, 3, 2, kItems, 2, 1});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u, 1u));
  for (int j = 0; j < 3; ++j) users.gradients[j] = static_cast<float>(j);
  items.gradients[0] = items.gradients[1] = 2;
  EXPECT_TRUE(Step(NextTicket(), {0}));
  EXPECT_THAT(StoredUser(7), ElementsAre(5, 4, 3));
  EXPECT_THAT(store_.rows[0][11], Each(3));
  // A step without gradients of rows pushes those of none.
  EXPECT_TRUE(Step(NextTicket(), {}));
  EXPECT_THAT(store_.pushed.back(), Each(IsEmpty()));
}

TEST_F(ScriptTablesTest, GradientsOfAnIdInSeveralSpacesAddUp) {
  chief_.AddLease(1, 0, 1);
  Join();
  char* const first = script_.MakeSpace(0, 4096);
  char* const second = script_.MakeSpace(1, 4096);
  ASSERT_EQ(Users(0, first, {7, 8}), 2u);
  ASSERT_EQ(Users(1, second, {8, 9}), 2u);
  for (const char* const memory : {first, second}) {
    const SpaceRows rows(const_cast<char*>(memory), 2, 3);
    for (size_t i = 0; i < 6; ++i) rows.gradients[i] = 1;
  }
  EXPECT_TRUE(Step(NextTicket(), {0, 1}));
  EXPECT_THAT(StoredUser(7), Each(4));
  EXPECT_THAT(StoredUser(8), Each(3));
  EXPECT_THAT(StoredUser(9), Each(4));
  EXPECT_EQ(store_.pushed.back()[1].size(), 3u);
}

TEST_F(ScriptTablesTest, RowsThatAreWantedAheadComeWithTheStep) {
  chief_.AddLease(1, 0, 2);
  Join();
  char* const first = script_.MakeSpace(0, 4096);
  char* const second = script_.MakeSpace(1, 4096);
  const uint64_t ticket = NextTicket();
  Begin(ticket);
  ASSERT_EQ(Users(0, first, {7}), 1u);
  const SpaceRows rows(first, 1, 3), ahead(second, 2, 3);
  rows.gradients[0] = rows.gradients[1] = rows.gradients[2] = 2;
  Users(1, second, {7, 7}, Kind::kRowsAhead);
  const int pulls = exchanges_.pulls;
  EXPECT_TRUE(Step(ticket, {0}));
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(1u, 1u, 1u));
  EXPECT_EQ(exchanges_.pulls, pulls);
  EXPECT_EQ(ahead.values[0], 3) << "with its own update";
}

TEST_F(ScriptTablesTest, RowsThatAreWantedAheadComeWithTheValuesOfARound) {
  chief_.AddSynchronousLease(1, 0, 1, /*contested=*/false);
  chief_.AddSynchronousLease(2, 1, 1, /*contested=*/false);
  Join();
  char* const memory = script_.MakeSpace(0, 4096);
  const uint64_t ticket = NextTicket();
  Users(0, memory, {7}, Kind::kRowsAhead);
  Begin(ticket);
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 1u, 1u));
  ASSERT_EQ(store_.pulled.size(), 1u);
  EXPECT_THAT(store_.pulled[0][1], ElementsAre(7));
  // The answer to the push of a round has no rows.
  Users(0, memory, {8}, Kind::kRowsAhead);
  EXPECT_TRUE(Step(ticket, {}));
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 0u, 1u));
  // Nor is anything fetched that nobody wants any more.
  Begin(NextTicket());
  EXPECT_THAT(store_.pulled.back(), Each(IsEmpty()));
}

TEST_F(ScriptTablesTest, RowsThatAreFetchedLeaveTheValuesAsTheyAre) {
  chief_.AddLease(1, 0, 1);
  Join();
  const uint64_t ticket = NextTicket();
  Begin(ticket);
  EXPECT_THAT(script_.values(0), Each(1.5f));
  Users(0, script_.MakeSpace(0, 4096), {7});
  EXPECT_THAT(script_.values(0), Each(1.5f));
  EXPECT_TRUE(Step(ticket, {}));
  EXPECT_THAT(script_.values(0), Each(1.75f));
}

TEST_F(ScriptTablesTest, AMembershipThatEndsBetweenRowsAndStepCountsNothing) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  Join();
  char* const memory = script_.MakeSpace(0, 4096);
  const uint64_t ticket = NextTicket();
  Users(0, memory, {7});
  chief_.Lose();
  chief_.AwaitRegistrations(3);  // The second one is refused.
  Users(1, script_.MakeSpace(1, 4096), {8}, Kind::kRowsAhead);
  EXPECT_FALSE(Step(ticket, {0}));
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(1u, 0u, 1u));
  EXPECT_THAT(store_.pushed, IsEmpty());
  // The next membership gives rows into the same memory.
  const uint64_t next = NextTicket();
  Users(0, memory, {7});
  const SpaceRows rows(memory, 1, 3);
  rows.gradients[0] = rows.gradients[1] = rows.gradients[2] = 2;
  EXPECT_TRUE(Step(next, {0}));
  EXPECT_THAT(StoredUser(7), Each(3));
}

TEST_F(ScriptTablesTest, AStepDuringWhichTheMembershipEndsPushesItsRowsOnce) {
  chief_.AddLease(1, 0, 1);
  chief_.AddLease(2, 1, 1);
  on_push_ = [this] {
    on_push_ = nullptr;
    chief_.Lose();
    return absl::AbortedError("ps-0: the membership is over");
  };
  Join();
  Users(0, script_.MakeSpace(0, 4096), {7});
  EXPECT_FALSE(Step(NextTicket(), {0}));
  EXPECT_EQ(store_.pushed.size(), 1u);
}

TEST_F(ScriptTablesTest, AfterTheEndThereAreNoRows) {
  Join();
  char* const memory = script_.MakeSpace(0, 4096);
  script_.Send(Kind::kNext, {1});
  script_.Expect(Kind::kNoMore);
  script_.Expect(Kind::kNoMore);
  std::memset(memory, 0, 8);
  script_.Send(Kind::kRows, {0, kUsers, 3, 1});
  EXPECT_THAT(script_.Expect(Kind::kRowsReady), ElementsAre(0u, 0u, 1u));
}

TEST_F(ScriptTablesTest, ASpaceIsMadeAnew) {
  chief_.AddLease(1, 0, 1);
  Join();
  script_.MakeSpace(0, 64);
  Users(0, script_.MakeSpace(0, 4096), {7});
  EXPECT_TRUE(Step(NextTicket(), {0}));
}

// A message, and what is wrong with it.
struct BadRows {
  Kind kind;
  std::vector<uint64_t> numbers;
  const char* error;
};

TEST_F(ScriptTablesTest, MessagesThatFitNoTableAreRefused) {
  RowSpaces rows(options_.tables);
  ASSERT_TRUE(rows.Make(0, 4096).ok());
  const BadRows cases[] = {
      {Kind::kRows, {1, 0, 3, 1}, "space: expected one that was made, found 1"},
      {Kind::kRows, {0, 2, 3, 1}, "table: expected less than 2, found 2"},
      {Kind::kRows, {0, 0, 4, 1}, "rows of table \"users\": expected dim 3, found 4"},
      {Kind::kRows, {0, 0, 3, 500}, "ids of table \"users\": expected at most 113 in this space"},
      {Kind::kRows, {0, 0, 3, ~uint64_t{0}}, "expected at most 113 in this space"},
      {Kind::kRows, {0, 0, 3, 70, 1, 2, 70}, "bytes of a space: expected "},
      {Kind::kRows, {0, 0, 3, 1, 0, 3, 1}, "rows: expected each table once, found 0"},
  };
  for (const BadRows& bad : cases) {
    ScriptMessageWriter writer(bad.kind);
    for (const uint64_t number : bad.numbers) writer.Number(number);
    ScriptMessageReader reader(writer.message());
    const absl::Status status = rows.Read(&reader).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.error));
  }
  EXPECT_THAT(std::string(rows.Make(256, 64).status().message()),
              HasSubstr("space: expected less than 256, found 256"));
  EXPECT_THAT(std::string(rows.Make(0, 0).status().message()),
              HasSubstr("bytes of a space: expected 1 to 17592186044416, found 0"));
}

TEST_F(ScriptTablesTest, GradientsOfRowsThatDidNotComeAreRefused) {
  chief_.AddLease(1, 0, 1);
  Join();
  script_.MakeSpace(0, 4096);
  script_.Send(Kind::kStep, {NextTicket(), 0, 0, 0, 0, 1, 0});
  EXPECT_THAT(std::string(Refused().message()),
              HasSubstr("gradients: expected each space once whose rows have come, found 0"));
}

}  // namespace
}  // namespace keelson
