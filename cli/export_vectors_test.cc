#include "cli/export_vectors.h"

#include <cstring>
#include <sstream>
#include <vector>

#include "absl/strings/str_replace.h"
#include "cli/linear_model_testing.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/tensor_files/tensor_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

// User 1 has the row [1, 2], and a query is twice its user's row; item 5 has [3, 4], item 7
// [5, 6], and others zeros.
class ExportVectorsTest : public testing::Test {
 protected:
  ExportVectorsTest() {
    Write("train_config.textproto", absl::StrReplaceAll(R"(
        model {
          name: "towers"
          features { name: "user" id {} }
          features { name: "item" id {} }
          tables { name: "users" dim: 2 }
          tables { name: "items" dim: 2 }
          layers { name: "row" inputs: "user" embedding { table: "users" } }
          layers { name: "query" inputs: "row" scale { factor: 2 } }
          layers { name: "found" inputs: "item" embedding { table: "items" } }
          loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "found" label: "chosen" }
        }
        initial_values {
          groups { variables: "users" constant { value: 0 } }
          groups { variables: "items" constant { value: 0 } }
        }
        optimizer { sgd {} }
        learning_rate { base: 0.1 }
        data {
          csv {} data_dir: "DIR" train_files: "train" eval_files: "test"
          features { name: "user" columns { integer {} } }
          features { name: "item" columns { integer {} } }
        }
        train { batch_size: 2 max_steps: 10 seed: 3 })",
                                                        {{"DIR", directory_}}));
    Write("train", "user,item\n1,9\n");
    Write("test", "user,item\n1,7\n2,5\n1,5\n2,7\n");
    TestTable users, items;
    users.spec = {"users", 2, {}};
    users.rows[1] = {{1, 2}, {}, 1, 1};
    items.spec = {"items", 2, {}};
    items.rows[5] = {{3, 4}, {}, 1, 1};
    items.rows[7] = {{5, 6}, {}, 1, 1};
    users.seed = items.seed = 3;
    WriteTables(FileSystem::Real(), Path("model.ckpt-10"), {users, items}, 1);
    options_.snapshot = Path("model.ckpt-10");
    options_.out = Path("items.npz");
    options_.feature = "item";
  }

  std::string Path(const std::string& name) const { return JoinPath(directory_, name); }
  void Write(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(WriteFileAtomically(Path(name), text).ok());
  }
  void Export(const std::string& expected) const {
    std::ostringstream out;
    const absl::Status status = ExportVectors(options_, &out);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(out.str(), "wrote " + options_.out + ": " + expected + "\n");
  }
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    const auto source = OpenTensorSource(options_.out);
    EXPECT_TRUE(source.ok()) << source.status();
    const std::string bytes = (*source)->Read(name).value_or("");
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  void ExpectError(absl::StatusCode code, const std::string& message) const {
    std::ostringstream out;
    EXPECT_EQ(ExportVectors(options_, &out), absl::Status(code, message));
  }

  const std::string directory_ = FreshDirectory();
  VectorOptions options_;
};

TEST_F(ExportVectorsTest, OfTheItemsOfTheRecords) {
  for (const int64_t batch_size : {1, 3, 1000}) {
    options_.batch_size = batch_size;
    Export("2 vectors of 2");
    EXPECT_THAT(Read<int64_t>("ids"), ElementsAre(7, 5));
    EXPECT_THAT(Read<float>("vectors"), ElementsAre(5, 6, 3, 4));
    options_.force = true;
  }
  const auto source = OpenTensorSource(options_.out);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(TypeAndShape((*source)->List()[0]), "int64 [2]");
  EXPECT_EQ(TypeAndShape((*source)->List()[1]), "float32 [2, 2]");
}

TEST_F(ExportVectorsTest, OfQueriesAndOfOtherRecords) {
  options_.queries = true;
  options_.feature = "user";
  options_.out = Path("users.safetensors");
  Export("2 vectors of 2");
  EXPECT_THAT(Read<int64_t>("ids"), ElementsAre(1, 2));
  EXPECT_THAT(Read<float>("vectors"), ElementsAre(2, 4, 0, 0));
  options_.force = true;
  options_.records.train = true;
  Export("1 vectors of 2");
  Write("more", "user,item\n3,1\n4,1\n5,1\n");
  options_.records.files = {"more"};
  Export("3 vectors of 2");
  EXPECT_THAT(Read<int64_t>("ids"), ElementsAre(3, 4, 5));
}

TEST_F(ExportVectorsTest, WhatCannotBeWritten) {
  Write("items.npz", "");
  ExpectError(absl::StatusCode::kAlreadyExists,
              options_.out + ": exists already; --force replaces it");
  options_.out = Path("new.npz");
  options_.feature = "price";
  ExpectError(absl::StatusCode::kInvalidArgument,
              "--feature: expected a feature of the kind id (user, item), found \"price\"");
  options_.feature = "item";
  EXPECT_FALSE(FileExists(options_.out));
  const LinearModel linear;
  options_.snapshot = linear.snapshot();
  ExpectError(absl::StatusCode::kInvalidArgument,
              "expected a model with the loss IN_BATCH_SOFTMAX, found SIGMOID_CROSS_ENTROPY");
}

}  // namespace
}  // namespace keelson
