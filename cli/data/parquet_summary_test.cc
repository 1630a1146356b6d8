#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/data/data_commands.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/config/train_config.h"
#include "core/data/parquet/parquet_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

class ParquetSummaryTest : public testing::Test {
 protected:
  ParquetSummaryTest() { WriteTestParquet(path_); }

  std::string Statistics(int64_t rows) {
    std::ostringstream out;
    const absl::Status status = PrintStatistics({path_}, rows, FileSystem::Real(), &out);
    return status.ok() ? out.str() : std::string(status.message());
  }

  const std::string path_ = JoinPath(FreshDirectory(), "a.parquet");
};

TEST_F(ParquetSummaryTest, Statistics) {
  EXPECT_EQ(
      Statistics(0),
      absl::StrCat(
          "5 rows of ", path_, "\n",
          "column  kind                   missing  distinct  min   median  max   mean  most "
          "frequent\n"
          "whole   whole                  20.0 %   2         1     1       2     1.25  1 (75.0 %), "
          "2 (25.0 %)\n"
          "number  number                 0.0 %    5         0.25  1.25    2.25  1.25\n"
          "text    text                   0.0 %    2         -     -       -     -     Oslo (60.0 "
          "%), Rome (40.0 %)\n"
          "list    list of whole          40.0 %   3         7     8       9     8     8 (50.0 %), "
          "7 (25.0 %), 9 (25.0 %)\n"
          "day     not read: date32[day]  -        -         -     -       -     -\n"));
  EXPECT_THAT(Statistics(3), HasSubstr("3 rows of"));
}

TEST_F(ParquetSummaryTest, AProposal) {
  ProposalOptions options;
  options.file.path = path_;
  options.label = "text";
  auto config = ProposeConfig(options, FileSystem::Real());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->data().has_parquet());
  EXPECT_TRUE(FinalizeTrainConfig(&*config).ok());
  EXPECT_EQ(config->data().labels(0).values(0), "Oslo");
}

TEST_F(ParquetSummaryTest, ADamagedFile) {
  ASSERT_TRUE(WriteFileAtomically(path_, "PAR1 and more").ok());
  EXPECT_THAT(Statistics(0),
              HasSubstr(": expected a Parquet file, found another or a damaged one"));
}

}  // namespace
}  // namespace keelson
