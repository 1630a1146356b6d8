#include "chief/lifecycle/model_owner.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/job_file.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ModelOwnerTest : public testing::Test {
 protected:
  ModelOwnerTest() {
    v1::TrainConfig config = *ParseTrainConfig(DefaultTrainConfigText(), "default");
    config.mutable_checkpoint()->set_model_dir("/model");
    EXPECT_TRUE(FinalizeTrainConfig(&config).ok());
    context_.self = {Role::kChief, 0};
    context_.cluster.self = context_.self;
    context_.cluster.chief = {{0, "mnist-chief-0.default.svc:2222"}};
    context_.peer = "host-1:17";
    context_.incarnation = 7;
    Configure(config);
  }

  void Configure(const v1::TrainConfig& config) {
    context_.config = config;
    context_.config_hash = ConfigHash(config);
  }

  // A chief that takes the directory and ends without having trained.
  absl::Status TakeAndEnd(OwnershipOptions options = {}) {
    const auto owner = TakeModelDirectory(context_, options, &files_, &clock_, &stop_);
    return owner.status();
  }
  // One that has trained.
  absl::Status TakeAndTrain(OwnershipOptions options = {}) {
    const auto owner = TakeModelDirectory(context_, options, &files_, &clock_, &stop_);
    if (owner.ok()) (*owner)->NoteConfigInUse();
    return owner.status();
  }

  static v1::TrainConfig WithATable() {
    v1::TrainConfig config = *ParseTrainConfig(
        "model { features { name: 'ids' bag {} } tables { name: 'user_table' dim: 4 } "
        "layers { inputs: 'ids' embedding_bag { table: 'user_table' } } layers { dense { units: 2 "
        "} } "
        "loss { kind: SOFTMAX_CROSS_ENTROPY } } optimizer { sgd {} } learning_rate { base: .1 } "
        "train { batch_size: 8 max_steps: 9 } checkpoint { model_dir: '/model' save_steps: 3 }",
        "with a table");
    EXPECT_EQ(FinalizeTrainConfig(&config), absl::OkStatus());
    return config;
  }
  static void AddGroup(const std::string& variables, PlacementGroup::Place on,
                       v1::TrainConfig* config) {
    PlacementGroup* const group = config->mutable_placement()->add_groups();
    group->set_variables(variables);
    group->set_on(on);
  }

  void AddSnapshot() {
    files_.SetContent("/model/checkpoint", "model_checkpoint_path: \"model.ckpt-10\"\n");
  }

  RoleContext context_;
  MemoryFileSystem files_;
  ManualClock clock_;
  StopSignal stop_;
};

TEST_F(ModelOwnerTest, SaysWhoItIs) {
  const auto owner = TakeModelDirectory(context_, {}, &files_, &clock_, &stop_);
  ASSERT_TRUE(owner.ok()) << owner.status();
  const v1::JobFile job = (*ReadJobFile(&files_, "/model"))->job;
  EXPECT_THAT(DescribeOwner(job), HasSubstr("job mnist, chief-0 on host-1 (pid "));
  EXPECT_NE(job.owner(), context_.incarnation);
  EXPECT_EQ(job.lease_seconds(), 20);
  EXPECT_EQ((*owner)->term(), 1u);
  EXPECT_EQ(job.config_hash(), "");
  (*owner)->NoteConfigInUse();
  ASSERT_EQ((*owner)->Confirm(), absl::OkStatus());
  EXPECT_EQ((*ReadJobFile(&files_, "/model"))->job.config_hash(),
            HashToString(context_.config_hash));
}

TEST_F(ModelOwnerTest, TheSameConfigurationGoesOn) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  v1::TrainConfig config = context_.config;
  config.mutable_data()->set_data_dir("/elsewhere");
  Configure(config);
  EXPECT_EQ(TakeAndEnd(), absl::OkStatus());
}

