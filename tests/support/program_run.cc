#include "tests/support/program_run.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/process.h"

namespace keelson {

namespace {

ProgramRun RunToEnd(const std::string& path, const std::vector<std::string>& flags,
                    const std::map<std::string, std::string>& environment,
                    absl::Duration hang_limit) {
  Process::Command command;
  command.argv = {path};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  command.environment = environment;
  command.log_path = JoinPath(FreshDirectory(), "log");
  const auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  if (!process.ok()) return {-1, ""};
  const int exit_code = (*process)->Wait(hang_limit).value_or(-1);
  return {exit_code, (*process)->Log()};
}

}  // namespace

ProgramRun RunProgram(const std::string& name, const std::vector<std::string>& flags,
                      const std::map<std::string, std::string>& environment,
                      absl::Duration hang_limit) {
  return RunToEnd(ProgramPath(name), flags, environment, hang_limit);
}

ProgramRun RunProgram(Role role, const std::vector<std::string>& flags,
                      const std::string& tf_config, absl::Duration hang_limit) {
  std::map<std::string, std::string> environment;
  if (!tf_config.empty()) environment["TF_CONFIG"] = tf_config;
  return RunToEnd(ProgramOf(role), flags, environment, hang_limit);
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
