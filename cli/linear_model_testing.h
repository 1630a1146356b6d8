// A model directory with a logistic regression whose weights are rows of a table, for tests.
#ifndef KEELSON_CLI_LINEAR_MODEL_TESTING_H_
#define KEELSON_CLI_LINEAR_MODEL_TESTING_H_

#include <string>

#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "gtest/gtest.h"

namespace keelson {

// The weights of the ids 1, 2 and 3 are 0.5, -1 and 2; a record of libsvm has the sum of them times
// its values as its score, others ids count 0.
class LinearModel {
 public:
  LinearModel() {
    WriteText("train_config.textproto", R"(
        model {
          name: "linear"
          features { name: "features" bag { weighted: true } }
          tables { name: "weights" dim: 1 }
          layers { name: "score" embedding_bag { table: "weights" combiner: SUM } }
          loss { kind: SIGMOID_CROSS_ENTROPY }
        }
        initial_values { groups { variables: "weights" constant { value: 0 } } }
        optimizer { sgd {} }
        learning_rate { base: 0.1 }
        data { libsvm {} data_dir: ")" + directory_ +
                                            R"(" train_files: "train" eval_files: "test" }
        train { batch_size: 2 max_steps: 10 seed: 3 })");
    WriteText("train", "1 1:1\n");
    WriteText("test", "1 1:1 3:2\n-1 2:1\n-1 9:4\n");
    TestTable table;
    table.spec = {"weights", 1, {}};
    table.seed = 3;
    table.rows[1] = {{0.5f}, {}, 1, 1};
    table.rows[2] = {{-1}, {}, 1, 1};
    table.rows[3] = {{2}, {}, 1, 1};
    WriteTables(FileSystem::Real(), snapshot(), {table}, 1);
  }

  std::string snapshot() const { return Path("model.ckpt-10"); }
  std::string Path(const std::string& name) const { return JoinPath(directory_, name); }
  void WriteText(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), text).ok());
  }

 private:
  const std::string directory_ = FreshDirectory();
};

}  // namespace keelson

#endif  // KEELSON_CLI_LINEAR_MODEL_TESTING_H_
