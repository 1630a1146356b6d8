#include "chief/servers/adoption.h"

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ExpectedShards kExpected = {.config_hash = 0xabc, .placement_fingerprint = 0xf1};
constexpr uint64_t kJob = 77;

v1::PersistedJobState StateAt(uint64_t version, uint64_t job_id = kJob) {
  v1::PersistedJobState persisted;
  persisted.mutable_job()->set_job_id(job_id);
  persisted.mutable_job()->set_state_version(version);
  persisted.mutable_job()->set_global_step(static_cast<int64_t>(version) * 10);
  persisted.add_members()->set_incarnation(5);
  persisted.add_leases()->set_lease_id(6);
  persisted.set_member_epoch(4);
  persisted.set_snapshot_step(0);
  return persisted;
}

v1::JobState SnapshotAt(uint64_t version, uint64_t job_id = kJob) {
  v1::JobState state = StateAt(version, job_id).job();
  return state;
}

class AdoptionTest : public testing::Test {
 protected:
  AdoptionTest() : servers_(2) {
    for (uint32_t s = 0; s < 2; ++s) {
      servers_[s].set_state(v1::ShardStatus::READY);
      servers_[s].set_config_hash(kExpected.config_hash);
      servers_[s].set_placement_fingerprint(kExpected.placement_fingerprint);
      servers_[s].set_shard(s);
      Remember(s, StateAt(10));
    }
  }
  void Remember(size_t s, const v1::PersistedJobState& persisted) {
    servers_[s].set_job_state(persisted.SerializeAsString());
    servers_[s].set_job_state_version(persisted.job().state_version());
  }
  void Restart(size_t s) {
    servers_[s].Clear();
    servers_[s].set_state(v1::ShardStatus::EMPTY);
  }
  Adoption Decide() const { return DecideAdoption(kExpected, servers_, snapshot_); }
  std::string WhyNot() const {
    const Adoption decision = Decide();
    EXPECT_FALSE(decision.adopted);
    return decision.reason;
  }

  std::vector<v1::ShardStatus> servers_;
  std::optional<v1::JobState> snapshot_ = SnapshotAt(4);
};

TEST_F(AdoptionTest, ARunningJobIsAdopted) {
  const Adoption decision = Decide();
  ASSERT_TRUE(decision.adopted) << decision.reason;
  EXPECT_THAT(decision.keeps, ElementsAre(true, true));
  EXPECT_EQ(decision.persisted.SerializeAsString(), StateAt(10).SerializeAsString());
  EXPECT_FALSE(decision.from_snapshot);
  EXPECT_THAT(decision.reason,
              HasSubstr("at step 100: 2 of 2 servers keep their shards, 1 members"));
}

TEST_F(AdoptionTest, AStateOfALaterTermIsNewerWhateverItsVersion) {
  Remember(1, StateAt(900));
  servers_[1].set_job_state_term(5);
  servers_[0].set_job_state_term(6);
  EXPECT_EQ(Decide().persisted.job().state_version(), 10u);
  servers_[1].set_state(v1::ShardStatus::EMPTY);
  EXPECT_EQ(Decide().persisted.job().state_version(), 10u);
}

TEST_F(AdoptionTest, TheNewestStateCounts) {
  Remember(1, StateAt(12));
  EXPECT_EQ(Decide().persisted.job().state_version(), 12u);
  // Also that of a server which was restarted since, and got it before its shard.
  servers_[1].set_state(v1::ShardStatus::EMPTY);
  const Adoption decision = Decide();
  EXPECT_EQ(decision.persisted.job().state_version(), 12u);
  EXPECT_THAT(decision.keeps, ElementsAre(true, false));
}

TEST_F(AdoptionTest, AServerThatIsEmptyOrBeingMadeIsRestored) {
  Restart(0);
  EXPECT_THAT(Decide().keeps, ElementsAre(false, true));
  servers_[0].set_state(v1::ShardStatus::INITIALIZING);
  EXPECT_THAT(Decide().keeps, ElementsAre(false, true));
}

TEST_F(AdoptionTest, EmptyServersStartOver) {
  Restart(0);
  Restart(1);
  EXPECT_EQ(WhyNot(), "no server holds its shard of this job");
}

TEST_F(AdoptionTest, ShardsOfAnotherKindStartOver) {
  for (v1::ShardStatus& server : servers_) server.set_placement_fingerprint(0xf2);
  EXPECT_EQ(WhyNot(),
            "the model is held in other shards than the 2 of this cluster, and goes on from the "
            "newest snapshot");
}

