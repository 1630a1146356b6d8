#include "core/startup/termination_log.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"

namespace keelson {
namespace {

class TerminationLogTest : public testing::Test {
 protected:
  TerminationLogTest() { path_ = JoinPath(FreshDirectory(), "log"); }

  void MakeFile(const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(path_, content).ok());
  }
  std::string Written(const std::string& text) {
    WriteTerminationLog(path_, text);
    return ReadFile(path_).value_or("no file");
  }

  std::string path_;
};

TEST_F(TerminationLogTest, ReplacesWhatIsThere) {
  MakeFile("what an earlier life has said, at greater length");
  EXPECT_EQ(Written("done"), "done");
  EXPECT_EQ(Written(""), "");
}

TEST_F(TerminationLogTest, DoesNotMakeTheFile) { EXPECT_EQ(Written("done"), "no file"); }

TEST_F(TerminationLogTest, CutsWhereACharacterEnds) {
  MakeFile("");
  const std::string most(kMaxTerminationBytes, 'a');
  EXPECT_EQ(Written(most), most);
  EXPECT_EQ(Written(most + "b"), most);
  const std::string almost(kMaxTerminationBytes - 2, 'a');
  EXPECT_EQ(Written(almost + "é" + "b"), almost + "é");
  EXPECT_EQ(Written(almost + "€"), almost);
  EXPECT_EQ(Written(almost + "b€"), almost + "b");
}

TEST_F(TerminationLogTest, WhatCannotBeWrittenIsLogged) {
  testing::internal::CaptureStderr();
  WriteTerminationLog("/proc", "done");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("--termination_log: /proc: Is a directory"));
}

}  // namespace
}  // namespace keelson
