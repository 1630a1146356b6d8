#include "chief/proposal/job_proposals.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/base/thread.h"
#include "core/config/initial_values.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kProposedDir[] = "/models/a";
constexpr char kProposedLine[] = R"(
  model { name: "line" external { variables { name: "w" shape: 2 shape: 3 } variables { name: "b" } } }
  optimizer { sgd {} } learning_rate { base: 0.1 } data { external { train_records: 10 } }
  train { batch_size: 2 max_steps: 20 }
  initial_values { groups { variables: "*" from { path: "proposed" } } })";

v1::TrainConfig ProposedConfig(const std::string& text) {
  return ParseTrainConfig(text, "test").value();
}

v1::ProposeJobRequest ProposalOf(uint64_t id, const std::string& text, int64_t bytes) {
  v1::ProposeJobRequest request;
  request.set_proposal_id(id);
  *request.mutable_config() = ProposedConfig(text);
  request.set_initial_bytes(bytes);
  return request;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

class JobProposalsTest : public testing::Test {
 protected:
  absl::StatusOr<v1::ProposeJobResponse> Propose(const v1::ProposeJobRequest& request) {
    v1::ProposeJobResponse response;
    const absl::Status status = proposals_.Propose(request, &response);
    if (!status.ok()) return status;
    return response;
  }
  absl::StatusOr<v1::ProposeJobResponse> ProposePart(uint64_t id, int64_t bytes, int64_t offset,
                                                     const std::string& part) {
    v1::ProposeJobRequest request = ProposalOf(id, kProposedLine, bytes);
    request.set_offset(offset);
    request.set_part(part);
    return Propose(request);
  }
  ProposedJob Decided() {
    absl::StatusOr<std::optional<ProposedJob>> job = proposals_.Await(absl::ZeroDuration(), stop_);
    EXPECT_TRUE(job.ok() && job->has_value()) << job.status();
    return **std::move(job);
  }
  std::vector<std::string> Files() { return files_.List("/models/a/script").value_or(Names()); }
  // As far as the names in the directory go.
  void MakeSnapshot() {
    ASSERT_TRUE(files_.CreateDirectories(kProposedDir).ok());
    std::unique_ptr<AppendFile> state =
        files_.OpenForAppend(absl::StrCat(kProposedDir, "/checkpoint"), true).value();
    ASSERT_TRUE(state
                    ->Append("model_checkpoint_path: \"model.ckpt-5\"\n"
                             "all_model_checkpoint_paths: \"model.ckpt-5\"\n")
                    .ok());
    ASSERT_TRUE(state->Close().ok());
  }

  using Names = std::vector<std::string>;
  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal stop_;
  JobProposals proposals_{kProposedDir, &files_, &clock_};
};

TEST_F(JobProposalsTest, ValuesComeInPartsAndBecomeTheJobsOncePlaced) {
  EXPECT_EQ(ProposePart(7, 5, 0, "")->next_offset(), 0);
  const absl::StatusOr<v1::ProposeJobResponse> first = ProposePart(7, 5, 0, "abc");
  EXPECT_EQ(first->next_offset(), 3);
  EXPECT_FALSE(first->has_config());
  // The answer was lost.
  EXPECT_EQ(ProposePart(7, 5, 0, "abc")->next_offset(), 3);
  EXPECT_TRUE(ProposePart(7, 5, 3, "de")->has_config());
  const ProposedJob job = Decided();
  EXPECT_EQ(job.config.checkpoint().model_dir(), kProposedDir);
  EXPECT_THAT(Files(), ElementsAre("initial.safetensors.7"));
  ASSERT_TRUE(job.values->Place().ok());
  EXPECT_THAT(Files(), ElementsAre("initial.safetensors"));
  EXPECT_EQ(files_.ReadVersioned(ProposedValuesPath(kProposedDir), 100)->content, "abcde");
}

TEST_F(JobProposalsTest, ValuesOfAJobThatDoesNotBeginLeaveNothing) {
  ASSERT_TRUE(ProposePart(7, 3, 0, "abc")->has_config());
  { const ProposedJob job = Decided(); }
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(JobProposalsTest, AJobThatGoesOnWithASnapshotWantsNoValuesAgain) {
  MakeSnapshot();
  // Nobody has left values: those of constants are missing.
  EXPECT_FALSE(ProposePart(7, 3, 0, "")->has_config());
  ASSERT_TRUE(ProposePart(7, 3, 0, "abc")->has_config());
  ASSERT_TRUE(Decided().values->Place().ok());
  JobProposals later(kProposedDir, &files_, &clock_);
  v1::ProposeJobResponse response;
  ASSERT_TRUE(later.Propose(ProposalOf(8, kProposedLine, 3), &response).ok());
  EXPECT_TRUE(response.has_config());
  EXPECT_EQ((*later.Await(absl::ZeroDuration(), stop_))->values, nullptr);
}

TEST_F(JobProposalsTest, OnlyOneProposalComesInAtATimeUnlessItFallsSilent) {
  ASSERT_TRUE(ProposePart(7, 5, 0, "abc").ok());
  EXPECT_EQ(ProposePart(8, 2, 0, "xy").status().code(), absl::StatusCode::kUnavailable);
  clock_.Advance(JobProposals::kSilence + absl::Seconds(1));
  EXPECT_TRUE(ProposePart(8, 2, 0, "xy")->has_config());
  EXPECT_THAT(Files(), ElementsAre("initial.safetensors.8"));
}

TEST_F(JobProposalsTest, LaterProposalsAreComparedWithTheFirstOne) {
  ASSERT_TRUE(ProposePart(7, 1, 0, "a")->has_config());
  EXPECT_TRUE(Propose(ProposalOf(8, kProposedLine, 3))->has_config());
  EXPECT_TRUE(Propose(v1::ProposeJobRequest())->config().model().has_external());
  const std::string shape = Replaced(kProposedLine, "shape: 2", "shape: 4");
  EXPECT_EQ(Propose(ProposalOf(8, shape, 3)).status(),
            absl::FailedPreconditionError("variable 1: expected w [2, 3], found w [4, 3]: all "
                                          "scripts of a job describe the same one"));
  const std::string rate = Replaced(kProposedLine, "base: 0.1", "base: 0.5");
  EXPECT_EQ(
      Propose(ProposalOf(8, rate, 3)).status(),
      absl::FailedPreconditionError("learning_rate.base: expected 0.1, found 0.5: all scripts "
                                    "of a job describe the same one"));
  const std::string more = Replaced(kProposedLine, "variables { name: \"b\" }", "");
  EXPECT_THAT(Propose(ProposalOf(8, more, 3)).status().message(),
              HasSubstr("variable 2: expected b [], found none"));
}

TEST(AnswerProposalTest, AModeThatAScriptLeavesToTheClusterIsTheChiefs) {
  v1::TrainConfig config = ProposedConfig(kProposedLine);
  ASSERT_TRUE(FinalizeTrainConfig(&config).ok());
  config.mutable_consistency()->mutable_mode()->mutable_synchronous()->set_replicas_to_aggregate(3);
  v1::ProposeJobResponse response;
  EXPECT_TRUE(AnswerProposal(config, ProposalOf(8, kProposedLine, 3), &response).ok());
  v1::ProposeJobRequest other = ProposalOf(8, kProposedLine, 3);
  other.mutable_config()->mutable_consistency()->mutable_mode()->mutable_async();
  EXPECT_EQ(AnswerProposal(config, other, &response).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobProposalsTest, WhatMakesNoSenseIsRefused) {
  const auto refusal = [&](const v1::ProposeJobRequest& request) {
    const absl::Status status = Propose(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(ProposalOf(0, kProposedLine, 1)),
              HasSubstr("proposal_id: expected a random number"));
  EXPECT_THAT(refusal(ProposalOf(7, kProposedLine, 0)),
              HasSubstr("initial_bytes: expected those of a file"));
  EXPECT_THAT(refusal(ProposalOf(7, kProposedLine, -1)), HasSubstr("initial_bytes: expected >= 0"));
  EXPECT_THAT(refusal(ProposalOf(7, Replaced(kProposedLine, "batch_size: 2", "batch_size: -2"), 1)),
              HasSubstr("train.batch_size"));
  EXPECT_THAT(refusal(ProposalOf(7, DefaultTrainConfigText(), 1)),
              HasSubstr("model: expected external"));
  ASSERT_TRUE(ProposePart(7, 5, 0, "").ok());
  v1::ProposeJobRequest beyond = ProposalOf(7, kProposedLine, 5);
  beyond.set_part("abcdef");
  EXPECT_THAT(refusal(beyond), HasSubstr("part: expected the bytes from 0 on, at most 5, found 6"));
  beyond.set_offset(1);
  beyond.set_part("b");
  EXPECT_THAT(refusal(beyond), HasSubstr("found 1 from 1"));
  beyond.set_part(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(refusal(beyond), HasSubstr("part: expected at most 1048576 bytes"));
}

TEST_F(JobProposalsTest, WhoAsksBeforeThereIsAJobAsksAgain) {
  EXPECT_EQ(Propose(v1::ProposeJobRequest()).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(JobProposalsTest, WaitsForAProposalUntilItIsStopped) {
  EXPECT_EQ(*proposals_.Await(absl::ZeroDuration(), stop_), std::nullopt);
  absl::Status status;
  Thread waiting([&] { status = proposals_.Await(absl::InfiniteDuration(), stop_).status(); });
  stop_.Raise();
  waiting.Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace keelson