TEST_F(ModelOwnerTest, AnotherOneIsRefusedWithTheDifference) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  v1::TrainConfig config = context_.config;
  const int64_t batch = config.train().batch_size();
  config.mutable_train()->set_batch_size(batch + 1);
  config.mutable_train()->set_max_steps(12345);
  Configure(config);
  const absl::Status status = TakeAndEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("checkpoint.model_dir /model"),
            HasSubstr(absl::StrCat("train.batch_size: expected ", batch, ", found ", batch + 1)),
            HasSubstr("train.max_steps"), HasSubstr("--accept_new_config")));
  EXPECT_EQ(TakeAndEnd({.accept_new_config = true}), absl::OkStatus());
  EXPECT_EQ(TakeAndEnd().code(), absl::StatusCode::kFailedPrecondition)
      << "nothing was trained with it";
  EXPECT_EQ(TakeAndTrain({.accept_new_config = true}), absl::OkStatus());
  // From then on that is the model's configuration.
  EXPECT_EQ(TakeAndEnd(), absl::OkStatus());
}

TEST_F(ModelOwnerTest, WhereNothingWasTrainedSinceTheFileWasMadeAnyConfigurationGoesOn) {
  ASSERT_EQ(TakeAndEnd(), absl::OkStatus());
  AddSnapshot();
  v1::TrainConfig config = context_.config;
  config.mutable_learning_rate()->set_base(0.5);
  Configure(config);
  EXPECT_EQ(TakeAndTrain(), absl::OkStatus());
}

TEST_F(ModelOwnerTest, AModelMayBeTrainedForLonger) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  v1::TrainConfig config = context_.config;
  config.mutable_train()->set_max_steps(config.train().max_steps() + 100);
  Configure(config);
  EXPECT_EQ(TakeAndEnd(), absl::OkStatus());
}

// A snapshot restores wherever its variables are, so the placement is not what was trained.
TEST_F(ModelOwnerTest, AModelMayBeTrainedOnWhereItsVariablesArePlacedOtherwise) {
  const v1::TrainConfig on_servers = WithATable();
  Configure(on_servers);
  v1::TrainConfig hybrid = on_servers;
  AddGroup("*table*", PlacementGroup::PS, &hybrid);
  AddGroup("*", PlacementGroup::WORKERS, &hybrid);
  v1::TrainConfig kernels_on_workers = on_servers;
  AddGroup("*kernel", PlacementGroup::WORKERS, &kernels_on_workers);
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  for (const v1::TrainConfig& config : {hybrid, kernels_on_workers, hybrid, on_servers}) {
    ASSERT_NE(ConfigHash(config), context_.config_hash);
    Configure(config);
    EXPECT_EQ(TakeAndTrain(), absl::OkStatus());
  }
}

TEST_F(ModelOwnerTest, AnotherPlacementHidesNoOtherDifference) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  v1::TrainConfig config = context_.config;
  AddGroup("*kernel", PlacementGroup::WORKERS, &config);
  config.mutable_learning_rate()->set_base(0.5);
  Configure(config);
  const absl::Status status = TakeAndEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("learning_rate.base"));
}

TEST_F(ModelOwnerTest, ADirectoryWithoutSnapshotsTakesAnyConfiguration) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  v1::TrainConfig config = context_.config;
  config.mutable_learning_rate()->set_base(0.5);
  Configure(config);
  EXPECT_EQ(TakeAndEnd(), absl::OkStatus());
}

TEST_F(ModelOwnerTest, AConfigurationThatThisBuildCannotReadIsAnother) {
  ASSERT_EQ(TakeAndTrain(), absl::OkStatus());
  AddSnapshot();
  v1::JobFile job = (*ReadJobFile(&files_, "/model"))->job;
  job.set_config("unheard_of { }");
  job.set_config_hash("0123456789abcdef");
  files_.SetContent("/model/JOB", FormatJobFile(job));
  const absl::Status status = TakeAndEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("0123456789abcdef"), HasSubstr("unheard_of")));
}

TEST_F(ModelOwnerTest, WithoutADirectoryNothingCanBeOwned) {
  v1::TrainConfig config = context_.config;
  config.mutable_checkpoint()->clear_model_dir();
  Configure(config);
  const absl::Status status = TakeAndEnd();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--model_dir"));
}

}  // namespace
}  // namespace keelson
