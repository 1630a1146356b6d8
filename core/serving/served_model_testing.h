// A job whose model is a table of one number for each user, for tests of serving it.
#ifndef KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_
#define KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_

#include <cstdint>
#include <string>

#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/table_testing.h"
#include "core/config/train_config.h"
#include "gtest/gtest.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// A user without a row has 0; the probability of a click follows from the number.
class ServedJob {
 public:
  // `data` is that of the configuration, and the model's feature.
  explicit ServedJob(const std::string& data = "data { generated_clicks {} }") {
    auto config = ParseTrainConfig(
        R"(model {
             name: "clicks"
             features { name: "user" id {} }
             tables { name: "users" dim: 1 }
             layers { name: "score" inputs: "user" embedding { table: "users" } }
             loss { kind: SIGMOID_CROSS_ENTROPY label: "clicked" }
           }
           initial_values { groups { variables: "users" constant { value: 0 } } }
           learning_rate { base: 0.5 }
           optimizer { sgd {} }
           train { batch_size: 4 max_steps: 20 seed: 5 } )" +
            data + " checkpoint { model_dir: \"" + directory_ + "\" }",
        "job");
    EXPECT_TRUE(config.ok()) << config.status();
    config_ = *std::move(config);
    EXPECT_EQ(FinalizeTrainConfig(&config_), absl::OkStatus());
  }

  const v1::TrainConfig& config() const { return config_; }

  // A snapshot in which this user has this number.
  void Commit(int64_t step, float number, uint64_t user = 7) {
    TestTable table;
    table.spec = {"users", 1, {}};
    table.seed = 5;
    table.rows[user] = {{number}, {}, 1, 1};
    WriteTables(FileSystem::Real(), snapshots_.SnapshotPrefix(step), {table}, 1);
    EXPECT_EQ(snapshots_.Commit(step, RetentionPolicy()), absl::OkStatus());
  }
  void Damage(int64_t step) {
    const std::string index = snapshots_.SnapshotPrefix(step) + ".index";
    WriteRawFile(index, Flipped(ReadRawFile(index), 20));
  }

 private:
  const std::string directory_ = FreshDirectory();
  v1::TrainConfig config_;
  CheckpointDirectory snapshots_{FileSystem::Real(), directory_, Clock::Real()};
};

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_
