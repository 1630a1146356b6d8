#include "core/client/exchange/bulk_exchange.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/client/wire_memory_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kNow = absl::ZeroDuration();

// Notes the calls; a test says when and how each ends.
class ScriptedTransport : public BulkTransport {
 public:
  struct Started {
    size_t shard;
    BulkMethod method;
    BulkRequest request;
    uint64_t tag;
    ByteRope bytes;
    absl::Duration timeout;
  };

  explicit ScriptedTransport(size_t shards) : shards_(shards) {}

  std::vector<Started> started;  // and not ended
  std::vector<size_t> resets;
  std::vector<std::pair<size_t, std::string>> redirects;  // shards and addresses
  // Requests of failed calls are kept until Reset.
  bool keeps_failed = false;
  // And for so many calls of Next after it.
  int slow_nexts = 0;
  std::vector<ByteRope> kept;

  size_t num_shards() const override { return shards_; }
  void Start(size_t shard, BulkMethod method, ByteRope request, absl::Duration timeout,
             uint64_t tag) override {
    Started& call =
        started.emplace_back(Started{shard, method, {}, tag, std::move(request), timeout});
    ByteCursor cursor(call.bytes);
    EXPECT_TRUE(DecodeBulkRequest(&cursor, &call.request).ok());
  }
  std::optional<BulkCompletion> Next(absl::Duration timeout) override {
    if (!resets.empty() && --slow_nexts <= 0) kept.clear();
    if (completed_.empty()) return std::nullopt;
    std::optional<BulkCompletion> completion = std::move(completed_.front());
    completed_.pop_front();
    return completion;
  }
  void Wake() override {}
  void Reset(size_t shard) override {
    resets.push_back(shard);
    if (slow_nexts == 0) kept.clear();
  }

  // Calls under way end as the test says.
  void Redirect(size_t shard, const BulkServer& server) override {
    redirects.emplace_back(shard, server.address);
  }

  // Ends started[i].
  void Fail(size_t i, absl::Status status) {
    const uint64_t tag = started[i].tag;
    if (keeps_failed) kept.push_back(std::move(started[i].bytes));
    started.erase(started.begin() + static_cast<std::ptrdiff_t>(i));
    completed_.push_back({tag, std::move(status), {}});
  }
  void Answer(size_t i, BulkResponse response, float value) {
    const Started& call = started[i];
    std::string payload;
    for (const BlockRange& range : call.request.ranges) {
      for (uint32_t b = 0; b < range.num_blocks; ++b) {
        response.blocks.push_back({range.partition, range.first_block + b, next_version_++});
        for (int e = 0; e < kElements; ++e) {
          payload.append(reinterpret_cast<const char*>(&value), sizeof(value));
        }
      }
    }
    BulkCompletion completion{call.tag, absl::OkStatus(), {}};
    completion.response.AppendOwned(EncodeBulkResponse(response, payload.size()) + payload);
    started.erase(started.begin() + static_cast<std::ptrdiff_t>(i));
    completed_.push_back(std::move(completion));
  }

  static constexpr int kElements = 4;  // of each block

 private:
  const size_t shards_;
  uint64_t next_version_ = 1;
  std::deque<BulkCompletion> completed_;
};

// Messages of one block each, one variable per message.
class BulkExchangeTest : public testing::Test {
 protected:
  // Its requests lie in the exchange's memory.
  ~BulkExchangeTest() override { transport_.reset(); }

