#include "ps_server/service/member_table.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kSecret = 0x5ec2e7;

// Worker w has incarnation 10 + w.
v1::MemberList ListOf(uint64_t epoch, const std::vector<uint32_t>& workers) {
  v1::MemberList list;
  list.set_epoch(epoch);
  for (const uint32_t worker : workers) {
    v1::MemberList::Member* const member = list.add_members();
    member->mutable_task()->set_role(v1::ROLE_WORKER);
    member->mutable_task()->set_index(worker);
    member->set_incarnation(10 + worker);
    member->set_membership_secret(kSecret);
  }
  return list;
}

BulkRequest RequestOf(uint32_t worker, uint64_t told_epoch) {
  BulkRequest request;
  request.role = v1::ROLE_WORKER;
  request.task_index = worker;
  request.incarnation = 10 + worker;
  request.membership_secret = kSecret;
  request.member_epoch = told_epoch;
  return request;
}

TEST(MemberTableTest, NobodyIsAMemberBeforeTheFirstList) {
  const MemberTable table;
  EXPECT_EQ(table.Check(RequestOf(0, 0)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table.Check(RequestOf(0, 9)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(table.size(), 0u);
}

TEST(MemberTableTest, TellsWhoMayComeFromWhoWent) {
  MemberTable table;
  ASSERT_TRUE(table.Take(1, ListOf(5, {0, 1})));
  EXPECT_EQ(table.Check(RequestOf(0, 0)), absl::OkStatus());
  EXPECT_EQ(table.Check(RequestOf(1, 9)), absl::OkStatus());
  EXPECT_THAT(table.Incarnations(), UnorderedElementsAre(10, 11));
  const absl::Status early = table.Check(RequestOf(2, 6));
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.message()),
              HasSubstr("it belongs to epoch 6, the newest one known here is 5"));
  for (const uint64_t told : {0, 4, 5}) {
    EXPECT_EQ(table.Check(RequestOf(2, told)),
              absl::AbortedError("membership of worker-2 is over: its calls are refused"));
  }
}

TEST(MemberTableTest, AnIncarnationBelongsToItsTask) {
  MemberTable table;
  ASSERT_TRUE(table.Take(1, ListOf(5, {0, 1})));
  BulkRequest request = RequestOf(0, 5);
  request.task_index = 1;
  EXPECT_EQ(table.Check(request).code(), absl::StatusCode::kAborted);
}

TEST(MemberTableTest, AnIncarnationWithoutItsSecretIsRefusedForGood) {
  MemberTable table;
  ASSERT_TRUE(table.Take(1, ListOf(5, {0})));
  for (const uint64_t secret : {uint64_t{0}, kSecret + 1, kSecret ^ (uint64_t{1} << 63)}) {
    for (const uint64_t told : {0, 5, 9}) {
      BulkRequest request = RequestOf(0, told);
      request.membership_secret = secret;
      EXPECT_EQ(table.Check(request),
                absl::AbortedError("membership of worker-0 is over: its calls are refused"));
    }
  }
}

TEST(MemberTableTest, AnOlderListOfTheSameChiefIsIgnored) {
  MemberTable table;
  ASSERT_TRUE(table.Take(1, ListOf(5, {0})));
  EXPECT_FALSE(table.Take(1, ListOf(4, {0, 1})));
  EXPECT_FALSE(table.Take(1, ListOf(5, {0, 1})));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_TRUE(table.Take(1, ListOf(6, {1})));
  EXPECT_EQ(table.Check(RequestOf(0, 5)).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(table.Take(2, ListOf(3, {2}))) << "another chief counts for itself";
  EXPECT_EQ(table.epoch(), 3u);
  EXPECT_EQ(table.Check(RequestOf(2, 3)), absl::OkStatus());
}

}  // namespace
}  // namespace keelson
