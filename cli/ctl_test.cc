#include "cli/ctl.h"

#include <sstream>
#include <string>

#include "core/cluster/consistency.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/services/faulty_chief_service.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class FakeChief : public FaultyChiefService {
 public:
  absl::Status GetJobStatus(const v1::GetJobStatusRequest&, v1::JobStatus* response) override {
    *response = status;
    return error;
  }
  absl::Status SetMode(const v1::SetModeRequest& request, v1::SetModeResponse* response) override {
    *response->mutable_previous() = status.mode();
    *status.mutable_mode() = request.mode();
    return error;
  }
  absl::Status EndTraining(const v1::EndTrainingRequest& request,
                           v1::EndTrainingResponse*) override {
    if (status.end_reason().empty()) status.set_end_reason(request.reason());
    return error;
  }

  v1::JobStatus status;
  absl::Status error;
};

class CtlTest : public testing::Test {
 protected:
  CtlTest() {
    v1::JobStatus& status = chief_.status;
    status.set_phase(v1::TRAINING);
    status.set_step(250);
    status.set_max_steps(1000);
    status.set_epoch(1.5);
    status.set_loss(0.125);
    status.set_snapshot_step(200);
    AddMember(v1::ROLE_WORKER, 1, true);
    AddMember(v1::ROLE_WORKER, 0, true);
    AddMember(v1::ROLE_WORKER, 2, false);
    AddMember(v1::ROLE_EVALUATOR, 0, true);
  }

  void AddMember(v1::Role role, uint32_t index, bool alive) {
    v1::MemberStatus* member = chief_.status.add_members();
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
    member->set_incarnation(0xabc);
    member->set_peer("host:1");
  }
  void SetCurrent(const char* mode) {
    *chief_.status.mutable_mode() = ConsistencyMode::Parse(mode)->ToProto();
  }

  FakeChief chief_;
  std::ostringstream out_;
};

TEST_F(CtlTest, StatusIsReadable) {
  SetCurrent("ssp:4");
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  const std::string text = out_.str();
  EXPECT_THAT(text, HasSubstr("phase     TRAINING\n"));
  EXPECT_THAT(text, HasSubstr("step      250 of 1000 (25.0 %)\n"));
  EXPECT_THAT(text, HasSubstr("mode      ssp:4\n"));
  EXPECT_THAT(text, HasSubstr("snapshot  of step 200\n"));
  EXPECT_THAT(text, HasSubstr("worker-0     alive  2         40     2560      0.50 (3)         "
                              "5        cpu     host:1  0000000000000abc\n"));
  EXPECT_THAT(text, HasSubstr("worker-2     lost   2         0      0         -                "
                              "0        -       host:1  0000000000000abc\n"));
  EXPECT_THAT(text, HasSubstr("evaluator-0  alive  2         -      -         -                "
                              "-        -       host:1  0000000000000abc\n"));
  EXPECT_LT(text.find("worker-0"), text.find("worker-1"));
  EXPECT_EQ(text.find("error"), std::string::npos);
}

TEST_F(CtlTest, StatusTellsOfTheServers) {
  v1::ServerStatus* server = chief_.status.add_servers();
  server->mutable_task()->set_role(v1::ROLE_PS);
  server->set_state("restoring");
  server->set_restarts(1);
  server->set_shard_step(250);
  server->set_value_bytes(3 << 20);
  server->set_slot_bytes(3 << 19);
  server->set_clients(2);
  server->set_address("ps-0:2222");
  server->set_incarnation(0xb);
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("ps-0  restoring  1         250   3.0 MiB  1.5 MiB  2        ps-0:2222  "
                        "000000000000000b\n"));
}

TEST_F(CtlTest, TheEndIsTheFirstOneThatWasAskedFor) {
  ASSERT_TRUE(EndTraining(&chief_, "good enough", &out_).ok());
  ASSERT_TRUE(EndTraining(&chief_, "another reason", &out_).ok());
  EXPECT_EQ(out_.str(), "training ends early: good enough\ntraining ends early: good enough\n");
  out_.str("");
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("ends early  good enough\n"));
}

TEST_F(CtlTest, StatusOfAJobThatFailed) {
  chief_.status.Clear();
  chief_.status.set_phase(v1::FAILED);
  chief_.status.set_error("the loss is not finite");
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("error     the loss is not finite\n"));
  EXPECT_THAT(out_.str(), HasSubstr("mode      async\n"));
}

TEST_F(CtlTest, StatusTellsAModeThatIsToCome) {
  *chief_.status.mutable_next_mode() = ConsistencyMode::Parse("sync:2")->ToProto();
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("mode      async, then sync:2\n"));
  out_.str("");
  ASSERT_TRUE(PrintMode(&chief_, &out_).ok());
  EXPECT_EQ(out_.str(), "async, then sync:2\n");
}

