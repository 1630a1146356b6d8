// The rules of the search that look at snapshots, and at members and chiefs whose time is over.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/shard_state.h"
#include "core/wire/bulk_messages.h"
#include "gtest/gtest.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/chief_service.pb.h"
#include "tests/search/copies_rule.h"
#include "tests/search/fencing_rule.h"
#include "tests/search/handing_rule.h"
#include "tests/search/snapshot_rule.h"
#include "tests/search/waiting_rule.h"

namespace keelson {
namespace {

constexpr char kPrefix[] = "/model.ckpt-1";

class SnapshotRuleTest : public testing::Test {
 protected:
  SnapshotRuleTest() {
    job_.set_committed_round(4);
    for (v1::ShardState& shard : shards_) {
      shard.set_committed_round(4);
      shard.add_blocks();
    }
  }

  // What is wrong with a snapshot of these states, of a job with one worker.
  std::string Check() {
    auto writer = BundleDataWriter::Create(&files_, DataPath(kPrefix, 0, 1), 0);
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ((*writer)->AddString(kJobStateName, job_.SerializeAsString()), absl::OkStatus());
    for (size_t s = 0; s < 2; ++s) {
      EXPECT_EQ((*writer)->AddString(ShardStateName(s, 2), shards_[s].SerializeAsString()),
                absl::OkStatus());
    }
    auto entries = (*writer)->Finish();
    EXPECT_TRUE(entries.ok()) << entries.status();
    EXPECT_EQ(WriteBundleIndexTo(&files_, IndexPath(kPrefix), 1, *std::move(entries)),
              absl::OkStatus());
    return CheckWritten();
  }
  std::string CheckWritten() {
    const auto reader = BundleReader::Open(kPrefix, &files_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return CheckSnapshot(**reader, 2, 1);
  }
  static void AddRun(v1::ShardState::Applied* member, uint32_t begin) {
    v1::ShardState::Applied::Run* const run = member->add_runs();
    run->set_begin(begin);
    run->set_end(begin + 1);
    run->set_sequence(1);
  }

  MemoryFileSystem files_;
  v1::JobState job_;
  v1::ShardState shards_[2];
};

TEST_F(SnapshotRuleTest, HoldsPartsToBeOfOneRound) {
  EXPECT_EQ(Check(), "");
  shards_[1].set_committed_round(3);
  EXPECT_NE(Check(), "");
  shards_[0].set_committed_round(3);
  EXPECT_NE(Check(), "") << "the job state counts a round that no part has";
}

TEST_F(SnapshotRuleTest, NoticesDamage) {
  EXPECT_EQ(Check(), "");
  const std::string path = DataPath(kPrefix, 0, 1);
  std::string content = *ReadFile(path, &files_);
  content[content.size() / 2] ^= 1;
  files_.SetContent(path, content);
  EXPECT_NE(CheckWritten(), "");
}

TEST_F(SnapshotRuleTest, NoticesSequencesThatGrow) {
  v1::ShardState::Applied* const member = shards_[0].add_applied();
  member->set_incarnation(1);
  AddRun(member, 0);
  EXPECT_EQ(Check(), "");
  shards_[0].add_applied()->set_incarnation(2);
  EXPECT_NE(Check(), "") << "of a worker that is over";
}

TEST_F(SnapshotRuleTest, CountsPartitionsOfRowsAsUnits) {
  v1::ShardState::Applied* const member = shards_[0].add_applied();
  member->set_incarnation(1);
  shards_[0].set_num_row_partitions(1);
  AddRun(member, 0);
  AddRun(member, 1);
  EXPECT_EQ(Check(), "");
}

TEST(FencingRule, HoldsAReplacedChiefToCommitNothing) {
  FencingRule rule;
  rule.NoteOwner(1);
  rule.NoteOwner(2);
  rule.NoteWritten(1);
  EXPECT_EQ(rule.CheckCommit(1), "");
  EXPECT_EQ(rule.NoteObeyed(/*server=*/7, /*chief=*/2, rule.Now()), "");
  EXPECT_EQ(rule.CheckCommit(1), "") << "what it wrote before";
  rule.NoteWritten(1);
  EXPECT_NE(rule.CheckCommit(1), "");
  rule.NoteWritten(2);
  EXPECT_EQ(rule.CheckCommit(2), "");
  rule.NoteEnd(7);
  EXPECT_EQ(rule.CheckCommit(1), "") << "no server that lives has obeyed the other one";
}

TEST(FencingRule, HoldsAServerToObeyTheLatestChief) {
  FencingRule rule;
  rule.NoteOwner(1);
  rule.NoteOwner(2);
  const int64_t before = rule.Now();
  EXPECT_EQ(rule.NoteObeyed(7, 2, rule.Now()), "");
  EXPECT_EQ(rule.NoteObeyed(7, 1, before), "") << "a call that was under way";
  EXPECT_EQ(rule.NoteObeyed(8, 1, rule.Now()), "") << "another server";
  EXPECT_NE(rule.NoteObeyed(7, 1, rule.Now()), "");
}

TEST(FencingRule, KnowsNoOrderOfChiefsThatDoNotOwnTheDirectory) {
  FencingRule rule;
  rule.NoteOwner(1);
  EXPECT_EQ(rule.NoteObeyed(7, 2, rule.Now()), "");
  EXPECT_EQ(rule.NoteObeyed(7, 1, rule.Now()), "");
  rule.NoteOwner(2);
  EXPECT_EQ(rule.NoteObeyed(7, 2, rule.Now()), "");
  EXPECT_NE(rule.NoteObeyed(7, 1, rule.Now()), "");
}

TEST(WaitingRule, HoldsAProcessToAnswerInTime) {
  WaitingRule rule;
  const auto at = [](int64_t seconds) { return absl::Seconds(seconds); };
  rule.NoteBegin(/*call=*/1, /*process=*/7, "AcquireWork", absl::Seconds(10), at(0));
  rule.NoteBegin(2, 7, "Heartbeat", absl::Seconds(5), at(0));
  rule.NoteDone(2);
  EXPECT_EQ(rule.Check(at(8)), "");
  EXPECT_NE(rule.Check(at(9)), "");
  rule.NoteEnd(7);
  EXPECT_EQ(rule.Check(at(9)), "");
}

TEST(WaitingRule, DoesNotCountTimeInWhichAProcessStandsStill) {
  WaitingRule rule;
  rule.NoteBegin(1, 7, "AcquireWork", absl::Seconds(10), absl::ZeroDuration());
  rule.NotePaused(7, true, absl::Seconds(1));
  EXPECT_EQ(rule.Check(absl::Seconds(100)), "");
  rule.NotePaused(7, false, absl::Seconds(101));
  EXPECT_EQ(rule.Check(absl::Seconds(108)), "");
  EXPECT_NE(rule.Check(absl::Seconds(109)), "");
}

v1::AcquireWorkResponse LeaseOf(uint64_t id, int64_t step, int64_t begin) {
  v1::AcquireWorkResponse work;
  work.set_lease_id(id);
  v1::StepTicket* const ticket = work.add_tickets();
  ticket->set_step(step);
  ticket->mutable_records()->set_begin(begin);
  ticket->mutable_records()->set_end(begin + 1);
  return work;
}

BulkRequest PushOf(uint64_t incarnation, int64_t step) {
  BulkRequest push;
  push.incarnation = incarnation;
  push.step = step;
  push.ranges.resize(1);
  push.ranges[0].num_blocks = 2;
  return push;
}

TEST(HandingRule, HoldsWorkThatPassedOnToCountNoMore) {
  HandingRule rule;
  rule.NoteGranted(1, 10, LeaseOf(1, 5, 50));
  EXPECT_EQ(rule.NotePushed(PushOf(10, 5), {}), "");
  rule.NoteGranted(1, 11, LeaseOf(2, 5, 50));
  EXPECT_EQ(rule.NotePushed(PushOf(11, 5), {}), "");
  EXPECT_EQ(rule.NotePushed(PushOf(10, 4), {}), "");
  EXPECT_NE(rule.NotePushed(PushOf(10, 5), {}), "");
  BulkResponse applied_before;
  applied_before.duplicate_blocks = 2;
  EXPECT_EQ(rule.NotePushed(PushOf(10, 5), applied_before), "");
}

TEST(HandingRule, TakesLeasesInTheirOrder) {
  HandingRule rule;
  rule.NoteGranted(1, 11, LeaseOf(2, 5, 50));
  rule.NoteGranted(1, 10, LeaseOf(1, 5, 50));
  EXPECT_EQ(rule.NotePushed(PushOf(11, 5), {}), "") << "the other lease is an older one";
  rule.NoteGranted(2, 12, LeaseOf(1, 5, 50));
  EXPECT_NE(rule.NotePushed(PushOf(11, 5), {}), "") << "this one a later chief's";
}

// The thread that has applied it was not run until the chief had heard that it is refused now.
TEST(HandingRule, LetsAPushBeThatWasBegunBeforeItsWorkPassedOn) {
  HandingRule rule;
  rule.NoteGranted(1, 10, LeaseOf(1, 5, 50));
  const int64_t before = rule.now();
  rule.NoteGranted(1, 11, LeaseOf(2, 5, 50));
  EXPECT_EQ(rule.NotePushed(PushOf(10, 5), {}, before), "");
  EXPECT_NE(rule.NotePushed(PushOf(10, 5), {}, rule.now()), "");
}

TEST(HandingRule, LetsAMemberHaveWorkThatCameBack) {
  HandingRule rule;
  rule.NoteGranted(1, 10, LeaseOf(1, 5, 50));
  rule.NoteGranted(2, 11, LeaseOf(1, 5, 50));
  EXPECT_NE(rule.NotePushed(PushOf(10, 5), {}), "");
  rule.NoteGranted(2, 10, LeaseOf(2, 5, 50));
  EXPECT_EQ(rule.NotePushed(PushOf(10, 5), {}), "");
  EXPECT_NE(rule.NotePushed(PushOf(11, 5), {}), "");
}

TEST(HandingRule, LetsAMemberHaveAStepThatCameBackWithOtherRecords) {
  HandingRule rule;
  rule.NoteGranted(1, 10, LeaseOf(1, 5, 50));
  rule.NoteGranted(2, 11, LeaseOf(1, 6, 50));
  EXPECT_NE(rule.NotePushed(PushOf(10, 5), {}), "");
  rule.NoteGranted(2, 10, LeaseOf(2, 5, 51));
  EXPECT_EQ(rule.NotePushed(PushOf(10, 5), {}), "");
  rule.NoteGranted(2, 11, LeaseOf(3, 7, 51));
  EXPECT_NE(rule.NotePushed(PushOf(10, 5), {}), "");
}

// A shard whose home is process 10's.
class CopiesRuleTest : public testing::Test {
 protected:
  CopiesRuleTest() : rule_(1) { Call(10, "Initialize"); }

