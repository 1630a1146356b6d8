#include "cli/job_status_text.h"

#include "core/cluster/consistency.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using testing::HasSubstr;

class JobStatusTextTest : public testing::Test {
 protected:
  JobStatusTextTest() {
    status_.set_phase(v1::TRAINING);
    status_.set_step(250);
    status_.set_max_steps(1000);
    status_.set_epoch(1.5);
    status_.set_loss(0.125);
    status_.set_snapshot_step(200);
    AddMember(v1::ROLE_WORKER, 1, true);
    AddMember(v1::ROLE_WORKER, 0, true);
    AddMember(v1::ROLE_WORKER, 2, false);
    AddMember(v1::ROLE_EVALUATOR, 0, true);
  }

  void AddMember(v1::Role role, uint32_t index, bool alive) {
    v1::MemberStatus* member = status_.add_members();
    member->mutable_task()->set_role(role);
    member->mutable_task()->set_index(index);
    member->set_alive(alive);
    member->set_state(alive ? "alive" : "lost");
    member->set_restarts(2);
    if (role == v1::ROLE_WORKER && alive) {
      member->mutable_figures()->set_steps(40);
      member->mutable_figures()->set_examples(2560);
      member->mutable_figures()->set_staleness_sum(20);
      member->mutable_figures()->set_staleness_max(3);
      member->mutable_figures()->set_push_retries(5);
      member->set_device("cpu");
    }
    member->set_peer("host:1");
  }

  v1::JobStatus status_;
};

TEST_F(JobStatusTextTest, AStreamHasAPositionAndNoEpoch) {
  status_.set_max_steps(0);
  status_.mutable_stream()->set_file("part-2");
  status_.mutable_stream()->set_done_records(120);
  status_.mutable_stream()->set_known_records(240);
  std::string text = JobStatusText(status_);
  EXPECT_THAT(text, HasSubstr("step      250\n"));
  EXPECT_THAT(text, HasSubstr("stream    120 of 240 records are done, at part-2; more may come\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("epoch")));
  status_.mutable_stream()->set_ended(true);
  EXPECT_THAT(JobStatusText(status_), HasSubstr("; no more will come"));
}

TEST_F(JobStatusTextTest, IsATableOfTheMembers) {
  *status_.mutable_mode() = ConsistencyMode::Parse("ssp:4")->ToProto();
  const std::string text = JobStatusText(status_);
  EXPECT_THAT(text, HasSubstr("phase     TRAINING\n"));
  EXPECT_THAT(text, HasSubstr("step      250 of 1000 (25.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("mode      ssp:4\n"));
  EXPECT_THAT(text, HasSubstr("snapshot  of step 200\n"));
  EXPECT_THAT(text, HasSubstr("worker-0     alive  2         40     2560      0.50 (3)         "
                              "5        cpu     host:1\n"));
  EXPECT_THAT(text, HasSubstr("worker-2     lost   2         0      0         -                "
                              "0        -       host:1\n"));
  EXPECT_THAT(text, HasSubstr("evaluator-0  alive  2         -      -         -                "
                              "-        -       host:1\n"));
  EXPECT_LT(text.find("worker-0"), text.find("worker-1"));
  EXPECT_EQ(text.find("error"), std::string::npos);
}

TEST_F(JobStatusTextTest, TellsOfTheServers) {
  v1::ServerStatus* server = status_.add_servers();
  server->mutable_task()->set_role(v1::ROLE_PS);
  server->set_state("restoring");
  server->set_restarts(1);
  server->set_shard_step(250);
  server->set_value_bytes(3 << 20);
  server->set_slot_bytes(3 << 19);
  server->set_clients(2);
  server->set_address("ps-0:2222");
  EXPECT_THAT(JobStatusText(status_),
              HasSubstr("ps-0  restoring  1         250   3.0 MiB  1.5 MiB  2        ps-0:2222\n"));
}

TEST_F(JobStatusTextTest, NamesTheTasksThatHostShards) {
  v1::ServerStatus* server = status_.add_servers();
  server->mutable_task()->set_role(v1::ROLE_PS);
  server->mutable_task()->set_index(2);
  server->mutable_host()->set_role(v1::ROLE_WORKER);
  server->mutable_host()->set_index(1);
  server->set_state("alive");
  EXPECT_THAT(JobStatusText(status_), HasSubstr("\nshard-2 of worker-1  alive "));
}

TEST_F(JobStatusTextTest, TellsOfTheTables) {
  EXPECT_EQ(JobStatusText(status_).find("max/mean"), std::string::npos);
  for (const int64_t rows : {1000, 3000}) {
    v1::TablePartStatus* const table = status_.add_servers()->add_tables();
    table->set_name("users");
    table->set_rows(rows);
    table->set_bytes(1 << 20);
    table->set_refused_rows(7);
    table->set_ghosts(2);
    table->set_expired_rows(5);
    table->set_looked_up(rows);
    table->set_looked_up_absent(250);
  }
  EXPECT_THAT(JobStatusText(status_),
              HasSubstr("\ntable  rows  memory   ghosts  admitted  expired  evicted  refused rows  "
                        "without a row  max/mean of servers\n"
                        "users  4000  2.0 MiB  4       0         10       0        14            "
                        "12.5%          1.50\n"));
}

TEST_F(JobStatusTextTest, TellsWhyTheJobFailed) {
  status_.Clear();
  status_.set_phase(v1::FAILED);
  status_.set_error("the loss is not finite");
  EXPECT_THAT(JobStatusText(status_), HasSubstr("error     the loss is not finite\n"));
  EXPECT_THAT(JobStatusText(status_), HasSubstr("mode      async\n"));
}

TEST_F(JobStatusTextTest, JsonHasEveryField) {
  const std::string text = JobStatusJson(status_);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << text;
  EXPECT_EQ(json["phase"], "TRAINING");
  EXPECT_EQ(json["step"], "250");
  EXPECT_EQ(json["members"].size(), 4u);
  EXPECT_EQ(json["members"][0]["task"]["role"], "ROLE_WORKER");
  EXPECT_EQ(json["members"][0]["push_retries"], "5");
  EXPECT_FALSE(json["members"][0].contains("figures"));
  // Also what has its default value.
  EXPECT_EQ(json["error"], "");
}

}  // namespace
}  // namespace keelson
