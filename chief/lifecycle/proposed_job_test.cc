#include "chief/lifecycle/proposed_job.h"

#include <string>

#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/done_marker.h"
#include "core/checkpoint/job_file.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr char kDoneLine[] = R"(
  model { name: "line" external { variables { name: "w" } } }
  optimizer { sgd {} } learning_rate { base: 0.1 } data { external { train_records: 10 } }
  train { batch_size: 2 max_steps: 20 })";

class ProposedJobTest : public testing::Test {
 protected:
  ProposedJobTest() {
    context_.config.mutable_checkpoint()->set_model_dir(model_dir_);
    context_.config_from_script = true;
    config_ = ParseTrainConfig(kDoneLine, "test").value();
    EXPECT_TRUE(FinalizeTrainConfig(&config_).ok());
  }

  // As a chief leaves a job that it has finished.
  void MakeDoneJob() {
    v1::JobFile job;
    job.set_format(kJobFileFormat);
    job.set_term(1);
    job.set_lease_seconds(20);
    job.set_config_hash(HashToString(ConfigHash(config_)));
    job.set_config(kDoneLine);
    ASSERT_TRUE(
        FileSystem::Real()->ReplaceIf(JobFilePath(model_dir_), "", FormatJobFile(job)).ok());
    ASSERT_TRUE(WriteDoneMarker(FileSystem::Real(), model_dir_,
                                {.step = 20, .config_hash = ConfigHash(config_)})
                    .ok());
  }

  const std::string model_dir_ = FreshDirectory();
  RoleContext context_;
  v1::TrainConfig config_;
  StopSignal stop_;
};

TEST_F(ProposedJobTest, AJobThatIsDoneIsTakenUpWhereNoScriptComes) {
  MakeDoneJob();
  const absl::StatusOr<ProposedJob> job =
      AwaitProposedJob(context_, "127.0.0.1:0", "", &stop_, absl::ZeroDuration());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(ConfigHash(job->config), ConfigHash(config_));
  EXPECT_EQ(job->values, nullptr);
}

TEST_F(ProposedJobTest, IsStoppedWhileItWaits) {
  stop_.Raise();
  EXPECT_EQ(AwaitProposedJob(context_, "127.0.0.1:0", "", &stop_).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ProposedJobTest, NeedsAModelDirectory) {
  context_.config.mutable_checkpoint()->clear_model_dir();
  EXPECT_EQ(AwaitProposedJob(context_, "127.0.0.1:0", "", &stop_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace keelson
