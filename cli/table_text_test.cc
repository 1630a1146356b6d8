#include "cli/table_text.h"

#include <limits>
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

TestTable Weights() {
  TestTable table;
  table.spec = {"weights", 1, {}};
  table.rows[7].values = {0.1f};
  table.rows[~uint64_t{0}].values = {-0.0f};
  table.rows[0].values = {std::numeric_limits<float>::denorm_min()};
  table.rows[12].values = {1e-38f};
  return table;
}

TEST(TableTextTest, WritesALineForEachIdAndReadsTheSameBits) {
  ExportOptions options;
  options.source = JoinPath(FreshDirectory(), "model.ckpt-1");
  options.out = options.source + ".txt";
  options.format = "text";
  WriteTables(FileSystem::Real(), options.source, {Weights()}, 2);
  std::ostringstream out;
  ASSERT_EQ(ExportTensors(options, &out), absl::OkStatus());
  EXPECT_EQ(*ReadFile(options.out),
            "0:1.40129846e-45\n7:0.100000001\n12:9.99999935e-39\n18446744073709551615:-0\n");
  const auto read = OpenTableText(options.out, "w");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(NamesOf((*read)->List()), testing::ElementsAre("w/keys", "w/values"));
  const uint64_t ids[] = {0, 7, 12, ~uint64_t{0}};
  EXPECT_EQ(*(*read)->Read("w/keys"),
            absl::string_view(reinterpret_cast<const char*>(ids), sizeof(ids)));
  const float values[] = {std::numeric_limits<float>::denorm_min(), 0.1f, 1e-38f, -0.0f};
  EXPECT_EQ(*(*read)->Read("w/values"),
            absl::string_view(reinterpret_cast<const char*>(values), sizeof(values)));
}

TEST(TableTextTest, ABadLineIsNamed) {
  const std::string path = JoinPath(FreshDirectory(), "w.txt");
  for (const char* line : {"7", "7 0.5", "-1:0.5", "7:x", "18446744073709551616:1", "x:1"}) {
    ReplaceRawFile(path, std::string("1:0.5\n\n") + line + "\n2:1\n");
    EXPECT_EQ(OpenTableText(path, "w").status(),
              absl::InvalidArgumentError(path + ":3: expected ID:VALUE, found \"" + line + "\""));
  }
}

}  // namespace
}  // namespace keelson
