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

}  // namespace
}  // namespace keelson
