// The flags of a program as JSON: what `--help=json` prints, for tools that hand flags to programs.
#ifndef KEELSON_CORE_STARTUP_FLAG_TABLE_H_
#define KEELSON_CORE_STARTUP_FLAG_TABLE_H_

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace keelson {

// {"flags": [{"name": "port", "kind": "option", "type": "INT", "default": "", "group": "Cluster",
// "help": "Port to listen on"}, …]} and a line break: every flag but --help, in the order of
// --help. Of the kinds, an "option" takes a value and a "flag" takes none; "default" is "" where
// --help shows none.
std::string FlagTable(const CLI::App& app);

// In which form the parsed arguments want help: true for --help=json, false for --help, -h and
// --help=text. INVALID_ARGUMENT: --help has another value.
absl::StatusOr<bool> WantsFlagTable(const CLI::App& app);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_FLAG_TABLE_H_
