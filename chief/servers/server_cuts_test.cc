#include "chief/servers/server_cuts.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "chief/servers/server_group_testing.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ServerCutsTest : public ServerGroupTest {};

TEST_F(ServerCutsTest, WriteSnapshotJoinsTheParts) {
  const std::string directory = FreshDirectory();
  for (FakeParameterServer& server : servers_) server.SetModelDir(directory);
  const auto written = group_.cuts()->Write({kCut}, 7, 3, {});
  ASSERT_TRUE(written.ok()) << written.status();
  ASSERT_EQ(written->entries.size(), 2u);
  EXPECT_EQ(written->entries[0].key, "v0");
  EXPECT_EQ(written->entries[1].entry.shard_id(), 1);
  EXPECT_EQ(written->bytes, 24);
  EXPECT_EQ(written->longest_cut_microseconds, 7);
  EXPECT_TRUE(FileExists(JoinPath(directory, "model.ckpt-7.data-00001-of-00003.tempstate0-5")));
}

TEST_F(ServerCutsTest, ACutIsPreparedEverywhereAndWritten) {
  v1::ShardStatus kept;
  kept.set_store_id(7);
  for (size_t s = 0; s < 2; ++s) group_.Keep(s, kept);
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  bool begun = false;
  const auto cut = group_.cuts()->Prepare(
      [&] {
        begun = true;
        for (FakeParameterServer& server : servers_) {
          EXPECT_EQ(server.Count(&ParameterControl::PrepareCut), 0);
        }
      },
      {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(begun);
  EXPECT_NE(cut->id, 0u);
  EXPECT_EQ(cut->committed_round, 12);
  group_.cuts()->Write(*cut, 13, 3, {}).IgnoreError();  // the fakes have no directory
  for (FakeParameterServer& server : servers_) {
    const v1::PrepareCutRequest prepared = server.Requests(&ParameterControl::PrepareCut).at(0);
    EXPECT_EQ(prepared.cut_id(), cut->id);
    EXPECT_EQ(prepared.store_id(), 7u) << "the shard that the chief knows";
    EXPECT_EQ(server.Requests(&ParameterControl::WriteSnapshot).at(0).cut_id(), cut->id);
  }
}

TEST_F(ServerCutsTest, RowsOfTheSecondServerStandBehindThoseOfTheFirst) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3, 9});
  const auto cut = group_.cuts()->Prepare([] {}, {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  group_.cuts()->Write(*cut, 13, 3, {}).IgnoreError();  // the fakes have no directory
  const auto places = [&](size_t s) {
    const auto request = servers_[s].Requests(&ParameterControl::WriteSnapshot).at(0);
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const v1::TableRows& table : request.tables()) {
      found.emplace_back(table.first_row(), table.total_rows());
    }
    return found;
  };
  EXPECT_THAT(places(0), testing::ElementsAre(testing::Pair(0, 8), testing::Pair(0, 9)));
  EXPECT_THAT(places(1), testing::ElementsAre(testing::Pair(5, 8), testing::Pair(0, 9)));
}

TEST_F(ServerCutsTest, ADeltaIsPossibleWhereAllServersKnowWhatHasChanged) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3, 9});
  const auto first = group_.cuts()->Prepare([] {}, {.keep = true, .base = 0});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(first->changes, testing::IsEmpty());
  servers_[0].SetChanges({{2, 7}, {0, 0}});
  servers_[1].SetChanges({{1, 4}, {6, 0}});
  const auto cut = group_.cuts()->Prepare([] {}, {.keep = true, .base = first->id});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->rows.all, 17);
  EXPECT_EQ(cut->rows.changed, 9);
  v1::SnapshotBase base;
  base.set_step(12);
  group_.cuts()->Write(*cut, 13, 3, base).IgnoreError();  // the fakes have no directory
  const auto request = servers_[1].Requests(&ParameterControl::WriteSnapshot).at(0);
  EXPECT_EQ(request.base().step(), 12);
  ASSERT_EQ(request.tables_size(), 2);
  EXPECT_EQ(request.tables(0).first_row(), 2);
  EXPECT_EQ(request.tables(0).total_rows(), 3);
  EXPECT_EQ(request.tables(0).first_erased(), 7);
  EXPECT_EQ(request.tables(0).total_erased(), 11);
  EXPECT_EQ(request.tables(1).first_row(), 0);
  EXPECT_EQ(request.tables(1).total_rows(), 6);
  // One that has lost its shard does not know.
  servers_[1].Restart();
  ASSERT_EQ(group_.InitializeServer(1, std::nullopt, {}), absl::OkStatus());
  const auto next = group_.cuts()->Prepare([] {}, {.keep = true, .base = cut->id});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_THAT(next->changes, testing::IsEmpty());
}

TEST_F(ServerCutsTest, CutsOfOtherTablesAreRefused) {
  servers_[0].SetTableRows({5, 0});
  servers_[1].SetTableRows({3});
  EXPECT_EQ(group_.cuts()->Prepare([] {}, {}).status(),
            absl::InternalError("ps-1: expected a cut of 2 tables as at other servers, found 1"));
}

TEST_F(ServerCutsTest, AServerThatDoesNotAnswerHasNoCut) {
  ASSERT_EQ(group_.WaitUntilReachable(), absl::OkStatus());
  servers_[1].Sever();
  EXPECT_EQ(group_.cuts()->Prepare([] {}, {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ServerCutsTest, UnequalCutsAreRefusedAndTheNextOnesAreEqual) {
  ASSERT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_), absl::OkStatus());
  servers_[1].EditStatus([](v1::ShardStatus* shard) { shard->set_committed_round(11); });
  EXPECT_EQ(
      group_.cuts()->Prepare([] {}, {}).status(),
      absl::UnavailableError("ps-1: expected a cut of round 12 as at other servers, found 11"));
  EXPECT_TRUE(servers_[1].commits().back().lost());
  const auto cut = group_.cuts()->Prepare([] {}, {});
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->committed_round, 12);
}

TEST_F(ServerCutsTest, NoCutIsPreparedInTheMidstOfARound) {
  servers_[1].Block(&ParameterControl::CommitRound, true);
  std::vector<std::string> events;
  std::thread commits([&] {
    EXPECT_EQ(group_.rounds()->Commit({12, 3, 4}, stop_, [&] { events.emplace_back("committed"); }),
              absl::OkStatus());
  });
  servers_[0].AwaitCount(&ParameterControl::CommitRound, 1);
  std::thread cuts([&] {
    const auto cut = group_.cuts()->Prepare([&] { events.emplace_back("cut"); }, {});
    EXPECT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(cut->committed_round, 12);
  });
  servers_[1].Block(&ParameterControl::CommitRound, false);
  commits.join();
  cuts.join();
  EXPECT_THAT(events, ElementsAre("committed", "cut"));
}

TEST_F(ServerCutsTest, WriteSnapshotReportsWhoCouldNot) {
  servers_[0].FailSnapshots(1);
  const auto written = group_.cuts()->Write({kCut}, 0, 3, {});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(written.status().message()), HasSubstr("ps-0: no space"));
}

}  // namespace
}  // namespace keelson
