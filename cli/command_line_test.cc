#include "cli/command_line.h"

#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using testing::HasSubstr;

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    app_.add_subcommand("run")->callback([this] { command_ = [this] { return outcome_; }; });
    app_.require_subcommand(1);
  }

  // Returns the exit code; `errors_` is what was logged.
  int Run(const char* argument) {
    const char* argv[] = {"program", argument};
    testing::internal::CaptureStderr();
    const int code = RunCommandLine(&app_, &command_, 2, argv, &out_);
    errors_ = testing::internal::GetCapturedStderr();
    return code;
  }

  CLI::App app_;
  Command command_;
  absl::StatusOr<int> outcome_ = 0;
  std::ostringstream out_;
  std::string errors_;
};

TEST_F(CommandLineTest, ReturnsWhatTheCommandDoes) {
  EXPECT_EQ(Run("run"), 0);
  outcome_ = kExitFound;
  EXPECT_EQ(Run("run"), 1);
  EXPECT_EQ(errors_, "");
}

TEST_F(CommandLineTest, AnErrorIsLoggedAndHasItsExitCode) {
  outcome_ = absl::NotFoundError("there is none");
  EXPECT_EQ(Run("run"), 2);
  EXPECT_THAT(errors_, HasSubstr("there is none\n"));
  outcome_ = absl::UnavailableError("it is away");
  EXPECT_EQ(Run("run"), 138);
}

// As of a full disk.
TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsAnError) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(Run("run"), 2);
  EXPECT_THAT(errors_, HasSubstr("the output cannot be written\n"));
}

TEST_F(CommandLineTest, AUsageErrorRunsNothing) {
  outcome_ = kExitFound;
  EXPECT_EQ(Run("walk"), 2);
  EXPECT_THAT(errors_, HasSubstr("; see --help\n"));
  testing::internal::CaptureStdout();
  EXPECT_EQ(Run("--help"), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("run"));
}

}  // namespace
}  // namespace keelson