  void Make(std::vector<int> messages_per_shard, size_t depth = 1, int max_in_flight = 4) {
    answer_.store_id = 9;
    std::vector<VariableSpec> variables;
    for (size_t s = 0; s < messages_per_shard.size(); ++s) {
      auto& messages = plans_.emplace_back();
      for (int m = 0; m < messages_per_shard[s]; ++m) {
        const auto v = static_cast<uint32_t>(variables.size());
        variables.push_back({absl::StrCat("v", v), Shape({ScriptedTransport::kElements}), {}});
        PlannedMessage& message = messages.emplace_back();
        message.ranges = {{v, 0, 1}};
        message.blocks = {{v, 0, v, 0, ScriptedTransport::kElements}};
        message.push_bytes = message.pull_bytes = 4 * ScriptedTransport::kElements;
      }
    }
    transport_ = std::make_unique<ScriptedTransport>(plans_.size());
    memory_ = bytes_ ? MemoryOfBytes(variables.size(), depth)
                     : std::make_unique<ExchangeMemory>(variables, depth);
    ExchangeOptions options;
    options.max_in_flight = max_in_flight;
    options.names_shards = names_shards_;
    options.servers = {{"host-0", "a:1"}, {"host-1", "b:1"}};
    options.retry.first_pause = options.retry.longest_pause = pause_;
    exchange_ = std::make_unique<BulkExchange>(options, &plans_, memory_.get(), transport_.get(),
                                               &clock_, &stop_);
  }
  std::unique_ptr<ExchangeMemory> MemoryOfBytes(size_t variables, size_t depth) {
    const WireLayout array = WholeArrayLayout(WireFormat::kFloat32, ScriptedTransport::kElements);
    wire_ = std::make_unique<HostWire>(
        std::vector<VariableWire>(variables, {array, WireFormat::kFloat32}), depth);
    return std::make_unique<ExchangeMemory>(ParameterMemory{{}, {}, wire_->memory()}, depth);
  }
  std::vector<size_t> TakeLanded() {
    Settle();
    std::vector<size_t> variables;
    while (const std::optional<size_t> v = exchange_->TakeLanded()) variables.push_back(*v);
    return variables;
  }
  void BeginStep(size_t slot, int64_t step) {
    exchange_->BeginStep(slot, step);
    for (size_t s = 0; s < plans_.size(); ++s) Ready(slot, s);
  }
  // All messages of a shard.
  void Ready(size_t slot, size_t shard) {
    for (size_t m = 0; m < plans_[shard].size(); ++m) exchange_->MessageReady(slot, {shard, m});
  }
  // The transport keeps reading what it was to send, for longer than Abandon has patience.
  void AbandonWhileAFailedCallReadsItsBytes() {
    Make({1});
    transport_->keeps_failed = true;
    transport_->slow_nexts = 10'000;
    BeginStep(0, 0);
    Settle();
    transport_->Fail(0, absl::InvalidArgumentError("no"));
    Settle();
    exchange_->Abandon();
  }
  void Settle() {
    while (exchange_->Drive(kNow)) {
    }
  }
  // What is in flight: the variable of each call.
  std::vector<uint32_t> InFlight() {
    Settle();
    std::vector<uint32_t> variables;
    for (const auto& call : transport_->started) {
      variables.push_back(call.request.ranges.at(0).partition);
    }
    return variables;
  }
  void AnswerAll(float value, uint32_t credits = 0) {
    for (Settle(); !transport_->started.empty(); Settle()) Answer(0, value, credits);
  }
  void Answer(size_t i, float value, uint32_t credits = 0) {
    BulkResponse response = answer_;
    response.credits = credits;
    transport_->Answer(i, response, value);
  }
  // The call that carries the variable.
  void AnswerOf(uint32_t variable, float value) {
    Settle();
    const auto call = std::find_if(
        transport_->started.begin(), transport_->started.end(),
        [&](const auto& started) { return started.request.ranges.at(0).partition == variable; });
    ASSERT_NE(call, transport_->started.end());
    Answer(call - transport_->started.begin(), value);
    Settle();
  }
  float Value(size_t variable) const {
    if (bytes_) return wire_->Values(variable, memory_->value_set())[0];
    return memory_->values().elements[variable][0];
  }

