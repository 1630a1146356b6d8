// The common part of the command-line programs.
#ifndef KEELSON_CLI_COMMAND_LINE_H_
#define KEELSON_CLI_COMMAND_LINE_H_

#include <functional>
#include <ostream>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace keelson {

// Exit code of a command that succeeded and found damage or a difference.
inline constexpr int kExitFound = 1;

// Runs the command that was chosen; the value is the exit code.
using Command = std::function<absl::StatusOr<int>()>;

// Parses the arguments, then runs *command, which the callback of the chosen subcommand has set.
// Returns the exit code: the command's, or that of core/base/exit_code.h for its error, which is
// logged as one line. A usage error exits with 2, and so does a command whose output could not be
// written: `out` is where commands write to.
int RunCommandLine(CLI::App* app, const Command* command, int argc, const char* const* argv,
                   std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_COMMAND_LINE_H_
