// A job whose model is a table of one number for each user, for tests of serving it.
#ifndef KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_
#define KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
    users_ = {user};
    newest_ = Name(step);
    WriteTables(FileSystem::Real(), snapshots_.SnapshotPrefix(step), {table}, 1, nullptr,
                {newest_});
    EXPECT_EQ(snapshots_.Commit(step, RetentionPolicy()), absl::OkStatus());
  }
  // A delta on the snapshot before, in which these users have these numbers, and this one lost its
  // row.
  void CommitDelta(int64_t step, const std::map<uint64_t, float>& numbers,
                   std::optional<uint64_t> erased = std::nullopt) {
    TestTable table;
    table.spec = {"users", 1, {}};
    table.seed = 5;
    for (const auto& [user, number] : numbers) {
      table.rows[user] = {{number}, {}, 1, 1};
      users_.insert(user);
    }
    TestLink link = {Name(step), newest_, {}, {{}}};
    if (erased.has_value()) {
      users_.erase(*erased);
      link.erased[0].insert(*erased);
    }
    link.all = {users_};
    newest_ = link.name;
    WriteTables(FileSystem::Real(), snapshots_.SnapshotPrefix(step), {table}, 1, nullptr, link);
    EXPECT_EQ(snapshots_.Commit(step, RetentionPolicy()), absl::OkStatus());
  }
  void Damage(int64_t step) {
    const std::string index = snapshots_.SnapshotPrefix(step) + ".index";
    WriteRawFile(index, Flipped(ReadRawFile(index), 20));
  }

 private:
  static v1::SnapshotBase Name(int64_t step) {
    return TestSnapshotName(step, 100 + static_cast<uint64_t>(step));
  }

  const std::string directory_ = FreshDirectory();
  v1::TrainConfig config_;
  v1::SnapshotBase newest_;
  std::set<uint64_t> users_;  // that have rows in it
  CheckpointDirectory snapshots_{FileSystem::Real(), directory_, Clock::Real()};
};

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_SERVED_MODEL_TESTING_H_
