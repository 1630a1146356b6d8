#include "chief/servers/shared_job_state.h"

#include "core/base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class SharedJobStateTest : public testing::Test {
 protected:
  v1::PersistedJobState Persisted() {
    v1::PersistedJobState persisted;
    persisted.mutable_job()->set_state_version(++made_);
    return persisted;
  }
  v1::MemberList Members() const {
    v1::MemberList members;
    members.set_epoch(epoch_);
    return members;
  }

  uint64_t made_ = 0;
  uint64_t epoch_ = 5;
  ManualClock clock_;
  SharedJobState shared_{[this] { return Persisted(); }, [this] { return Members(); }, &clock_,
                         absl::Milliseconds(250)};
};

TEST_F(SharedJobStateTest, OneStateServesAllUntilItIsOld) {
  const auto first = shared_.Get({1});
  v1::PersistedJobState persisted;
  ASSERT_TRUE(persisted.ParseFromString(first->bytes));
  EXPECT_EQ(persisted.job().state_version(), first->version);
  clock_.Advance(absl::Milliseconds(250));
  EXPECT_EQ(shared_.Get({1}), first);
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(shared_.Get({1})->version, 2u);
}

TEST_F(SharedJobStateTest, WhoHasTheNewestGetsANewerOne) {
  const auto first = shared_.Get({});
  EXPECT_EQ(shared_.Get({first->number + 1})->version, 2u);
  EXPECT_EQ(shared_.Get({first->number + 1})->version, 2u);
}

TEST_F(SharedJobStateTest, ANewMemberIsInTheState) {
  shared_.Get({});
  epoch_ = 6;
  EXPECT_EQ(shared_.Get({.number = 0, .epoch = 5})->version, 1u);
  EXPECT_EQ(shared_.Get({.number = 0, .epoch = 6})->members.epoch(), 6u);
  EXPECT_EQ(made_, 2u);
}

TEST_F(SharedJobStateTest, ARequestIsServedByAStateThatIsNoOlder) {
  shared_.Get({});
  EXPECT_EQ(shared_.Get({.request = 1})->version, 2u);
  EXPECT_EQ(shared_.Get({.request = 1})->version, 2u);
}

}  // namespace
}  // namespace keelson
