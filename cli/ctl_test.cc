#include "cli/ctl.h"

#include <sstream>

#include "cli/job_status_text.h"
#include "core/cluster/consistency.h"
#include "gmock/gmock.h"
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

  absl::Status SaveSnapshot(const v1::SaveSnapshotRequest&,
                            v1::SaveSnapshotResponse* response) override {
    response->set_step(status.step());
    return error;
  }

  v1::JobStatus status;
  absl::Status error;
};

class CtlTest : public testing::Test {
 protected:
  CtlTest() {
    AddMember(v1::ROLE_WORKER, true);
    AddMember(v1::ROLE_WORKER, true);
    AddMember(v1::ROLE_WORKER, false);
    AddMember(v1::ROLE_EVALUATOR, true);
  }

  void AddMember(v1::Role role, bool alive) {
    v1::MemberStatus* member = chief_.status.add_members();
    member->mutable_task()->set_role(role);
    member->set_alive(alive);
  }
  void SetCurrent(const char* mode) {
    *chief_.status.mutable_mode() = ConsistencyMode::Parse(mode)->ToProto();
  }

  FakeChief chief_;
  std::ostringstream out_;
};

TEST_F(CtlTest, TheEndIsTheFirstOneThatWasAskedFor) {
  ASSERT_TRUE(EndTraining(&chief_, "good enough", &out_).ok());
  ASSERT_TRUE(EndTraining(&chief_, "another reason", &out_).ok());
  EXPECT_EQ(out_.str(), "training ends early: good enough\ntraining ends early: good enough\n");
  out_.str("");
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("ends early  good enough\n"));
}

TEST_F(CtlTest, ItIsSaidThatWorkersAreMissing) {
  chief_.status.set_missing_workers(2);
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("waits for  2 more tasks to train\n"));
}

TEST_F(CtlTest, TheStepOfASnapshotIsPrinted) {
  chief_.status.set_step(42);
  ASSERT_TRUE(SaveSnapshot(&chief_, &out_).ok());
  EXPECT_EQ(out_.str(), "snapshot of step 42\n");
}

TEST_F(CtlTest, StatusIsPrintedAsTextOrJson) {
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_EQ(out_.str(), JobStatusText(chief_.status));
  out_.str("");
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/true, &out_).ok());
  EXPECT_EQ(out_.str(), JobStatusJson(chief_.status) + "\n");
}

TEST_F(CtlTest, TheModeThatIsToComeIsPrinted) {
  *chief_.status.mutable_next_mode() = ConsistencyMode::Parse("sync:2")->ToProto();
  ASSERT_TRUE(PrintStatus(&chief_, /*json=*/false, &out_).ok());
  EXPECT_THAT(out_.str(), HasSubstr("mode      async, then sync:2\n"));
  out_.str("");
  ASSERT_TRUE(PrintMode(&chief_, &out_).ok());
  EXPECT_EQ(out_.str(), "async, then sync:2\n");
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
  AddMember(v1::ROLE_CHIEF, true);
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
  EXPECT_EQ(SaveSnapshot(&chief_, &out_), chief_.error);
  EXPECT_EQ(out_.str(), "");
}

TEST(FindChiefTest, TheFlagCountsMore) {
  const std::string tf_config =
      R"({"cluster": {"chief": ["c:2222"], "ps": ["p:2222"], "worker": ["w:2222"]},)"
      R"( "task": {"type": "worker", "index": 0}})";
  EXPECT_EQ(*FindChief("other:1", {tf_config}), "other:1");
  EXPECT_EQ(*FindChief("", {tf_config}), "c:2222");
}

TEST(FindChiefTest, WorkerZeroLeadsWhereThereIsNoChief) {
  const std::string tf_config =
      R"({"cluster": {"ps": ["p:2222"], "worker": ["w0:2222", "w1:2222"]},)"
      R"( "task": {"type": "worker", "index": 1}})";
  EXPECT_EQ(*FindChief("", {tf_config}), "w0:2222");
}

TEST(FindChiefTest, RankZeroLeadsWhereProcessesAreNumbered) {
  ClusterEnvironment environment;
  environment.ranks.variables = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}, {"MASTER_PORT", "23456"}};
  EXPECT_EQ(*FindChief("", environment), "m:23456");
  environment.tf_config = R"({"cluster": {"worker": ["w0:2222"]},)"
                          R"( "task": {"type": "worker", "index": 0}})";
  EXPECT_EQ(*FindChief("", environment), "w0:2222");
  // The chief of a dynamic job is not in it, and is not that of another launcher.
  environment.tf_config = R"({"cluster": {"worker": {}, "ps": []},)"
                          R"( "task": {"type": "chief", "index": 0}})";
  EXPECT_EQ(FindChief("", environment).status().code(), absl::StatusCode::kInvalidArgument);
  environment.tf_config.reset();
  environment.ranks.variables["MASTER_PORT"] = "x";
  EXPECT_THAT(std::string(FindChief("", environment).status().message()), HasSubstr("MASTER_PORT"));
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
    const absl::Status status = FindChief(c.flag, {c.tf_config}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

}  // namespace
}  // namespace keelson
