#include "chief/coordination/parked_requests.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Kind = ParkedRequests::Kind;

constexpr absl::Duration kRenewal = absl::Milliseconds(500);
constexpr absl::Duration kWait = absl::Seconds(2);

class ParkedRequestsTest : public testing::Test {
 protected:
  // Its attempts are logged as its name, with "!" the last; it is answered at the last one, or once
  // `ready_`.
  ParkedRequests::Id Park(const std::string& name, uint64_t incarnation, Kind kind = Kind::kWork) {
    return parked_.Park(kind, incarnation, now_, now_ + kWait,
                        [this, name](bool last) -> ParkedRequests::Answer {
                          attempts_.push_back(absl::StrCat(name, last ? "!" : ""));
                          if (!last && !ready_) return nullptr;
                          return [this, name] { answered_.push_back(name); };
                        });
  }
  // The attempts of one call.
  std::vector<std::string> Try() {
    attempts_.clear();
    for (const auto& answer : parked_.TryDue(now_)) answer();
    return attempts_;
  }

  absl::Duration now_ = absl::Seconds(100);
  bool ready_ = false;
  ParkedRequests parked_{kRenewal};
  std::vector<std::string> attempts_;
  std::vector<std::string> answered_;
};

TEST_F(ParkedRequestsTest, ARequestIsTriedOncePerRenewalUntilItsTimeHasPassed) {
  EXPECT_EQ(parked_.NextDue(), absl::InfiniteDuration());
  Park("a", 1);
  EXPECT_THAT(Try(), IsEmpty());
  for (int renewal = 1; renewal < 4; ++renewal) {
    EXPECT_EQ(parked_.NextDue(), now_ + kRenewal);
    now_ += kRenewal;
    EXPECT_THAT(Try(), ElementsAre("a"));
    EXPECT_THAT(Try(), IsEmpty());
  }
  EXPECT_THAT(answered_, IsEmpty());
  now_ += kRenewal;
  EXPECT_THAT(Try(), ElementsAre("a!"));
  EXPECT_THAT(answered_, ElementsAre("a"));
  EXPECT_TRUE(parked_.empty());
  EXPECT_EQ(parked_.NextDue(), absl::InfiniteDuration());
}

TEST_F(ParkedRequestsTest, WhatIsAnsweredOrWithdrawnIsTriedNoMore) {
  const ParkedRequests::Id a = Park("a", 1);
  const ParkedRequests::Id b = Park("b", 2);
  EXPECT_TRUE(parked_.Withdraw(a));
  EXPECT_FALSE(parked_.Withdraw(a));
  ready_ = true;
  parked_.MakeAllDue();
  EXPECT_THAT(Try(), ElementsAre("b"));
  EXPECT_FALSE(parked_.Withdraw(b));
  parked_.MakeAllDue();
  now_ += kWait;
  EXPECT_THAT(Try(), IsEmpty());
}

TEST_F(ParkedRequestsTest, ANewerRequestOfAMemberEndsItsOlderOneOfThatKind) {
  Park("older", 1);
  Park("model", 1, Kind::kModel);
  Park("another", 2);
  Park("newer", 1);
  EXPECT_THAT(Try(), ElementsAre("older!"));
  EXPECT_THAT(answered_, ElementsAre("older"));
  EXPECT_TRUE(parked_.MakeDue(Kind::kWork, 1));
  EXPECT_THAT(Try(), ElementsAre("newer"));
}

TEST_F(ParkedRequestsTest, OnlyTheOneThatIsDueIsTried) {
  for (uint64_t member = 1; member <= 1000; ++member) Park(absl::StrCat(member), member);
  EXPECT_TRUE(parked_.MakeDue(Kind::kWork, 700));
  EXPECT_FALSE(parked_.MakeDue(Kind::kModel, 700));
  EXPECT_FALSE(parked_.MakeDue(Kind::kWork, 1001));
  EXPECT_LE(parked_.NextDue(), now_);
  EXPECT_THAT(Try(), ElementsAre("700"));
  EXPECT_THAT(Try(), IsEmpty());
}

TEST_F(ParkedRequestsTest, AllAreTriedAFewAtATimeAndNoneIsPassedOver) {
  constexpr size_t kFew = ParkedRequests::kAttemptsAtOnce;
  for (uint64_t member = 1; member <= 2 * kFew; ++member) Park(absl::StrCat(member), member);
  parked_.MakeAllDue();
  std::vector<std::string> first = Try();
  EXPECT_EQ(first.size(), kFew);
  // The rest comes first when all are due again.
  parked_.MakeAllDue();
  const std::vector<std::string> rest = Try();
  EXPECT_EQ(rest.size(), kFew);
  EXPECT_EQ(rest.front(), absl::StrCat(kFew + 1));
  EXPECT_EQ(Try(), first);
  EXPECT_THAT(Try(), IsEmpty());
}

}  // namespace
}  // namespace keelson