TEST_F(AdoptionTest, TheStepOfAJobIsThatOfItsNewestStateOrRound) {
  Remember(1, StateAt(12));
  EXPECT_EQ(StepOfJob(servers_, kJob), 120);
  servers_[0].set_committed_round(124);
  EXPECT_EQ(StepOfJob(servers_, kJob), 125);
  EXPECT_EQ(StepOfJob(servers_, kJob + 1), 0);
  Restart(0);
  EXPECT_EQ(StepOfJob(servers_, kJob), 120);
}

TEST_F(AdoptionTest, AShardThatIsNotTheServersOwnIsRestored) {
  servers_[0].set_shard(1);
  EXPECT_THAT(Decide().keeps, ElementsAre(false, true));
  servers_[1].set_config_hash(0xdef);
  EXPECT_EQ(WhyNot(), "no server holds its shard of this job");
}

// As that of a process that was frozen while another one served the shard.
TEST_F(AdoptionTest, AShardThatMissedRoundsIsRestored) {
  servers_[0].set_committed_round(12);
  servers_[1].set_committed_round(11);
  EXPECT_THAT(Decide().keeps, ElementsAre(true, true)) << "the newest round is taken over";
  servers_[1].set_committed_round(10);
  EXPECT_THAT(Decide().keeps, ElementsAre(true, false));
}

// Asynchronous steps have no rounds, so the first round after them follows on none.
TEST_F(AdoptionTest, AShardThatHasPushesOfTheNewestRoundIsKept) {
  for (v1::ShardStatus& server : servers_) server.set_open_round(12);
  servers_[0].set_committed_round(12);
  for (const int64_t before : {-1, 5}) {
    servers_[1].set_committed_round(before);
    EXPECT_THAT(Decide().keeps, ElementsAre(true, true));
  }
  servers_[1].set_open_round(11);
  EXPECT_THAT(Decide().keeps, ElementsAre(true, false));
}

TEST_F(AdoptionTest, WithoutAnyStateItStartsOver) {
  for (v1::ShardStatus& server : servers_) server.clear_job_state();
  EXPECT_EQ(WhyNot(), "no server holds a job state");
  servers_[0].set_job_state("\xff\xff");
  EXPECT_EQ(WhyNot(), "no server holds a job state");
}

TEST_F(AdoptionTest, AShardWithoutStateIsKeptBesideOneThatHasIt) {
  servers_[0].clear_job_state();
  const Adoption decision = Decide();
  EXPECT_THAT(decision.keeps, ElementsAre(true, true));
  EXPECT_EQ(decision.persisted.job().state_version(), 10u);
}

TEST_F(AdoptionTest, AnotherJobThanTheSnapshotsStartsOver) {
  snapshot_ = SnapshotAt(4, kJob + 1);
  EXPECT_EQ(WhyNot(), "the servers hold another job than that of the newest snapshot");
}

TEST_F(AdoptionTest, AServerOfAnotherJobIsRestored) {
  Remember(0, StateAt(99, kJob + 1));
  const Adoption decision = Decide();
  ASSERT_TRUE(decision.adopted);
  EXPECT_THAT(decision.keeps, ElementsAre(false, true));
  EXPECT_EQ(decision.persisted.job().state_version(), 10u);
}

TEST_F(AdoptionTest, WithoutSnapshotTheServersSayWhichJobItIs) {
  snapshot_.reset();
  EXPECT_THAT(Decide().keeps, ElementsAre(true, true));
  Remember(0, StateAt(99, kJob + 1));
  EXPECT_THAT(Decide().keeps, ElementsAre(true, false)) << "the newest";
}

TEST_F(AdoptionTest, AnImportedSnapshotFitsWhoeverWentOnFromIt) {
  snapshot_.emplace().set_global_step(300);
  EXPECT_THAT(WhyNot(), HasSubstr("another job"));
  for (size_t s = 0; s < 2; ++s) {
    v1::PersistedJobState persisted = StateAt(10);
    persisted.set_snapshot_step(300);
    Remember(s, persisted);
  }
  EXPECT_TRUE(Decide().adopted);
}

TEST_F(AdoptionTest, ASnapshotNewerThanTheStateHasTheLedger) {
  snapshot_ = SnapshotAt(11);
  const Adoption decision = Decide();
  ASSERT_TRUE(decision.adopted);
  EXPECT_TRUE(decision.from_snapshot);
  EXPECT_EQ(decision.persisted.job().global_step(), 110);
  EXPECT_EQ(decision.persisted.snapshot_step(), 110);
  EXPECT_EQ(decision.persisted.leases_size(), 0);
  EXPECT_EQ(decision.persisted.members_size(), 1);
  EXPECT_EQ(decision.persisted.member_epoch(), 4u);
}

}  // namespace
}  // namespace keelson
