#include "tests/support/program_run.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/process.h"

namespace keelson {

ProgramRun RunProgram(Role role, const std::vector<std::string>& flags,
                      const std::string& tf_config, absl::Duration hang_limit) {
  Process::Command command;
  command.argv = {ProgramOf(role)};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  if (!tf_config.empty()) command.environment["TF_CONFIG"] = tf_config;
  command.log_path = JoinPath(FreshDirectory(), "log");
  const auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return {-1, ""};
  const int exit_code = (*process)->Wait(hang_limit).value_or(-1);
  return {exit_code, (*process)->Log()};
}

void ExpectOneError(const ProgramRun& run, int exit_code, const std::vector<std::string>& texts) {
  EXPECT_EQ(run.exit_code, exit_code) << run.log;
  const std::vector<std::string> errors = ErrorLines(run.log);
  EXPECT_EQ(errors.size(), 1) << run.log;
  for (const std::string& text : texts) {
    const bool found = !errors.empty() && absl::StrContains(errors[0], text);
    EXPECT_TRUE(found) << "expected: " << text << "\nfound: " << run.log;
  }
}

std::string ConfigHashIn(const std::string& log) {
  for (const absl::string_view word : absl::StrSplit(log, absl::ByAnyChar(" \n"))) {
    if (absl::StartsWith(word, "config=")) return std::string(word.substr(7));
  }
  return "";
}

}  // namespace keelson
