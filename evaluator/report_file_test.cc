#include "evaluator/report_file.h"

#include <gmock/gmock.h>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"

namespace keelson {
namespace {

TEST(ReportFileTest, ALaterReportOfTheStepReplacesIt) {
  const std::string model_dir = FreshDirectory();
  ASSERT_TRUE(WriteReport(model_dir, 7, "first\n").ok());
  const absl::Status status = WriteReport(model_dir, 7, "second\n");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(model_dir + "/eval/reports/7.json"), "second\n");
  EXPECT_EQ(ReportPath(model_dir, 7), model_dir + "/eval/reports/7.json");
}

TEST(ReportFileTest, KeepsTheNewestAndThoseAskedFor) {
  const std::string model_dir = FreshDirectory();
  const auto last = static_cast<int64_t>(kKeptReports) + 4;
  for (int64_t step = 1; step <= last; ++step) {
    ASSERT_TRUE(WriteReport(model_dir, step, "{}\n", {2}).ok());
  }
  ASSERT_TRUE(WriteReport(model_dir, 3, "{}\n", {2}).ok());
  for (int64_t step = 1; step <= last; ++step) {
    const bool kept = step == 2 || step == 3 || step > last - static_cast<int64_t>(kKeptReports);
    EXPECT_EQ(FileExists(ReportPath(model_dir, step)), kept) << step;
  }
}

TEST(ReportFileTest, LeavesOtherFilesAlone) {
  const std::string model_dir = FreshDirectory();
  for (int64_t step = 1; step <= 30; ++step) {
    ASSERT_TRUE(WriteReport(model_dir, step, "{}\n").ok());
    if (step > 1) continue;
    for (const char* name : {"/eval/reports/notes.json", "/eval/reports/1.txt"}) {
      ASSERT_TRUE(WriteFileAtomically(model_dir + name, "mine").ok());
    }
  }
  const auto names = ListDirectory(model_dir + "/eval/reports");
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->size(), kKeptReports + 2);
  EXPECT_THAT(*names, testing::IsSupersetOf({"notes.json", "1.txt", "30.json"}));
}

TEST(ReportFileTest, AModelDirectoryThatIsAFile) {
  const std::string model_dir = FreshDirectory() + "/file";
  ASSERT_TRUE(WriteFileAtomically(model_dir, "").ok());
  const absl::Status status = WriteReport(model_dir, 1, "{}\n");
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(model_dir));
}

}  // namespace
}  // namespace keelson
