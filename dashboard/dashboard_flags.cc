#include "dashboard/dashboard_flags.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "core/base/auth_token.h"

namespace keelson {
namespace {

constexpr char kPort[] = "--dashboard_port";
constexpr char kAddress[] = "--dashboard_address";
constexpr char kHosts[] = "--dashboard_hosts";
constexpr char kServeOnly[] = "--serve_only";
constexpr char kRuns[] = "--runs";
constexpr char kAuthTokenFile[] = "--auth_token_file";

// The flags that apply to --serve_only.
constexpr const char* kServing[] = {"--help",          "--config",
                                    "--model_dir",     kPort,
                                    kAddress,          kHosts,
                                    kServeOnly,        kRuns,
                                    "--metrics_port",  "--metrics_address",
                                    "--metrics_hosts", "--termination_log",
                                    "--serve",         "--serve_address",
                                    "--serve_hosts"};

bool MattersToServing(const CLI::Option& option) {
  for (const char* name : kServing) {
    if (option.check_name(name)) return true;
  }
  return false;
}

// Reports wrong flags as CLI11 expects them, by exceptions.
void CheckDashboardFlags(const CLI::App& app, const DashboardFlags& flags) {
  if (flags.serve_only) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->count() == 0 || MattersToServing(*option)) continue;
      throw CLI::ValidationError(absl::StrCat(option->get_name(), ": expected without ", kServeOnly,
                                              ", which shows runs and takes part in none"));
    }
    return;
  }
  if (flags.port.has_value()) return;
  for (const char* name : {kAddress, kHosts, kRuns, kAuthTokenFile}) {
    if (app.count(name) == 0) continue;
    throw CLI::ValidationError(
        absl::StrCat(name, ": expected together with ", kPort, ", found without"));
  }
}

// Returns those that have a meaning with --dashboard_port only.
std::vector<CLI::Option*> AddAddressFlags(CLI::App* app, DashboardFlags* flags) {
  CLI::Option* const address = app->add_option(
      kAddress, flags->address,
      "Serves the dashboard on this address only, 127.0.0.1 or ::1 for this machine "
      "alone (default: on all of the host's)");
  CLI::Option* const hosts =
      app->add_option(kHosts, flags->hosts,
                      "NAME,NAME,…: further names by which browsers reach the dashboard, such as "
                      "an Ingress's; *: any. Requests for others get 403. Always admitted are "
                      "localhost, numeric addresses, the own host's name, the task's name in the "
                      "cluster, and names of Services that end in .svc or .svc.cluster.local")
          ->delimiter(',');
  return {address, hosts};
}

}  // namespace

void AddDashboardFlags(CLI::App* app, DashboardFlags* flags) {
  app->add_option(kPort, flags->port,
                  absl::StrCat("Serves the dashboard on this port; 0: any free one, which the log "
                               "names (default: not served; with --serve_only ",
                               kDefaultDashboardPort, ")"))
      ->check(CLI::Range(0, 65535));
  AddAddressFlags(app, flags);
  app->add_flag(kServeOnly, flags->serve_only,
                "Evaluates nothing: serves the dashboard of the runs in --model_dir and --runs "
                "until it is stopped; needs no cluster");
  app->add_option(kRuns, flags->runs,
                  "Further runs that the dashboard shows: DIR or NAME=DIR, several; a model "
                  "directory, or a directory of such");
  app->add_option(kAuthTokenFile, flags->auth_token_file,
                  "File with the job's token, which lets those who have it end the training and "
                  "change its mode from the dashboard (default: nothing can be changed there)");
  app->callback([app, flags] { CheckDashboardFlags(*app, *flags); });
}

void AddJobDashboardFlags(CLI::App* app, DashboardFlags* flags) {
  CLI::Option* const port =
      app->add_option(kPort, flags->port,
                      "Without a cluster: serves the dashboard on this port; 0: any free one, "
                      "which the log names (default: not served; in a cluster the evaluator serves "
                      "it)")
          ->check(CLI::Range(0, 65535));
  for (CLI::Option* const option : AddAddressFlags(app, flags)) option->needs(port);
}

absl::StatusOr<std::string> ReadDashboardToken(const DashboardFlags& flags) {
  if (flags.auth_token_file.empty()) return "";
  return ReadToken("--auth_token_file", flags.auth_token_file);
}

}  // namespace keelson
