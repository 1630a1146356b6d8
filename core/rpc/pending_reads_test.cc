#include "core/rpc/pending_reads.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace keelson {
namespace {

TEST(PendingReadsTest, OneTooManyCancelsTheOldestThatIsStillThere) {
  PendingReads reads(2);
  std::vector<int> cancelled;
  const auto cancel = [&](int read) { return [&cancelled, read] { cancelled.push_back(read); }; };
  std::optional<PendingReads::Scope> first(std::in_place, &reads, cancel(1));
  std::optional<PendingReads::Scope> second(std::in_place, &reads, cancel(2));
  EXPECT_TRUE(cancelled.empty());
  first.reset();
  std::optional<PendingReads::Scope> third(std::in_place, &reads, cancel(3));
  EXPECT_TRUE(cancelled.empty()) << "the first has ended";
  std::optional<PendingReads::Scope> fourth(std::in_place, &reads, cancel(4));
  EXPECT_EQ(cancelled, std::vector<int>{2});
  std::optional<PendingReads::Scope> fifth(std::in_place, &reads, cancel(5));
  EXPECT_EQ(cancelled, (std::vector<int>{2, 3})) << "each is cancelled once";
}

TEST(PendingReadsTest, AReadThatMayStillEndIsNotCancelled) {
  ManualClock clock;
  PendingReads reads(1, absl::Seconds(10), &clock);
  int cancelled = 0;
  const auto cancel = [&] { ++cancelled; };
  const PendingReads::Scope first(&reads, cancel);
  const PendingReads::Scope second(&reads, cancel);
  clock.Advance(absl::Seconds(9));
  const PendingReads::Scope third(&reads, cancel);
  EXPECT_EQ(cancelled, 0);
  clock.Advance(absl::Seconds(1));
  const PendingReads::Scope fourth(&reads, cancel);
  EXPECT_EQ(cancelled, 2) << "the first two have taken too long";
}

}  // namespace
}  // namespace keelson
