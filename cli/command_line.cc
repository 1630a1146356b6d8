#include "cli/command_line.h"

#include <optional>

#include "CLI/CLI.hpp"
#include "core/base/exit_code.h"
#include "core/base/log.h"

namespace keelson {
namespace {

// CLI11 reports usage errors by exceptions; they end here.
std::optional<int> Parse(CLI::App* app, int argc, const char* const* argv) {
  try {
    app->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app->exit(error);  // --help
    LogError(error.what(), "; see --help");
    return kExitPermanent;
  }
}

}  // namespace

int RunCommandLine(CLI::App* app, const Command* command, int argc, const char* const* argv,
                   std::ostream* out) {
  if (const std::optional<int> exit_code = Parse(app, argc, argv)) return *exit_code;
  const absl::StatusOr<int> exit_code = (*command)();
  if (exit_code.ok() && out->flush()) return *exit_code;
  if (exit_code.ok()) {
    LogError("the output cannot be written");
    return kExitPermanent;
  }
  LogError(exit_code.status().message());
  return ExitCodeFor(exit_code.status());
}

}  // namespace keelson
