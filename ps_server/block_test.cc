#include "ps_server/block.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "ps_server/shard_testing.h"

namespace keelson {
namespace {

constexpr int64_t kElements = 64;

std::unique_ptr<Optimizer> MakeOptimizer(const std::string& text) {
  return *CreateOptimizer(OptimizerFromText(text));
}

BlockState NewState(const Optimizer& optimizer, float value) {
  auto* content = new BlockContent(kElements, optimizer.slots().size());
  std::fill_n(content->values.data(), kElements, value);
  return {BlockContentRef(content), {}};
}

std::vector<float> Gradient(float value) { return std::vector<float>(kElements, value); }

std::vector<float> Copy(const AlignedBuffer& buffer) {
  return std::vector<float>(buffer.span().begin(), buffer.span().end());
}

class BlockTest : public testing::Test {
 protected:
  bool Apply(uint64_t incarnation, uint64_t sequence, float gradient) {
    return block_.Apply(*sgd_, {incarnation, sequence, /*learning_rate=*/1}, Gradient(gradient));
  }

  const std::unique_ptr<Optimizer> sgd_ = MakeOptimizer("sgd {}");
  Block block_{NewState(*sgd_, 10)};
};

TEST_F(BlockTest, UpdatesInPlaceWhileItIsTheSoleHolder) {
  const BlockContent* const before = &*block_.Read();
  ASSERT_TRUE(Apply(1, 1, 2));
  EXPECT_EQ(&*block_.Read(), before);
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(8));
}

TEST_F(BlockTest, UpdatesOutOfPlaceWhileOthersHoldTheContent) {
  const BlockContentRef held = block_.Read();
  ASSERT_TRUE(Apply(1, 1, 2));
  EXPECT_NE(&*block_.Read(), &*held);
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(8));
}

TEST_F(BlockTest, HeldContentNeverChanges) {
  const BlockContentRef first = block_.Read();
  ASSERT_TRUE(Apply(1, 1, 2));
  const BlockState second = block_.ReadState();
  ASSERT_TRUE(Apply(1, 2, 3));
  ASSERT_TRUE(Apply(1, 3, 4));
  EXPECT_EQ(Copy(first->values), Gradient(10));
  EXPECT_EQ(first->version, 1u);
  EXPECT_EQ(Copy(second.content->values), Gradient(8));
  EXPECT_EQ(second.content->version, 2u);
  ASSERT_EQ(second.applied.size(), 1u);
  EXPECT_EQ(second.applied[0].sequence, 1u);
}

TEST_F(BlockTest, VersionsAndUpdatesRiseInAndOutOfPlace) {
  ASSERT_TRUE(Apply(1, 1, 0));
  {
    const BlockContentRef held = block_.Read();
    ASSERT_TRUE(Apply(1, 2, 0));
  }
  ASSERT_TRUE(Apply(1, 3, 0));
  EXPECT_EQ(block_.Read()->version, 4u);
  EXPECT_EQ(block_.Read()->updates, 3);
}

TEST_F(BlockTest, AppliesEachSequenceOfAnIncarnationOnce) {
  EXPECT_TRUE(Apply(1, 5, 1));
  EXPECT_FALSE(Apply(1, 5, 1));
  EXPECT_FALSE(Apply(1, 4, 1));
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(9));
  EXPECT_EQ(block_.Read()->version, 2u);
  EXPECT_TRUE(Apply(1, 6, 1));
  EXPECT_TRUE(Apply(2, 5, 1)) << "another incarnation counts for itself";
  EXPECT_FALSE(Apply(2, 5, 1));
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(7));
}

class BlockOptimizerTest : public testing::TestWithParam<const char*> {};

TEST_P(BlockOptimizerTest, InPlaceAndOutOfPlaceGiveTheSameBits) {
  const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(GetParam());
  Block in_place(NewState(*optimizer, 0.3f));
  Block out_of_place(NewState(*optimizer, 0.3f));
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    const PushIdentity push = {1, sequence, 0.01f};
    const std::vector<float> gradient = Gradient(0.1f * static_cast<float>(sequence));
    const BlockContentRef held = out_of_place.Read();
    ASSERT_TRUE(in_place.Apply(*optimizer, push, gradient));
    ASSERT_TRUE(out_of_place.Apply(*optimizer, push, gradient));
  }
  const BlockContentRef a = in_place.Read();
  const BlockContentRef b = out_of_place.Read();
  EXPECT_EQ(Copy(a->values), Copy(b->values));
  EXPECT_NE(a->values.data()[0], 0.3f);
  ASSERT_EQ(a->slots.size(), optimizer->slots().size());
  for (size_t i = 0; i < a->slots.size(); ++i) {
    EXPECT_EQ(Copy(a->slots[i]), Copy(b->slots[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, BlockOptimizerTest,
                         testing::Values("sgd {}", "momentum {}", "adagrad {}", "rmsprop {}",
                                         "adam {}", "adamw {}"));

TEST_F(BlockTest, ReadersAmongWritersNeverSeeATornBlock) {
  constexpr int kWriters = 3;
  constexpr int kReaders = 2;
  constexpr int kPushes = 1000;
  std::atomic<int> reading{0};
  std::atomic<int> writing{kWriters};
  std::vector<std::thread> threads;
  for (int w = 1; w <= kWriters; ++w) {
    threads.emplace_back([this, w, &reading, &writing] {
      while (reading < kReaders) std::this_thread::yield();
      for (uint64_t s = 1; s <= kPushes; ++s) Apply(static_cast<uint64_t>(w), s, 1);
      --writing;
    });
  }
  for (int r = 0; r < kReaders; ++r) {
    threads.emplace_back([this, &reading, &writing] {
      ++reading;
      uint64_t version = 0;
      while (writing > 0) {
        const BlockContentRef content = block_.Read();
        const absl::Span<const float> values = content->values.span();
        EXPECT_EQ(values[0], 10 - static_cast<float>(content->updates));
        EXPECT_EQ(std::count(values.begin(), values.end(), values[0]), kElements);
        EXPECT_GE(content->version, version);
        version = content->version;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(10 - kWriters * kPushes));
}

}  // namespace
}  // namespace keelson
