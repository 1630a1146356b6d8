#include "ps_server/units/shard_store.h"

#include <algorithm>
#include <thread>

#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<ShardStore> NewStore(size_t shard, size_t num_shards,
                                     const std::string& optimizer) {
  auto store = ShardStore::Create(
      StoreOptions(TestPlacement(num_shards), shard, optimizer), /*progress=*/{},
      [](const ShardStore::BlockPosition&, BlockState*) { return absl::OkStatus(); });
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

// One push of the gradient 1 to every block, with the rate 1.
void PushOnes(ShardStore* store, uint64_t incarnation, uint64_t sequence) {
  const ShardStore::PushScope scope(store);
  for (const size_t p : store->partitions()) {
    for (int64_t b = 0; b < store->placement().NumBlocks(p); ++b) {
      const std::vector<float> ones(store->BlockElements(p, b), 1.0f);
      ASSERT_TRUE(
          ApplyTo(*store->Find(p, b), store->OptimizerOf(p), {incarnation, sequence, 1}, ones));
    }
  }
  store->CountPush();
}

// Every block has as many updates as the shard has steps, and every value tells the same.
void ExpectWhole(const ShardCut& cut) {
  for (const auto& blocks : cut.partitions) {
    for (const BlockContentRef& block : blocks) {
      EXPECT_EQ(block->updates, cut.shard_step);
      const absl::Span<const float> values = block->values.span();
      EXPECT_EQ(std::count(values.begin(), values.end(), -static_cast<float>(cut.shard_step)),
                block->values.size());
    }
  }
}

TEST(ShardStoreTest, HoldsThePartitionsOfItsShardWithInitialSlots) {
  const std::unique_ptr<ShardStore> store = NewStore(1, 2, "adagrad { initial_accumulator: 0.5 }");
  const Placement placement = TestPlacement(2);
  EXPECT_EQ(store->partitions(), placement.PartitionsOf(1));
  EXPECT_EQ(store->value_bytes(), placement.ShardBytes(1));
  EXPECT_EQ(store->slot_bytes(), placement.ShardBytes(1));
  int64_t elements = 0;
  for (const auto& blocks : store->Cut().partitions) {
    for (const BlockContentRef& block : blocks) {
      elements += block->values.size();
      EXPECT_EQ(block->version, 1u);
      ASSERT_EQ(block->slots.size(), 1u);
      const absl::Span<const float> slot = block->slots[0].span();
      EXPECT_EQ(std::count(slot.begin(), slot.end(), 0.5f), block->values.size());
    }
  }
  EXPECT_EQ(elements * 4, placement.ShardBytes(1));
}

TEST(ShardStoreTest, FillSeesEveryElementOnce) {
  const std::vector<VariableSpec> variables = TestPlacement(3).variables();
  std::vector<std::vector<int>> seen;
  for (const VariableSpec& variable : variables) {
    seen.emplace_back(variable.shape.num_elements(), 0);
  }
  for (size_t s = 0; s < 3; ++s) {
    const auto store =
        ShardStore::Create(StoreOptions(TestPlacement(3), s, "sgd {}"), {},
                           [&](const ShardStore::BlockPosition& position, BlockState* state) {
                             EXPECT_EQ(state->content->values.size(), position.num_elements);
                             for (int64_t i = 0; i < position.num_elements; ++i) {
                               ++seen[position.variable][position.first_element + i];
                             }
                             return absl::OkStatus();
                           });
    ASSERT_TRUE(store.ok());
  }
  for (const std::vector<int>& counts : seen) {
    EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), static_cast<int64_t>(counts.size()));
  }
}

TEST(ShardStoreTest, CreateReturnsTheFirstErrorOfFill) {
  const auto store = ShardStore::Create(
      StoreOptions(TestPlacement(1), 0, "sgd {}"), {},
      [](const ShardStore::BlockPosition&, BlockState*) { return absl::DataLossError("torn"); });
  EXPECT_EQ(store.status(), absl::DataLossError("torn"));
}

TEST(ShardStoreTest, FindRefusesWhatTheShardDoesNotHold) {
  const std::unique_ptr<ShardStore> store = NewStore(0, 2, "sgd {}");
  const Placement placement = TestPlacement(2);
  const size_t theirs = placement.PartitionsOf(1).front();
  const size_t ours = placement.PartitionsOf(0).front();
  for (const size_t p : {theirs, placement.partitions().size(), SIZE_MAX}) {
    const absl::Status status = store->Find(p, 0).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("partition ", p)));
  }
  EXPECT_THAT(std::string(store->Find(theirs, 0).status().message()),
              HasSubstr(placement.VariableOf(theirs).name));
  const size_t blocks = placement.NumBlocks(ours);
  for (const size_t b : {blocks, SIZE_MAX}) {
    const absl::Status status = store->Find(ours, b).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(placement.VariableOf(ours).name));
  }
  EXPECT_TRUE(store->Find(ours, 0).ok());
}

TEST(ShardStoreTest, CutDoesNotChangeWhileTrainingGoesOn) {
  const std::unique_ptr<ShardStore> store = NewStore(0, 1, "sgd {}");
  PushOnes(store.get(), 1, 1);
  const ShardCut cut = store->Cut();
  PushOnes(store.get(), 1, 2);
  EXPECT_EQ(cut.shard_step, 1);
  ExpectWhole(cut);
  ExpectWhole(store->Cut());
}

TEST(ShardStoreTest, CutWaitsForThePushThatIsUnderWay) {
  const std::unique_ptr<ShardStore> store = NewStore(0, 1, "sgd {}");
  ShardCut cut;
  std::thread cutter;
  {
    const ShardStore::PushScope scope(store.get());
    for (const size_t p : store->partitions()) {
      for (int64_t b = 0; b < store->placement().NumBlocks(p); ++b) {
        const std::vector<float> ones(store->BlockElements(p, b), 1.0f);
        ApplyTo(*store->Find(p, b), store->OptimizerOf(p), {1, 1, 1}, ones);
        if (!cutter.joinable()) cutter = std::thread([&] { cut = store->Cut(); });
      }
    }
    store->CountPush();
  }
  cutter.join();
  EXPECT_EQ(cut.shard_step, 1);
  ExpectWhole(cut);
}

TEST(ShardStoreTest, CutsAmongManyPushesAreWhole) {
  constexpr int kPushers = 3;
  constexpr int kPushes = 60;
  const std::unique_ptr<ShardStore> store = NewStore(0, 1, "sgd {}");
  std::atomic<int> pushing{kPushers};
  std::vector<std::thread> threads;
  for (uint64_t t = 1; t <= kPushers; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t s = 1; s <= kPushes; ++s) PushOnes(store.get(), t, s);
      --pushing;
    });
  }
  int64_t last_step = 0;
  while (pushing > 0) {
    const ShardCut cut = store->Cut();
    EXPECT_GE(cut.shard_step, last_step);
    last_step = cut.shard_step;
    ExpectWhole(cut);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->shard_step(), kPushers * kPushes);
  ExpectWhole(store->Cut());
}

}  // namespace
}  // namespace keelson
