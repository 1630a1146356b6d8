#include <sstream>

#include "cli/data/data_commands.h"
#include "core/base/file_system_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(NoParquetSummaryTest, SaysWhatReadsParquet) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectories("/d").ok());
  files.SetContent("/d/a", "PAR1 and more");
  ProposalOptions options;
  options.file.path = "/d/a";
  std::ostringstream out;
  for (const absl::Status& status : {PrintStatistics({"/d/a"}, 0, &files, &out),
                                     PrintStatistics({"/d/a", "parquet"}, 0, &files, &out),
                                     PrintProposal(options, &files, &out)}) {
    EXPECT_EQ(status.message(),
              "/d/a: expected a build that reads Parquet, found one without it: run "
              "deploy/install_parquet.sh, and build again");
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace keelson