TEST_F(CtlTest, StatusAsJson) {
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/true, &out_).ok());
  EXPECT_EQ(out_.str().find('\n'), out_.str().size() - 1);
  const auto json = nlohmann::json::parse(out_.str(), nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(json.is_discarded()) << out_.str();
  EXPECT_EQ(json["phase"], "TRAINING");
  EXPECT_EQ(json["step"], "250");
  EXPECT_EQ(json["members"].size(), 4u);
  EXPECT_EQ(json["members"][0]["task"]["role"], "ROLE_WORKER");
  EXPECT_EQ(json["members"][0]["push_retries"], "5");
  EXPECT_FALSE(json["members"][0].contains("figures"));
  // Also what has its default value.
  EXPECT_EQ(json["error"], "");
}

TEST_F(CtlTest, ModeIsPrinted) {
  ASSERT_TRUE(PrintMode(&chief_, &out_).ok());
  SetCurrent("sync:2/3");
  ASSERT_TRUE(PrintMode(&chief_, &out_).ok());
  EXPECT_EQ(out_.str(), "async\nsync:2/3\n");
}

TEST_F(CtlTest, ModeIsChanged) {
  for (const char* mode : {"ssp:4", "sync:2/3", "sync:1", "async"}) {
    ASSERT_TRUE(ChangeMode(&chief_, mode, &out_).ok()) << mode;
  }
  EXPECT_EQ(out_.str(), "async -> ssp:4\nssp:4 -> sync:2/3\nsync:2/3 -> sync:1\nsync:1 -> async\n");
}

TEST_F(CtlTest, SyncAloneIsAsManyAsThereAreWorkersAlive) {
  ASSERT_TRUE(ChangeMode(&chief_, "sync", &out_).ok());
  EXPECT_EQ(out_.str(), "async -> sync:2\n");
  out_.str("");
  AddMember(v1::ROLE_CHIEF, 0, true);
  ASSERT_TRUE(ChangeMode(&chief_, "sync", &out_).ok());
  EXPECT_EQ(out_.str(), "sync:2 -> sync:3\n");
  chief_.status.clear_members();
  const absl::Status status = ChangeMode(&chief_, "sync", &out_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected a worker that is alive"));
}

TEST_F(CtlTest, WhatIsNoModeIsRefused) {
  for (const char* mode : {"fast", "ssp", "ssp:-1", "sync:0", "sync:3/2", "sync:"}) {
    EXPECT_EQ(ChangeMode(&chief_, mode, &out_).code(), absl::StatusCode::kInvalidArgument) << mode;
  }
  EXPECT_FALSE(chief_.status.has_mode());
}

TEST_F(CtlTest, ErrorsOfTheChiefArePassedOn) {
  chief_.error = absl::FailedPreconditionError("the job does not train");
  EXPECT_EQ(PrintStatus(&chief_, false, &out_), chief_.error);
  EXPECT_EQ(PrintMode(&chief_, &out_), chief_.error);
  EXPECT_EQ(ChangeMode(&chief_, "async", &out_), chief_.error);
  EXPECT_EQ(ChangeMode(&chief_, "sync", &out_), chief_.error);
  EXPECT_EQ(EndTraining(&chief_, "x", &out_), chief_.error);
  EXPECT_EQ(out_.str(), "");
}

TEST(FindChiefTest, TheFlagCountsMore) {
  const std::string tf_config =
      R"({"cluster": {"chief": ["c:2222"], "ps": ["p:2222"], "worker": ["w:2222"]},)"
      R"( "task": {"type": "worker", "index": 0}})";
  EXPECT_EQ(*FindChief("other:1", tf_config), "other:1");
  EXPECT_EQ(*FindChief("", tf_config), "c:2222");
}

TEST(FindChiefTest, WorkerZeroLeadsWhereThereIsNoChief) {
  const std::string tf_config =
      R"({"cluster": {"ps": ["p:2222"], "worker": ["w0:2222", "w1:2222"]},)"
      R"( "task": {"type": "worker", "index": 1}})";
  EXPECT_EQ(*FindChief("", tf_config), "w0:2222");
}

TEST(FindChiefTest, WhatNamesNoChiefIsRefused) {
  const struct {
    const char* flag;
    std::optional<std::string> tf_config;
    const char* text;
  } cases[] = {
      {"", std::nullopt, "--chief: expected the chief's host:port, or a TF_CONFIG"},
      {"", "{}", "--chief: expected the chief's host:port, or a TF_CONFIG"},
      {"", "{", "TF_CONFIG: "},
      {"host", std::nullopt, "--chief: "},
  };
  for (const auto& c : cases) {
    const absl::Status status = FindChief(c.flag, c.tf_config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

}  // namespace
}  // namespace keelson