  bool bytes_ = false;  // wire memory
  bool names_shards_ = false;
  absl::Duration pause_ = absl::Nanoseconds(1);
  std::unique_ptr<HostWire> wire_;
  ShardPlans plans_;
  std::unique_ptr<ScriptedTransport> transport_;
  std::unique_ptr<ExchangeMemory> memory_;
  ManualClock clock_;
  StopSignal stop_;
  std::unique_ptr<BulkExchange> exchange_;
  BulkResponse answer_;
};

// ---- Order and credits.

TEST_F(BulkExchangeTest, MessagesOfAllShardsAreInFlightInPlanOrder) {
  Make({6, 2});
  exchange_->BeginStep(0, 0);
  exchange_->MessageReady(0, {0, 1});
  EXPECT_THAT(InFlight(), IsEmpty()) << "its predecessor is not ready";
  exchange_->MessageReady(0, {0, 0});
  EXPECT_THAT(InFlight(), ElementsAre(0, 1));
  Ready(0, 1);
  exchange_->MessageReady(0, {0, 2});
  exchange_->MessageReady(0, {0, 3});
  exchange_->MessageReady(0, {0, 4});
  exchange_->MessageReady(0, {0, 5});
  EXPECT_THAT(InFlight(), ElementsAre(0, 1, 2, 6, 3, 7)) << "four at each shard";
  Answer(1, 5);
  EXPECT_THAT(InFlight(), ElementsAre(0, 2, 6, 3, 7, 4));
  AnswerAll(5);
  ASSERT_TRUE(exchange_->Done(0));
  exchange_->Publish(0);
  for (size_t v = 0; v < 8; ++v) EXPECT_EQ(Value(v), 5);
}

TEST_F(BulkExchangeTest, LastPartIsTheLastMessageOfItsShard) {
  Make({2, 1});
  BeginStep(0, 0);
  Settle();
  for (const auto& call : transport_->started) {
    EXPECT_EQ(call.request.last_part, call.request.ranges[0].partition != 0);
  }
}

// It may be the network that takes long, not the step.
TEST_F(BulkExchangeTest, APullForAStepIsGivenLongerEachTime) {
  Make({1});
  exchange_->BeginPull(/*values_for=*/5);
  Settle();
  absl::Duration timeout = transport_->started[0].timeout;
  EXPECT_LE(timeout, absl::Seconds(1)) << "at first it is looked often whether it is wanted still";
  for (int i = 0; i < 7; ++i) {
    transport_->Fail(0, absl::DeadlineExceededError("slow"));
    while (InFlight().empty()) {
    }
    timeout = transport_->started[0].timeout;
  }
  EXPECT_EQ(timeout, ExchangeOptions().call_timeout);
  transport_->Fail(0, absl::OutOfRangeError("the step before is not committed"));
  while (InFlight().empty()) {
  }
  EXPECT_EQ(transport_->started[0].timeout, timeout);
  AnswerAll(1);
  exchange_->Publish(exchange_->pull_slot());
  exchange_->BeginPull(/*values_for=*/6);
  Settle();
  EXPECT_LE(transport_->started[0].timeout, absl::Seconds(1));
}

TEST_F(BulkExchangeTest, RequestsNameTheirShardsWhereThatIsAskedFor) {
  names_shards_ = true;
  Make({2, 1});
  exchange_->BeginPull(/*values_for=*/0);
  Settle();
  ASSERT_EQ(transport_->started.size(), 3u);
  for (const auto& call : transport_->started) EXPECT_EQ(call.request.shard, call.shard + 1);
  AnswerAll(1);
  exchange_->Publish(exchange_->pull_slot());
  BeginStep(0, 0);
  Settle();
  ASSERT_EQ(transport_->started.size(), 3u);
  for (const auto& call : transport_->started) EXPECT_EQ(call.request.shard, call.shard + 1);
}

