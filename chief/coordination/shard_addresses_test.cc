#include "chief/coordination/shard_addresses.h"

#include "chief/coordination/coordinator_fixtures_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ShardAddressesTest : public CoordinatorTest {};

TEST_F(ShardAddressesTest, ThereAreNoneBeforeTraining) {
  const VersionedAddresses news = coordinator_.shards()->NewsFor(0);
  EXPECT_EQ(news.version, 0u);
  EXPECT_THAT(news.addresses, IsEmpty());
}

TEST_F(ShardAddressesTest, WhoKnowsAnotherVersionIsToldTheAddresses) {
  StartTraining(10);
  EXPECT_EQ(coordinator_.shards()->NewsFor(0).version, 1u);
  EXPECT_THAT(coordinator_.shards()->NewsFor(0).addresses, ElementsAre("ps-0:1"));
  EXPECT_THAT(coordinator_.shards()->NewsFor(1).addresses, IsEmpty());
  coordinator_.shards()->Set({"other:1"});
  EXPECT_EQ(coordinator_.shards()->NewsFor(1).version, 2u);
  EXPECT_THAT(coordinator_.shards()->NewsFor(1).addresses, ElementsAre("other:1"));
  EXPECT_THAT(coordinator_.shards()->NewsFor(2).addresses, IsEmpty());
  EXPECT_THAT(coordinator_.shards()->NewsFor(7).addresses, ElementsAre("other:1"))
      << "another chief's version";
}

TEST_F(ShardAddressesTest, TheSameAddressesAreNoNews) {
  StartTraining(10);
  coordinator_.shards()->Set({"ps-0:1"});
  EXPECT_EQ(coordinator_.shards()->NewsFor(0).version, 1u);
}

TEST_F(ShardAddressesTest, ANewMemberGetsTheNewest) {
  StartTraining(10);
  coordinator_.shards()->Set({"other:1"});
  Register(kWorker0, 1);
  const auto model = coordinator_.requests()->WaitForModel(kWorker0, TestId(1), kNoWait);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->ps_addresses, ElementsAre("other:1"));
  EXPECT_EQ(model->servers_version, 2u);
}

TEST_F(ShardAddressesTest, TheyStayWhenTrainingStartsOver) {
  StartTraining(10);
  coordinator_.shards()->Set({"other:1"});
  StartTraining(10);
  EXPECT_EQ(coordinator_.shards()->NewsFor(0).version, 2u);
  EXPECT_THAT(coordinator_.shards()->NewsFor(0).addresses, ElementsAre("other:1"));
}

}  // namespace
}  // namespace keelson