  void Call(int process, const char* what, bool done = true) {
    rule_.NoteCall(0, process, process == 10 || process == kBack, what, done);
  }
  bool Loses(int process) { return rule_.NoteLost(process, /*chief=*/false); }

  static constexpr int kBack = 20;  // that of the home when it has come back
  CopiesRule rule_;
};

TEST_F(CopiesRuleTest, WithoutAReplicaAShardEndsWithItsHost) {
  EXPECT_FALSE(Loses(11)) << "it has nothing";
  EXPECT_TRUE(Loses(10));
}

TEST_F(CopiesRuleTest, HoldsThatAHostWithAReplicaElsewhereTakesNothing) {
  Call(11, "ReplicateShard");
  EXPECT_FALSE(Loses(10));
  Call(11, "ChiefHeartbeat");
  EXPECT_TRUE(Loses(11)) << "it had the only copy then";
}

TEST_F(CopiesRuleTest, CountsTheReplicaThatAShardLeavesBehindAtHome) {
  Call(11, "ReplicateShard");
  EXPECT_FALSE(Loses(10));
  Call(11, "ChiefHeartbeat");
  Call(kBack, "ReplicateShard");
  Call(kBack, "ChiefHeartbeat");
  EXPECT_FALSE(Loses(11));
}

TEST_F(CopiesRuleTest, CountsNoHostThatDidNotAnswer) {
  Call(11, "ReplicateShard");
  Call(11, "ReplicateRound", false);
  EXPECT_TRUE(Loses(10));
}

TEST_F(CopiesRuleTest, CountsNoHostThatTheShardWasTakenFrom) {
  Call(11, "ReplicateShard");
  Call(11, "ChiefHeartbeat");
  EXPECT_TRUE(Loses(11)) << "what 10 has is old";
}

TEST_F(CopiesRuleTest, CountsNoHostThatHasDroppedTheShard) {
  Call(11, "ReplicateShard");
  Call(11, "ChiefHeartbeat");
  Call(10, "Finish");
  EXPECT_FALSE(Loses(10));
  EXPECT_TRUE(Loses(11));
}

TEST_F(CopiesRuleTest, CountsReplicasThatTheNewestChiefHasMade) {
  Call(11, "ReplicateShard");
  EXPECT_FALSE(rule_.NoteLost(1, /*chief=*/true));
  Call(10, "ChiefHeartbeat");
  Call(12, "ReplicateShard");
  EXPECT_FALSE(Loses(12));
  EXPECT_TRUE(Loses(10)) << "this chief knows of no replica at 11";
}

}  // namespace
}  // namespace keelson
