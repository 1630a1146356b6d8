#include "cli/import_tables.h"

#include <map>
#include <sstream>

#include "cli/ckpt_export.h"
#include "cli/ckpt_import.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_testing.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

// Of a variable "dense/bias" and others, and of the tables "users" of dim 3 and "weights" of dim 1.
constexpr char kTablesConfig[] = R"pb(
  model {
    features {
      name: "user"
      bag {}
    }
    tables { name: "users" dim: 3 }
    tables { name: "weights" dim: 1 }
    layers {
      name: "wide"
      embedding_bag { table: "weights" combiner: SUM }
      inputs: "user"
    }
    layers {
      name: "deep"
      embedding_bag { table: "users" combiner: SUM }
      inputs: "user"
    }
    layers {
      name: "both"
      concat {}
      inputs: "wide"
      inputs: "deep"
    }
    layers {
      name: "dense"
      dense { units: 1 }
    }
    loss { kind: SIGMOID_CROSS_ENTROPY }
  }
  initial_values {
    groups {
      variables: "users"
      uniform { low: -0.5 high: 0.5 }
    }
  }
  optimizer { sgd {} }
  learning_rate { base: 0.5 }
  train { batch_size: 10 max_steps: 10 seed: 5 }
)pb";

class ImportTablesTest : public testing::Test {
 protected:
  ImportTablesTest() {
    options_.source = JoinPath(directory_, "source.npz");
    options_.model_dir = JoinPath(directory_, "model");
    options_.config_path = JoinPath(directory_, "config.textproto");
    options_.initialize_missing = true;
    WriteRawConfig();
  }
  void WriteRawConfig() { ReplaceRawFile(options_.config_path, kTablesConfig); }

  absl::Status Import() { return ImportTensors(options_, &out_); }
  absl::Status ImportTensorsOf(MemoryTensors tensors) {
    EXPECT_EQ(WriteNpz(options_.source, tensors.List(), &tensors), absl::OkStatus());
    return Import();
  }

  // The rows of a table in the snapshot that was imported.
  std::map<uint64_t, TestRow> Rows(const std::string& table, int64_t step = 0) {
    const auto bundle =
        BundleReader::Open(JoinPath(options_.model_dir, "model.ckpt-" + std::to_string(step)));
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    const auto stored = StoredTables::Open(bundle->get());
    EXPECT_TRUE(stored.ok()) << stored.status();
    const StoredTable* const found = stored->Find(table);
    std::vector<std::string> missing;
    EXPECT_EQ(stored->CheckColumns(*found, {}, &missing), absl::OkStatus());
    seed_ = found->seed;
    initializer_ = found->spec.initializer;
    std::map<uint64_t, TestRow> rows;
    TableColumns columns;
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      EXPECT_EQ(stored->Read(*found, {}, p, &columns), absl::OkStatus());
      if (columns.rows() > 0) AddTestRows(columns, &rows);
    }
    return rows;
  }

  const std::string directory_ = FreshDirectory();
  ImportOptions options_;
  std::ostringstream out_;
  uint64_t seed_ = 0;
  Initializer initializer_;
};

// Ids of both ends of the range, in no order.
MemoryTensors UsersTensors(const std::string& keys, const std::string& values) {
  MemoryTensors tensors;
  tensors.AddValues<int64_t>(keys, BundleDtype::kInt64, Shape({3}), {7, -1, 0});
  tensors.AddValues<float>(values, BundleDtype::kFloat32, Shape({3, 3}),
                           {1, 2, 3, 4, 5, 6, 7, 8, 9});
  return tensors;
}

