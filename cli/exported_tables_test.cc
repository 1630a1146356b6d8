#include "cli/exported_tables.h"

#include <cstring>
#include <map>
#include <sstream>

#include "cli/ckpt_export.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/table_testing.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExportedTablesTest : public testing::Test {
 protected:
  ExportedTablesTest() {
    options_.source = JoinPath(directory_, "model.ckpt-1");
    options_.out = JoinPath(directory_, "out");
    WriteTables(FileSystem::Real(), options_.source, {users_}, 2);
  }

  std::unique_ptr<TensorSource> Export(const std::string& format) {
    options_.format = format;
    options_.out = JoinPath(directory_, "out." + format);
    EXPECT_EQ(ExportTensors(options_, &out_), absl::OkStatus());
    auto opened = OpenTensorSource(options_.out);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  template <typename T>
  static std::vector<T> Values(TensorSource* source, const std::string& name) {
    const std::string bytes = source->Read(name).value_or("");
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  const std::string directory_ = FreshDirectory();
  const TestTable users_ = UsersTable(1000);
  ExportOptions options_;
  std::ostringstream out_;
};

TEST_F(ExportedTablesTest, KeysAndValuesAreTwoTensors) {
  for (const char* format : {"safetensors", "npz"}) {
    const auto exported = Export(format);
    EXPECT_THAT(NamesOf(exported->List()), ElementsAre("users/keys", "users/values"));
    const auto ids = Values<uint64_t>(exported.get(), "users/keys");
    const auto values = Values<float>(exported.get(), "users/values");
    ASSERT_EQ(ids.size(), 1000u);
    ASSERT_EQ(values.size(), 3000u);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = users_.rows.find(ids[i]);
      ASSERT_NE(row, users_.rows.end()) << ids[i];
      EXPECT_THAT(std::vector<float>(&values[3 * i], &values[3 * i] + 3),
                  testing::ElementsAreArray(row->second.values));
    }
  }
}

TEST_F(ExportedTablesTest, SlotsAndCountersOnDemand) {
  options_.slots = true;
  const auto exported = Export("safetensors");
  EXPECT_THAT(NamesOf(exported->List()),
              ElementsAre("users/Adagrad", "users/Sum", "users/keys", "users/last_step",
                          "users/updates", "users/values"));
  const auto ids = Values<uint64_t>(exported.get(), "users/keys");
  const auto sums = Values<float>(exported.get(), "users/Sum");
  const auto updates = Values<uint32_t>(exported.get(), "users/updates");
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(sums[i], users_.rows.at(ids[i]).slots[1][0]);
    EXPECT_EQ(updates[i], users_.rows.at(ids[i]).updates);
  }
}

TEST_F(ExportedTablesTest, ADeltaHasTheRowsOfItsBasesToo) {
  const std::string directory = FreshDirectory();
  const TestTable users = WriteUsersChain(FileSystem::Real(), directory);
  options_.source = JoinPath(directory, "model.ckpt-3");
  const auto exported = Export("npz");
  const auto ids = Values<uint64_t>(exported.get(), "users/keys");
  const auto values = Values<float>(exported.get(), "users/values");
  ASSERT_EQ(ids.size(), users.rows.size());
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(values[3 * i], users.rows.at(ids[i]).values[0]);
}

TEST_F(ExportedTablesTest, TextIsOfOneTableOfDim1) {
  options_.format = "text";
  EXPECT_EQ(ExportTensors(options_, &out_),
            absl::InvalidArgumentError("--format=text: table users: expected dim 1, found 3"));
  options_.table = "items";
  EXPECT_EQ(ExportTensors(options_, &out_),
            absl::InvalidArgumentError("--table: expected one of users, found \"items\""));
  options_.format = "npz";
  EXPECT_EQ(ExportTensors(options_, &out_),
            absl::InvalidArgumentError("--table: expected with --format=text alone"));
  EXPECT_FALSE(FileExists(options_.out));
}

}  // namespace
}  // namespace keelson
