// What the model directory tells of the configuration with which its model was trained last.
#include "chief/lifecycle/chief_run_testing.h"
#include "core/base/file.h"
#include "core/checkpoint/job_file.h"
#include "core/config/train_config.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigInUseTest : public ChiefRunTest {
 protected:
  // The next chief has this configuration, and owns the directory.
  void Own(const std::string& hash, double learning_rate) {
    chief_ = nullptr;
    options_.owner = nullptr;
    options_.config.mutable_learning_rate()->set_base(learning_rate);
    DirectoryOwner::Options owner;
    owner.model_dir = model_dir();
    owner.self.set_owner(options_.incarnation + 1);
    owner.self.set_lease_seconds(20);
    owner.self.set_config_hash(hash);
    owner.renew_pause = absl::InfiniteDuration();
    auto taken = DirectoryOwner::Take(std::move(owner), FileSystem::Real(), &clock_, stop_.get());
    ASSERT_TRUE(taken.ok()) << taken.status();
    options_.owner = *std::move(taken);
  }
  std::string model_dir() const { return options_.config.checkpoint().model_dir(); }
  std::string HashInFile() {
    const auto stored = ReadJobFile(FileSystem::Real(), model_dir());
    EXPECT_TRUE(stored.ok() && stored->has_value()) << stored.status();
    return (*stored)->job.config_hash();
  }
  double LearningRateInFile() {
    const std::string path = JoinPath(model_dir(), "train_config.textproto");
    const auto text = ReadFile(path);
    EXPECT_TRUE(text.ok()) << text.status();
    const auto config = ParseTrainConfig(*text, path);
    EXPECT_TRUE(config.ok()) << config.status();
    return config->learning_rate().base();
  }
};

TEST_F(ConfigInUseTest, OneWhoseSnapshotTheServersRefuseIsNotTheModels) {
  Own("trained", 0.25);
  Complete();
  EXPECT_EQ(HashInFile(), "trained");
  EXPECT_EQ(LearningRateInFile(), 0.25);
  Own("refused", 0.5);
  for (FakeParameterServer& server : servers_) server.Restart();
  servers_[1].Answer(&ParameterControl::Initialize, [](const auto&, auto*) {
    return absl::InvalidArgumentError("the snapshot has another shape of w");
  });
  Start();
  const absl::Status status = Wait();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("another shape of w"));
  options_.owner = nullptr;
  chief_ = nullptr;
  EXPECT_EQ(HashInFile(), "trained");
  EXPECT_EQ(LearningRateInFile(), 0.25);
}

TEST_F(ConfigInUseTest, AnAcceptedOneIsTheModelsOnceItIsRestored) {
  Own("trained", 0.25);
  Complete();
  Own("accepted", 0.5);
  options_.config.mutable_train()->set_max_steps(20);
  for (FakeParameterServer& server : servers_) server.Restart();
  Start();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(HashInFile(), "accepted");
  Kill();
  EXPECT_EQ(LearningRateInFile(), 0.5);
}

TEST_F(ConfigInUseTest, AServerOfAnotherConfigurationLeavesNothingBehind) {
  Own("other", 0.5);
  servers_[1].SetConfigHash(FakeParameterServer::kConfigHash + 1);
  Start();
  EXPECT_EQ(Wait().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(HashInFile(), IsEmpty());
  EXPECT_FALSE(FileExists(JoinPath(model_dir(), "train_config.textproto")));
}

// Otherwise a chief that dies in between would leave a model of an unknown configuration.
TEST_F(ConfigInUseTest, TheFileTellsOfItBeforeTheFirstSnapshotIsThere) {
  Own("new", 0.25);
  servers_[0].FailSnapshots(1'000'000);
  Start();
  servers_[0].AwaitSnapshots(1);
  EXPECT_THAT(SnapshotSteps(), IsEmpty());
  EXPECT_EQ(HashInFile(), "new");
}

TEST_F(ConfigInUseTest, AChiefThatAdoptsItsJobTellsOfItToo) {
  Own("", 0.25);
  Start();
  AwaitPhase(service(), v1::TRAINING);
  AwaitStored();
  Kill();
  Own("of the job that runs", 0.25);
  Start();
  AwaitPhase(service(), v1::TRAINING);
  EXPECT_EQ(servers_[0].initializations().size(), 1u) << "it keeps its shard";
  EXPECT_EQ(HashInFile(), "of the job that runs");
}

}  // namespace
}  // namespace keelson