TEST_F(BulkExchangeTest, RequestsNameNoShardsOtherwise) {
  Make({1, 1});
  BeginStep(0, 0);
  Settle();
  ASSERT_EQ(transport_->started.size(), 2u);
  for (const auto& call : transport_->started) EXPECT_EQ(call.request.shard, 0u);
}

TEST_F(BulkExchangeTest, OwnLimitHolds) {
  Make({5}, /*depth=*/1, /*max_in_flight=*/2);
  BeginStep(0, 0);
  EXPECT_THAT(InFlight(), ElementsAre(0, 1));
  AnswerAll(1, /*credits=*/100);
  EXPECT_EQ(exchange_->Publish(0).waited_for_credit, absl::ZeroDuration());
}

TEST_F(BulkExchangeTest, NeverMoreInFlightThanTheServerAllowsAndTheWaitIsMeasured) {
  Make({6});
  BeginStep(0, 0);
  EXPECT_EQ(InFlight().size(), 4u);
  clock_.Advance(absl::Milliseconds(1));  // held back by its own limit: does not count
  Answer(0, 1, /*credits=*/1);
  EXPECT_EQ(InFlight().size(), 3u) << "the server allows one";
  clock_.Advance(absl::Milliseconds(10));
  for (int left = 3; left > 1; --left) {
    Answer(0, 1, 1);
    EXPECT_EQ(InFlight().size(), static_cast<size_t>(left - 1));
  }
  clock_.Advance(absl::Milliseconds(5));
  Answer(0, 1, 2);
  EXPECT_THAT(InFlight(), ElementsAre(4, 5));
  clock_.Advance(absl::Milliseconds(7));
  AnswerAll(1);
  ASSERT_TRUE(exchange_->Done(0));
  const PushResult result = exchange_->Publish(0);
  EXPECT_EQ(result.waited_for_credit, absl::Milliseconds(15));
  EXPECT_EQ(result.duration, absl::Milliseconds(23));
}

TEST_F(BulkExchangeTest, RepeatedCallsKeepToTheLimitToo) {
  Make({4});
  BeginStep(0, 0);
  EXPECT_EQ(InFlight().size(), 4u);
  Answer(0, 1, /*credits=*/1);
  for (int i = 0; i < 3; ++i) transport_->Fail(0, absl::UnavailableError("away"));
  for (int left = 3; left > 0; --left) {
    while (InFlight().empty()) {
    }
    EXPECT_EQ(InFlight().size(), 1u);
    Answer(0, 1, 1);
  }
  Settle();
  EXPECT_TRUE(exchange_->Done(0));
}

// ---- Depth 2.

TEST_F(BulkExchangeTest, MessageWaitsForItsPredecessorOfTheStepBefore) {
  Make({2}, /*depth=*/2);
  BeginStep(0, 10);
  EXPECT_EQ(InFlight().size(), 2u);
  BeginStep(1, 11);
  EXPECT_EQ(InFlight().size(), 2u) << "the server takes sequences in ascending order";
  Answer(0, 1);
  EXPECT_THAT(InFlight(), ElementsAre(1, 0));
  EXPECT_EQ(transport_->started[0].request.sequence, 1u);
  EXPECT_EQ(transport_->started[1].request.sequence, 2u);
  EXPECT_FALSE(exchange_->Done(0));
  Answer(0, 1);
  EXPECT_THAT(InFlight(), ElementsAre(0, 1));
  EXPECT_TRUE(exchange_->Done(0));
  EXPECT_EQ(exchange_->Publish(0).step, 10);
  AnswerAll(2);
  EXPECT_EQ(exchange_->Publish(1).step, 11);
}

