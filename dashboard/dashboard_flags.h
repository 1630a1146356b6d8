// The flags of an evaluator's dashboard.
#ifndef KEELSON_DASHBOARD_DASHBOARD_FLAGS_H_
#define KEELSON_DASHBOARD_DASHBOARD_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace keelson {

// The port of --serve_only if none is given.
inline constexpr int kDefaultDashboardPort = 6006;

struct DashboardFlags {
  std::optional<int> port;         // nothing: not served, except with serve_only
  std::string address;             // numeric, to listen on; empty: all of the host's
  std::vector<std::string> hosts;  // further names by which browsers reach it
  bool serve_only = false;
  std::vector<std::string> runs;  // RunSet::Options::runs
  std::string auth_token_file;    // empty: nothing can be changed
};

// Flags that make no sense together are usage errors. `app` has the common flags already
// (RunRoleProgram); it and `flags` are used while it parses.
void AddDashboardFlags(CLI::App* app, DashboardFlags* flags);

// The flags of a program that serves the dashboard only when it is the whole job: --dashboard_port,
// --dashboard_address and --dashboard_hosts.
void AddJobDashboardFlags(CLI::App* app, DashboardFlags* flags);

// The token of --auth_token_file; empty: the flag was not given. Errors of ReadAuthToken.
absl::StatusOr<std::string> ReadDashboardToken(const DashboardFlags& flags);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_DASHBOARD_FLAGS_H_