TEST_F(ImportTablesTest, KeysAndValuesBecomeRows) {
  ASSERT_EQ(ImportTensorsOf(UsersTensors("users/keys", "users/values")), absl::OkStatus());
  const auto rows = Rows("users");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.at(7).values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(rows.at(~uint64_t{0}).values, (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(rows.at(0).values, (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(rows.at(7).updates, 0u);
  // What a server asks for when it restores.
  EXPECT_EQ(seed_, 5u);
  EXPECT_EQ(initializer_, (Initializer{Initializer::Kind::kUniform, -0.5f, 0.5f}));
  EXPECT_TRUE(Rows("weights").empty());
  EXPECT_THAT(out_.str(), HasSubstr("imported tables: 1 (users)\n"));
  EXPECT_THAT(out_.str(), HasSubstr("initial values: 3 (dense/kernel, dense/bias, weights)\n"));
}

TEST_F(ImportTablesTest, DeepRecsNamesAreKnown) {
  MemoryTensors tensors = UsersTensors("emb/user-keys", "emb/user-values");
  tensors.AddValues<int64_t>("emb/user-versions", BundleDtype::kInt64, Shape({3}), {90, 100, -1});
  tensors.AddValues<int64_t>("emb/user-freqs", BundleDtype::kInt64, Shape({3}), {9, 1, 1});
  options_.renames = {"emb/user=users"};
  options_.step = 100;
  ASSERT_EQ(ImportTensorsOf(std::move(tensors)), absl::OkStatus());
  const auto rows = Rows("users", 100);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.at(0).values, (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(rows.at(7).last_step, 90u);
  EXPECT_EQ(rows.at(~uint64_t{0}).last_step, 99u);  // no later than the job is
  EXPECT_EQ(rows.at(0).last_step, 0u);
  EXPECT_THAT(out_.str(), HasSubstr("left out: 1 (emb/user-freqs)\n"));
}

// A part of the rows must not pass for all of them, nor for none.
TEST_F(ImportTablesTest, PartsOfADeepRecVariableAreRefused) {
  for (const char* rename : {"", "emb/user=users"}) {
    const std::string name = *rename == '\0' ? "users" : "emb/user";
    options_.renames.clear();
    if (*rename != '\0') options_.renames = {rename};
    const absl::Status status =
        ImportTensorsOf(UsersTensors(name + "/part_0-keys", name + "/part_0-values"));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("users expected one tensor of ids, found " + name +
                          "/part_0-keys of a partitioned variable, whose parts are not put "
                          "together; --map"));
  }
}

TEST_F(ImportTablesTest, WhatWasExportedComesBack) {
  const TestTable users = UsersTable(1000);
  ExportOptions to;
  to.source = JoinPath(directory_, "model.ckpt-1");
  WriteTables(FileSystem::Real(), to.source, {users}, 3);
  for (const char* format : {"safetensors", "npz"}) {
    to.format = format;
    to.out = options_.source = JoinPath(directory_, std::string("out.") + format);
    options_.model_dir = JoinPath(directory_, format);
    ASSERT_EQ(ExportTensors(to, &out_), absl::OkStatus());
    ASSERT_EQ(Import(), absl::OkStatus());
    const auto rows = Rows("users");
    ASSERT_EQ(rows.size(), users.rows.size());
    for (const auto& [id, row] : users.rows) EXPECT_EQ(rows.at(id).values, row.values) << id;
  }
}

TEST_F(ImportTablesTest, ASnapshotsTablesAreTakenAsTheyAreOrUnderAnotherName) {
  const TestTable users = UsersTable(1000);
  options_.source = JoinPath(directory_, "model.ckpt-1");
  WriteTables(FileSystem::Real(), options_.source, {users}, 2);
  options_.config_path.clear();
  options_.initialize_missing = false;
  ASSERT_EQ(Import(), absl::OkStatus());
  auto rows = Rows("users");
  ASSERT_EQ(rows.size(), users.rows.size());
  EXPECT_EQ(seed_, users.seed);
  for (const auto& [id, row] : users.rows) EXPECT_EQ(rows.at(id).values, row.values) << id;

  TestTable others = users;
  others.spec.name = "people";
  WriteTables(FileSystem::Real(), options_.source, {others}, 2);
  options_.config_path = JoinPath(directory_, "config.textproto");
  options_.initialize_missing = true;
  options_.renames = {"people=users"};
  options_.model_dir = JoinPath(directory_, "renamed");
  ASSERT_EQ(Import(), absl::OkStatus());
  rows = Rows("users");
  ASSERT_EQ(rows.size(), users.rows.size());
  for (const auto& [id, row] : users.rows) EXPECT_EQ(rows.at(id).values, row.values) << id;
}

TEST_F(ImportTablesTest, ADeltasRowsComeWithThoseOfItsBases) {
  const TestTable users = WriteUsersChain(FileSystem::Real(), directory_);
  options_.source = JoinPath(directory_, "model.ckpt-3");
  ASSERT_EQ(Import(), absl::OkStatus());
  const auto rows = Rows("users");
  ASSERT_EQ(rows.size(), users.rows.size());
  for (const auto& [id, row] : users.rows) EXPECT_EQ(rows.at(id).values, row.values) << id;
}

TEST_F(ImportTablesTest, TextBecomesTheModelsTableOfDim1) {
  options_.source = JoinPath(directory_, "weights.txt");
  ReplaceRawFile(options_.source, "7:0.5\n18446744073709551615:-2\n");
  ASSERT_EQ(Import(), absl::OkStatus());
  const auto rows = Rows("weights");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.at(7).values, (std::vector<float>{0.5f}));
  EXPECT_EQ(rows.at(~uint64_t{0}).values, (std::vector<float>{-2}));
  options_.table = "users";
  options_.model_dir += "2";
  EXPECT_EQ(Import(),
            absl::InvalidArgumentError(
                "the source does not fit the model's tables: users expected users/values float32 "
                "[2, 3], found float32 [2, 1]; --map old=new renames one"));
}

TEST_F(ImportTablesTest, ValuesAreConvertedAndWarnedOf) {
  MemoryTensors tensors;
  tensors.AddValues<int64_t>("users/keys", BundleDtype::kInt64, Shape({1}), {7});
  tensors.AddValues<double>("users/values", BundleDtype::kFloat64, Shape({1, 3}), {1e300, 2, 3});
  ASSERT_EQ(ImportTensorsOf(std::move(tensors)), absl::OkStatus());
  EXPECT_EQ(Rows("users").at(7).values[1], 2);
  EXPECT_THAT(out_.str(), HasSubstr("warning: users: 1 of 3 elements are too large for float32"));
}

struct BadInput {
  const char* what;
  MemoryTensors tensors;
  const char* text;
};

TEST_F(ImportTablesTest, BadInputIsOneLineAndLeavesNothing) {
  std::vector<BadInput> inputs;
  inputs.push_back({"an id twice", MemoryTensors(),
                    "tensor 'users/keys': expected distinct ids, found 7 twice"});
  inputs.back().tensors.AddValues<int64_t>("users/keys", BundleDtype::kInt64, Shape({2}), {7, 7});
  inputs.back().tensors.AddValues<float>("users/values", BundleDtype::kFloat32, Shape({2, 3}),
                                         {1, 2, 3, 4, 5, 6});
  inputs.push_back({"another number of rows", MemoryTensors(),
                    "users expected users/values float32 [1, 3], found float32 [2, 3]"});
  inputs.back().tensors.AddValues<int64_t>("users/keys", BundleDtype::kInt64, Shape({1}), {7});
  inputs.back().tensors.AddValues<float>("users/values", BundleDtype::kFloat32, Shape({2, 3}),
                                         {1, 2, 3, 4, 5, 6});
  inputs.push_back({"ids of another type", MemoryTensors(),
                    "users expected users/keys int64 [n], found float32 [1]"});
  inputs.back().tensors.AddValues<float>("users/keys", BundleDtype::kFloat32, Shape({1}), {7});
  inputs.back().tensors.AddValues<float>("users/values", BundleDtype::kFloat32, Shape({1, 3}),
                                         {1, 2, 3});
  for (const BadInput& input : inputs) {
    const absl::Status status = ImportTensorsOf(input.tensors);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << input.what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(input.text)) << input.what;
    EXPECT_FALSE(FileExists(JoinPath(options_.model_dir, "model.ckpt-0.index"))) << input.what;
  }
}

TEST_F(ImportTablesTest, TablesThatAreMissingAreNamed) {
  options_.initialize_missing = false;
  const absl::Status status = ImportTensorsOf(UsersTensors("users/keys", "users/values"));
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "the source does not fit the model's tables: weights is missing; --map "
                        "old=new renames one"));
}

TEST_F(ImportTablesTest, WithoutAConfigurationNobodySaysTheInitialValues) {
  options_.config_path.clear();
  options_.initialize_missing = false;
  EXPECT_EQ(ImportTensorsOf(UsersTensors("u-keys", "u-values")),
            absl::InvalidArgumentError("the tensors 'u-keys' and 'u-values' are an embedding "
                                       "table's: --config says what it starts new rows with"));
  options_.table = "users";
  EXPECT_EQ(Import(),
            absl::InvalidArgumentError("--table: expected with a SOURCE that is a text alone"));
  options_.source = JoinPath(directory_, "w.txt");
  ReplaceRawFile(options_.source, "1:1\n");
  options_.table.clear();
  EXPECT_EQ(Import(), absl::InvalidArgumentError("--table: expected the name of a table of dim 1 "
                                                 "of the model of --config"));
}

}  // namespace
}  // namespace keelson