// Runs with memory of elements and with memory of bytes.
class BothMemoriesTest : public BulkExchangeTest, public testing::WithParamInterface<bool> {
 protected:
  BothMemoriesTest() { bytes_ = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Bytes, BothMemoriesTest, testing::Bool());

TEST_P(BothMemoriesTest, ValuesChangeOnlyWhenAStepIsPublished) {
  Make({2}, /*depth=*/2);
  BeginStep(0, 0);
  AnswerAll(1);
  EXPECT_EQ(Value(0), 0);
  exchange_->Publish(0);
  EXPECT_EQ(Value(0), 1);
  EXPECT_EQ(Value(1), 1);
}

TEST_P(BothMemoriesTest, AnswersBeforeThePredecessorIsPublishedAreNotLost) {
  Make({2}, /*depth=*/2);
  BeginStep(0, 0);
  BeginStep(1, 1);
  EXPECT_EQ(InFlight().size(), 2u);
  Answer(0, 1);  // message 0 of step 0
  EXPECT_THAT(InFlight(), ElementsAre(1, 0));
  Answer(1, 2);  // message 0 of step 1
  EXPECT_THAT(InFlight(), ElementsAre(1));
  Answer(0, 1);  // message 1 of step 0
  EXPECT_THAT(InFlight(), ElementsAre(1));
  ASSERT_TRUE(exchange_->Done(0));
  exchange_->Publish(0);
  EXPECT_EQ(Value(0), 2) << "newer than asked for";
  EXPECT_EQ(Value(1), 1);
  Answer(0, 2);
  Settle();
  ASSERT_TRUE(exchange_->Done(1));
  exchange_->Publish(1);
  EXPECT_EQ(Value(0), 2);
  EXPECT_EQ(Value(1), 2);
}

TEST_F(BulkExchangeTest, EachMessageSaysHowManyPushesItsValuesLack) {
  Make({2}, /*depth=*/2);
  BeginStep(0, 0);
  Settle();
  ASSERT_EQ(transport_->started.size(), 2u);
  for (const auto& call : transport_->started) {
    EXPECT_EQ(call.request.steps_under_way, 2u);
    EXPECT_EQ(call.request.unseen_pushes, 0u);
  }
  BeginStep(1, 1);
  Answer(0, 1);  // message 0 of step 0
  Settle();
  ASSERT_EQ(transport_->started.size(), 2u);
  EXPECT_EQ(transport_->started[1].request.unseen_pushes, 1u);
  Answer(1, 2);  // message 0 of step 1, so early that its values are those of the next step
  Answer(0, 1);
  Settle();
  exchange_->Publish(0);
  BeginStep(0, 2);
  Answer(0, 2);  // message 1 of step 1
  Settle();
  ASSERT_EQ(transport_->started.size(), 2u);
  EXPECT_EQ(transport_->started[0].request.unseen_pushes, 0u);
  EXPECT_EQ(transport_->started[1].request.unseen_pushes, 1u);
}

TEST_F(BulkExchangeTest, StalenessCountsFromThePublishedValues) {
  Make({1}, /*depth=*/2);
  for (int step = 0; step < 4; ++step) {
    exchange_->BeginStep(step % 2, step);
    Ready(step % 2, 0);
    Settle();
    ASSERT_EQ(transport_->started.size(), 1u);
    EXPECT_EQ(transport_->started[0].request.pulled_shard_step, std::max(0, (step - 1) * 10));
    answer_.shard_step = (step + 1) * 10;
    answer_.staleness = 3 + step;
    AnswerAll(1);
    if (step > 0) {
      EXPECT_EQ(exchange_->Publish((step - 1) % 2).staleness, 2 + step);
    }
  }
}

// ---- Gradient memory.

TEST_F(BulkExchangeTest, StepIsNotDoneWhileAFailedCallHoldsItsGradients) {
  Make({2, 1});
  transport_->keeps_failed = true;
  BeginStep(0, 0);
  Settle();
  transport_->Fail(0, absl::DeadlineExceededError("slow"));
  while (InFlight().size() < 3) {
  }
  EXPECT_THAT(transport_->resets, IsEmpty()) << "other calls are under way";
  for (int i = 0; i < 3; ++i) {
    Answer(0, 1);
    EXPECT_FALSE(exchange_->Done(0));
    exchange_->Drive(kNow);
  }
  EXPECT_FALSE(exchange_->Done(0)) << "all is answered, but the first attempt may still be read";
  Settle();
  EXPECT_THAT(transport_->resets, ElementsAre(0));
  EXPECT_TRUE(exchange_->Done(0));
  EXPECT_EQ(exchange_->Publish(0).retries, 1);
}

TEST_F(BulkExchangeTest, AbandonReleasesEverything) {
  Make({1, 1});
  transport_->keeps_failed = true;
  BeginStep(0, 0);
  Settle();
  transport_->Fail(0, absl::InvalidArgumentError("no"));
  Settle();
  EXPECT_EQ(exchange_->status(), absl::InvalidArgumentError("no"));
  transport_->started.clear();
  exchange_->Abandon();
  EXPECT_THAT(transport_->resets, ElementsAre(0));
}

TEST_F(BulkExchangeTest, AbandonWaitsForWhoReadsTheCallersMemoryAsLongAsItTakes) {
  bytes_ = true;
  AbandonWhileAFailedCallReadsItsBytes();
  EXPECT_THAT(transport_->kept, IsEmpty());
}

TEST_F(BulkExchangeTest, AbandonLeavesItsOwnMemoryToWhoReadsIt) {
  AbandonWhileAFailedCallReadsItsBytes();
  ASSERT_EQ(transport_->kept.size(), 1u);
  const std::string sent = transport_->kept[0].ToString();
  exchange_.reset();
  memory_.reset();
  EXPECT_EQ(transport_->kept[0].ToString(), sent);
}

// ---- Variables whose values have landed.

TEST_F(BulkExchangeTest, LandedVariablesAreTakenInTheOrderOfTheirAnswers) {
  Make({2, 1});
  exchange_->BeginPull(/*values_for=*/0);
  AnswerAll(1);
  exchange_->Publish(exchange_->pull_slot());
  BeginStep(0, 0);
  EXPECT_THAT(TakeLanded(), IsEmpty()) << "what a pull brought is not of the step";
  AnswerOf(2, 1);
  EXPECT_THAT(TakeLanded(), ElementsAre(2));
  EXPECT_FALSE(exchange_->Landed(0));
  AnswerOf(1, 1);
  AnswerOf(0, 1);
  EXPECT_THAT(TakeLanded(), ElementsAre(1, 0));
  EXPECT_TRUE(exchange_->Landed(0));
}

TEST_F(BulkExchangeTest, VariablesOfAnotherStoreLandAgain) {
  Make({3, 1});
  BeginStep(0, 0);
  AnswerOf(0, 1);
  EXPECT_THAT(TakeLanded(), ElementsAre(0));
  AnswerOf(1, 1);
  answer_.store_id = 10;
  AnswerOf(2, 2);  // of a new store
  EXPECT_THAT(TakeLanded(), ElementsAre(2)) << "1 was not taken before it was void";
  answer_.store_id = 9;
  AnswerOf(3, 1);  // of the other shard
  EXPECT_THAT(TakeLanded(), ElementsAre(3));
  EXPECT_FALSE(exchange_->Landed(0)) << "the shard is pulled";
  answer_.store_id = 10;
  AnswerAll(3);  // with all blocks
  EXPECT_THAT(TakeLanded(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(exchange_->Landed(0));
}

// ---- A server that was initialised again.

TEST_F(BulkExchangeTest, ShardIsPulledAgainWhenItsStoreChangesWithinAStep) {
  Make({2, 1});
  BeginStep(0, 0);
  Settle();
  ASSERT_EQ(transport_->started.size(), 3u);
  Answer(0, 1);  // variable 0
  answer_.store_id = 10;
  answer_.shard_step = 4;
  Answer(1, 2);  // variable 1: a new store at shard 0
  answer_.store_id = 9;
  Answer(0, 1);  // variable 2, the other shard
  Settle();
  EXPECT_FALSE(exchange_->Done(0));
  ASSERT_EQ(transport_->started.size(), 2u);
  EXPECT_EQ(transport_->started[0].method, BulkMethod::kPull);
  EXPECT_THAT(transport_->started[0].request.known_versions, ElementsAre(0));
  EXPECT_THAT(transport_->started[1].request.known_versions, ElementsAre(2));
  answer_.store_id = 10;
  AnswerAll(3);
  ASSERT_TRUE(exchange_->Done(0));
  exchange_->Publish(0);
  EXPECT_EQ(Value(0), 3);
  EXPECT_EQ(Value(1), 3);
  EXPECT_EQ(Value(2), 1);
  BeginStep(0, 1);
  Settle();
  EXPECT_EQ(transport_->started[0].request.pulled_shard_step, 4);
}

TEST_F(BulkExchangeTest, AnotherChangeWithinThePullIsFollowed) {
  Make({2});
  exchange_->BeginPull(/*values_for=*/0);
  Settle();
  Answer(0, 1);
  answer_.store_id = 10;
  Answer(0, 2);
  Settle();
  ASSERT_EQ(transport_->started.size(), 2u);
  answer_.store_id = 11;
  AnswerAll(3);
  ASSERT_TRUE(exchange_->Done(exchange_->pull_slot()));
  exchange_->Publish(exchange_->pull_slot());
  EXPECT_EQ(Value(0), 3);
  EXPECT_EQ(Value(1), 3);
}

TEST_F(BulkExchangeTest, WholeAnswerOfANewStoreNeedsNoPull) {
  Make({1});
  for (uint64_t store = 20; store < 23; ++store) {
    answer_.store_id = store;
    BeginStep(0, 0);
    AnswerAll(static_cast<float>(store));
    ASSERT_TRUE(exchange_->Done(0));
    exchange_->Publish(0);
    EXPECT_EQ(Value(0), static_cast<float>(store));
  }
}

// ---- Ends.

// ---- Shards that move.

TEST_F(BulkExchangeTest, WhatTheServerBeforeHasNotAcknowledgedGoesToTheNewOne) {
  pause_ = absl::Hours(1);
  Make({3, 1});
  BeginStep(0, 0);
  Settle();
  std::map<uint32_t, std::string> sent;
  for (const auto& call : transport_->started) {
    sent[call.request.ranges[0].partition] = call.bytes.ToString();
  }
  AnswerOf(0, 5);
  ASSERT_THAT(InFlight(), ElementsAre(3, 1, 2));
  transport_->Fail(1, absl::UnavailableError("away"));  // of variable 1
  EXPECT_THAT(InFlight(), ElementsAre(3, 2)) << "a pause has begun";
  exchange_->SetServers({{"host-0", "c:1"}, {"host-1", "b:1"}});
  EXPECT_THAT(transport_->redirects, ElementsAre(testing::Pair(0, "c:1")));
  EXPECT_THAT(InFlight(), ElementsAre(3, 2, 1)) << "no pause";
  EXPECT_EQ(transport_->started[2].bytes.ToString(), sent[1]);
  transport_->Fail(1, absl::UnavailableError("given up"));  // of variable 2
  EXPECT_THAT(InFlight(), ElementsAre(3, 1, 2)) << "no pause";
  EXPECT_EQ(transport_->started[2].bytes.ToString(), sent[2]);
  AnswerAll(5);
  ASSERT_TRUE(exchange_->Done(0));
  EXPECT_EQ(exchange_->Publish(0).retries, 2);
}

TEST_F(BulkExchangeTest, NeitherAnswersNorErrorsOfTheServerBeforeCount) {
  Make({2, 1});
  BeginStep(0, 0);
  Settle();
  exchange_->SetServers({{"host-0", "c:1"}, {"host-1", "b:1"}});
  ASSERT_THAT(InFlight(), ElementsAre(0, 2, 1));
  Answer(0, 100);
  EXPECT_THAT(InFlight(), ElementsAre(2, 1, 0)) << "sent again";
  transport_->Fail(1, absl::FailedPreconditionError("another shard"));
  EXPECT_THAT(InFlight(), ElementsAre(2, 0, 1)) << "sent again";
  ASSERT_TRUE(exchange_->status().ok());
  AnswerAll(5);
  ASSERT_TRUE(exchange_->Done(0));
  exchange_->Publish(0);
  for (size_t v = 0; v < 3; ++v) EXPECT_EQ(Value(v), 5);
}

TEST_F(BulkExchangeTest, AShardMovesDuringAPull) {
  Make({2});
  exchange_->BeginPull(/*values_for=*/0);
  Settle();
  exchange_->SetServers({{"host-0", "c:1"}});
  transport_->Fail(0, absl::UnavailableError("given up"));
  answer_.store_id = 10;
  AnswerAll(5);
  ASSERT_TRUE(exchange_->Done(exchange_->pull_slot()));
  exchange_->Publish(exchange_->pull_slot());
  EXPECT_EQ(Value(0), 5);
  EXPECT_EQ(Value(1), 5);
}

TEST_F(BulkExchangeTest, TheSameServersDisturbNothing) {
  Make({1, 1});
  exchange_->SetServers({{"host-0", "a:1"}, {"host-1", "b:1"}});
  EXPECT_THAT(transport_->redirects, IsEmpty());
}

TEST_F(BulkExchangeTest, ANewServerIsGivenItsOwnTime) {
  pause_ = absl::Hours(1);
  Make({1});
  BeginStep(0, 0);
  Settle();
  clock_.Advance(absl::Hours(10));
  exchange_->SetServers({{"host-0", "c:1"}});
  transport_->Fail(0, absl::UnavailableError("given up"));
  Settle();
  clock_.Advance(absl::Seconds(1));
  transport_->Fail(0, absl::UnavailableError("not there yet"));
  Settle();
  EXPECT_TRUE(exchange_->status().ok()) << exchange_->status();
}

TEST_F(BulkExchangeTest, NothingIsSentAfterAnError) {
  Make({6});
  BeginStep(0, 0);
  Settle();
  transport_->Fail(0, absl::AbortedError("other placement"));
  Answer(0, 1);
  Settle();
  EXPECT_EQ(exchange_->status(), absl::AbortedError("other placement"));
  EXPECT_EQ(transport_->started.size(), 2u);
  EXPECT_FALSE(exchange_->Done(0));
}

TEST_F(BulkExchangeTest, StopEndsAWaitForAServer) {
  Make({1});
  BeginStep(0, 0);
  Settle();
  transport_->Fail(0, absl::UnavailableError("away"));
  stop_.Raise();
  Settle();
  EXPECT_TRUE(absl::IsCancelled(exchange_->status())) << exchange_->status();
}

TEST_F(BulkExchangeTest, PatienceIsCountedFromTheFirstAttempt) {
  Make({1});
  BeginStep(0, 0);
  for (int minute = 0; minute < 10; ++minute) {
    while (InFlight().empty()) ASSERT_TRUE(exchange_->status().ok()) << minute;
    clock_.Advance(absl::Minutes(1));
    transport_->Fail(0, absl::UnavailableError("refused"));
  }
  Settle();
  EXPECT_EQ(exchange_->status(), absl::UnavailableError("pushing to ps-0 for 10m: refused"));
}

TEST_F(BulkExchangeTest, NoServersNoWait) {
  Make({0});
  exchange_->BeginPull(/*values_for=*/0);
  EXPECT_TRUE(exchange_->Done(exchange_->pull_slot()));
  BeginStep(0, 0);
  EXPECT_TRUE(exchange_->Done(0));
}

}  // namespace
}  // namespace keelson
