#include "ps_server/service/served_shard.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/thread.h"
#include "gmock/gmock.h"
#include "ps_server/service/shard_testing.h"
#include "ps_server/snapshots/shard_files.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ServedShardTest : public testing::Test {
 protected:
  static constexpr absl::string_view kCall = "Initialize";

  absl::StatusOr<std::unique_ptr<ShardStore>> NewStore() const {
    return InitializeShard(StoreOptions(TestPlacement(1), 0, "sgd {}"), kTestSeed);
  }
  ServedShard::Origin OriginOf(uint64_t chief) const { return {chief, 7, 0, std::nullopt}; }
  absl::StatusOr<std::optional<ServedShard::Making>> Begin(uint64_t chief) {
    return shard_.Begin(kCall, HeaderOf(chief), OriginOf(chief));
  }
  absl::Status End(uint64_t chief, ServedShard::Making making,
                   absl::StatusOr<std::unique_ptr<ShardStore>> store) {
    v1::InitializeShardRequest request;
    *request.mutable_header() = HeaderOf(chief);
    request.set_placement_fingerprint(7);
    return shard_.End(kCall, request, OriginOf(chief), making, std::move(store));
  }
  void Make(uint64_t chief) {
    const auto making = Begin(chief);
    ASSERT_TRUE(making.ok() && making->has_value());
    ASSERT_EQ(End(chief, **making, NewStore()), absl::OkStatus());
  }

  static constexpr uint64_t kChief = 5;
  ManualClock clock_;
  ChiefAdmission chiefs_{&clock_};
  int dropped_ = 0;
  ServedShard shard_{&chiefs_, [this] { ++dropped_; }};
};

TEST_F(ServedShardTest, IsEmptyAtFirst) {
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::EMPTY);
  EXPECT_EQ(shard_.view().shard, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(shard_.Current().status()));
  EXPECT_TRUE(absl::IsUnavailable(shard_.CurrentStore().status()));
}

TEST_F(ServedShardTest, IsAwayWhileANewOneIsMade) {
  Make(kChief);
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::READY);
  EXPECT_EQ((*shard_.Current())->placement_fingerprint, 7u);
  EXPECT_EQ(dropped_, 1);
  const auto making = shard_.Begin(kCall, HeaderOf(kChief), {kChief, 8, 0, std::nullopt});
  ASSERT_TRUE(making.ok() && making->has_value());
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::INITIALIZING);
  EXPECT_EQ(shard_.view().shard, nullptr);
  EXPECT_EQ(dropped_, 2);
}

TEST_F(ServedShardTest, TheSameOriginNeedsNoNewOne) {
  Make(kChief);
  const uint64_t store_id = (*shard_.Current())->store_id;
  EXPECT_EQ(*Begin(kChief), std::nullopt);
  EXPECT_EQ((*shard_.Current())->store_id, store_id);
  EXPECT_EQ(dropped_, 1);
}

TEST_F(ServedShardTest, ALaterCallMakesIt) {
  const ServedShard::Making first = **Begin(kChief);
  const ServedShard::Making second = **Begin(kChief);
  EXPECT_THAT(std::string(shard_.CheckMaking(kCall, HeaderOf(kChief), first).message()),
              HasSubstr("Initialize: a later call makes the shard"));
  EXPECT_TRUE(absl::IsUnavailable(End(kChief, first, NewStore())));
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::INITIALIZING);
  EXPECT_EQ(End(kChief, second, NewStore()), absl::OkStatus());
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::READY);
}

TEST_F(ServedShardTest, IsEmptyOnceItIsDropped) {
  Make(kChief);
  shard_.Drop();
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::EMPTY);
  EXPECT_TRUE(absl::IsUnavailable(shard_.Current().status()));
  EXPECT_EQ(dropped_, 2);
  Make(kChief);
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::READY) << "of the same origin";
}

TEST_F(ServedShardTest, WhatIsBeingMadeWhenItIsDroppedIsRefused) {
  const auto making = Begin(kChief);
  ASSERT_TRUE(making.ok());
  shard_.Drop();
  EXPECT_TRUE(absl::IsUnavailable(End(kChief, **making, NewStore())));
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::EMPTY);
}

TEST_F(ServedShardTest, IsEmptyAfterAnError) {
  const ServedShard::Making making = **Begin(kChief);
  EXPECT_TRUE(absl::IsDataLoss(End(kChief, making, absl::DataLossError("damaged"))));
  EXPECT_EQ(shard_.view().state, v1::ShardStatus::EMPTY);
  Make(kChief);
}

TEST_F(ServedShardTest, MembersOutliveIt) {
  shard_.TakeMembers(kChief, TestMembers(/*epoch=*/3));
  const size_t members = shard_.view().members;
  EXPECT_GT(members, 0u);
  Make(kChief);
  EXPECT_EQ(shard_.view().members, members);
  EXPECT_EQ(shard_.view().member_epoch, 3u);
}

// The chief hands the work of former members on once it has read the new epoch.
TEST_F(ServedShardTest, ShowsAnEpochOnceNothingElseIsApplied) {
  Make(kChief);
  shard_.TakeMembers(kChief, TestMembers(/*epoch=*/3));
  const size_t members = shard_.view().members;
  const std::shared_ptr<ShardStore> store = *shard_.CurrentStore();
  std::optional<ShardStore::PushScope> push(store.get());
  Thread taking([&] { shard_.TakeMembers(kChief, TestMembers(/*epoch=*/4, /*without=*/{1})); });
  while (shard_.view().members == members) std::this_thread::yield();
  EXPECT_EQ(shard_.view().member_epoch, 3u) << "a push of a former member may still be applied";
  push.reset();
  taking.Join();
  EXPECT_EQ(shard_.view().member_epoch, 4u);
}

TEST_F(ServedShardTest, AServerThatLeavesDoesSoWithALaterShardToo) {
  EXPECT_FALSE(shard_.leaving());
  shard_.Leave();
  EXPECT_TRUE(shard_.leaving());
  Make(kChief);
  const std::shared_ptr<ShardStore> store = *shard_.CurrentStore();
  const auto is_open = [&] {
    const ShardStore::PushScope push(store.get());
    return store->CheckOpen().ok();
  };
  EXPECT_TRUE(is_open());
  store->Cut();
  EXPECT_FALSE(is_open());
}

}  // namespace
}  // namespace keelson
