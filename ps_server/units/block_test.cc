#include "ps_server/units/block.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

constexpr int64_t kElements = 64;

std::unique_ptr<Optimizer> MakeOptimizer(const std::string& text) {
  return *CreateOptimizer(OptimizerFromText(text));
}

BlockContentRef NewContent(const Optimizer& optimizer, float value, int64_t elements = kElements) {
  auto* content = new BlockContent(elements, optimizer.slots().size());
  std::fill_n(content->values.data(), elements, value);
  return BlockContentRef(content);
}

std::vector<float> Gradient(float value) { return std::vector<float>(kElements, value); }

std::vector<float> Copy(const AlignedBuffer& buffer) {
  return std::vector<float>(buffer.span().begin(), buffer.span().end());
}

class BlockTest : public testing::Test {
 protected:
  bool Apply(uint64_t incarnation, uint64_t sequence, float gradient) {
    return ApplyTo(&block_, *sgd_, {incarnation, sequence, /*learning_rate=*/1},
                   Gradient(gradient));
  }

  const std::unique_ptr<Optimizer> sgd_ = MakeOptimizer("sgd {}");
  AppliedSequences sequences_;
  Block block_{NewContent(*sgd_, 10), /*unit=*/0, &sequences_};
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
  const BlockContentRef second = block_.Read();
  ASSERT_TRUE(Apply(1, 2, 3));
  ASSERT_TRUE(Apply(1, 3, 4));
  EXPECT_EQ(Copy(first->values), Gradient(10));
  EXPECT_EQ(first->version, 1u);
  EXPECT_EQ(Copy(second->values), Gradient(8));
  EXPECT_EQ(second->version, 2u);
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

TEST_F(BlockTest, LeavesTheCursorBehindTheGradientAppliedOrNot) {
  for (int format = 0; format < kNumWireFormats; ++format) {
    const auto wire = static_cast<WireFormat>(format);
    const std::string bytes = EncodeGradient(wire, Gradient(1)) + "rest";
    for (const bool applies : {true, false}) {
      const ByteRope rope = Fragmented(bytes, 7, 1);
      ByteCursor cursor(rope);
      EXPECT_EQ(block_.Apply(*sgd_, {static_cast<uint64_t>(format), 1, 1}, {wire, &cursor}),
                applies);
      EXPECT_EQ(cursor.remaining(), 4u) << WireFormatName(wire);
    }
  }
}

TEST_F(BlockTest, APushWithoutAGradientLeavesTheContentAndTakesItsSequence) {
  ASSERT_TRUE(Apply(1, 1, 2));
  BlockContentRef after;
  EXPECT_TRUE(block_.ApplyNothing(*sgd_, {1, 2, 1}, &after));
  EXPECT_FALSE(block_.ApplyNothing(*sgd_, {1, 2, 1}, &after));
  EXPECT_FALSE(Apply(1, 2, 5));
  EXPECT_EQ(Copy(after->values), Gradient(8));
  EXPECT_EQ(after->version, 2u);
  EXPECT_EQ(after->updates, 1);
  EXPECT_TRUE(Apply(1, 3, 5));
}

TEST_F(BlockTest, GivesTheContentAfterThePush) {
  BlockContentRef after;
  const std::string bytes = BytesOf(Gradient(2));
  for (const bool applies : {true, false}) {
    const ByteRope rope = Fragmented(bytes, bytes.size(), 1);
    ByteCursor cursor(rope);
    EXPECT_EQ(block_.Apply(*sgd_, {1, 1, 1}, {WireFormat::kFloat32, &cursor}, &after), applies);
    EXPECT_EQ(Copy(after->values), Gradient(8));
    EXPECT_EQ(after->version, 2u);
  }
  ASSERT_TRUE(Apply(1, 2, 3));
  EXPECT_EQ(Copy(after->values), Gradient(8));
  EXPECT_EQ(Copy(block_.Read()->values), Gradient(5));
}

TEST_F(BlockTest, PinHoldsTheContentUntilItIsReleased) {
  const BlockContent* const content = &*block_.Read();
  {
    const Pin pin = block_.Read().IntoPin();
    ASSERT_TRUE(Apply(1, 1, 2));
    EXPECT_NE(&*block_.Read(), content);
    EXPECT_EQ(content->values.data()[0], 10);
  }
  const BlockContent* const next = &*block_.Read();
  ASSERT_TRUE(Apply(1, 2, 2));
  EXPECT_EQ(&*block_.Read(), next) << "nobody else holds it";
}

class BlockOptimizerTest : public testing::TestWithParam<const char*> {};

TEST_P(BlockOptimizerTest, InPlaceAndOutOfPlaceGiveTheSameBits) {
  const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(GetParam());
  AppliedSequences in_place_sequences;
  Block in_place(NewContent(*optimizer, 0.3f), /*unit=*/0, &in_place_sequences);
  AppliedSequences out_of_place_sequences;
  Block out_of_place(NewContent(*optimizer, 0.3f), /*unit=*/0, &out_of_place_sequences);
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    const PushIdentity push = {1, sequence, 0.01f};
    const std::vector<float> gradient = Gradient(0.1f * static_cast<float>(sequence));
    const BlockContentRef held = out_of_place.Read();
    ASSERT_TRUE(ApplyTo(&in_place, *optimizer, push, gradient));
    ASSERT_TRUE(ApplyTo(&out_of_place, *optimizer, push, gradient));
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

// An element that a wrong update would not leave as it is, of any scale.
std::vector<float> VariedGradient(int64_t elements, uint64_t sequence) {
  std::vector<float> gradient;
  for (int64_t e = 0; e < elements; ++e) {
    gradient.push_back(TestGradient(0, e, sequence) * std::ldexp(1.0f, static_cast<int>(e % 9)));
  }
  return gradient;
}

void ExpectSameBits(const BlockContent& a, const BlockContent& b) {
  EXPECT_EQ(BytesOf(Copy(a.values)), BytesOf(Copy(b.values)));
  ASSERT_EQ(a.slots.size(), b.slots.size());
  for (size_t i = 0; i < a.slots.size(); ++i) {
    EXPECT_EQ(BytesOf(Copy(a.slots[i])), BytesOf(Copy(b.slots[i])));
  }
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.updates, b.updates);
}

// Two int8 groups and a rest; two dense chunks and a rest; one element; less than a group.
constexpr int64_t kWireElements[] = {2 * 4096 + 3, 1024 * 2 + 77, 1000, 1};
// Longest fragment: nothing but cut elements; some; few; one fragment.
constexpr size_t kFragments[] = {1, 3, 700, 1 << 20};

TEST_P(BlockOptimizerTest, EveryFormatInAnyFragmentsIsDecodeThenUpdate) {
  const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(GetParam());
  for (int format = 0; format < kNumWireFormats; ++format) {
    const auto wire = static_cast<WireFormat>(format);
    for (const int64_t elements : kWireElements) {
      for (const size_t longest : kFragments) {
        SCOPED_TRACE(absl::StrCat(WireFormatName(wire), ", ", elements, " elements, fragments of ",
                                  longest));
        AppliedSequences expected_sequences;
        Block expected(NewContent(*optimizer, 0.3f, elements), /*unit=*/0, &expected_sequences);
        AppliedSequences in_place_sequences;
        Block in_place(NewContent(*optimizer, 0.3f, elements), /*unit=*/0, &in_place_sequences);
        AppliedSequences out_of_place_sequences;
        Block out_of_place(NewContent(*optimizer, 0.3f, elements), /*unit=*/0,
                           &out_of_place_sequences);
        for (uint64_t sequence = 1; sequence <= 3; ++sequence) {
          const PushIdentity push = {1, sequence, 0.01f};
          const std::string bytes = EncodeGradient(wire, VariedGradient(elements, sequence));
          ApplyTo(&expected, *optimizer, push, DecodeGradient(wire, bytes, elements));
          const ByteRope rope = Fragmented(bytes, longest, sequence);
          ByteCursor cursor(rope);
          EXPECT_TRUE(in_place.Apply(*optimizer, push, {wire, &cursor}));
          ByteCursor again(rope);
          const BlockContentRef held = out_of_place.Read();
          EXPECT_TRUE(out_of_place.Apply(*optimizer, push, {wire, &again}));
        }
        ExpectSameBits(*in_place.Read(), *expected.Read());
        ExpectSameBits(*out_of_place.Read(), *expected.Read());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, BlockOptimizerTest,
                         testing::Values("sgd {}", "momentum {}", "adagrad {}", "rmsprop {}",
                                         "adam {}", "adamw {}", "ftrl {}"));

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
