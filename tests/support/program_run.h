// One program that is run to its end.
#ifndef KEELSON_TESTS_SUPPORT_PROGRAM_RUN_H_
#define KEELSON_TESTS_SUPPORT_PROGRAM_RUN_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/cluster/task.h"

namespace keelson {

struct ProgramRun {
  int exit_code = 0;  // -1: it still ran after the limit and was killed
  std::string log;
};

// Runs the program of this name. `environment`: as in Process::Command.
ProgramRun RunProgram(const std::string& name, const std::vector<std::string>& flags,
                      const std::map<std::string, std::string>& environment,
                      absl::Duration hang_limit);

// Runs a role's program with these flags. An empty `tf_config` leaves the variable out.
ProgramRun RunProgram(Role role, const std::vector<std::string>& flags,
                      const std::string& tf_config = "",
                      absl::Duration hang_limit = absl::Seconds(60));

// Fails the test unless the program has ended with `exit_code` and has logged exactly one error,
// which has all of `texts`.
void ExpectOneError(const ProgramRun& run, int exit_code, const std::vector<std::string>& texts);

// The hash of the configuration that a program prints at start; empty: none.
std::string ConfigHashIn(const std::string& log);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_PROGRAM_RUN_H_
