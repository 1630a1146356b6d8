// What every main does around its role: flags, configuration, cluster, log, exit code.
#ifndef KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_
#define KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "core/cluster/cluster_spec.h"
#include "core/startup/telemetry.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Where this process stands; the same kind of thing for every role.
struct RoleContext {
  Task self;
  // Drawn at the start of this process.
  uint64_t incarnation = 0;
  // "host:pid", for messages.
  std::string peer;
  v1::TrainConfig config;  // final
  uint64_t config_hash = 0;
  ClusterSpec cluster;
  // The process's own, shared by the roles in it; never null.
  std::shared_ptr<Telemetry> telemetry = std::make_shared<Telemetry>();
  // What came of it, one line, where there is more to say than "done". Set by the role at its end,
  // on the thread that runs it; never null.
  std::shared_ptr<std::string> result = std::make_shared<std::string>();
};

struct RoleProgram {
  Role role = Role::kWorker;
  // First paragraph of --help.
  std::string description;
  // Adds the role's own flags to the common ones. May be null.
  std::function<void(CLI::App*)> add_flags;
  // The flags, which are parsed by then, ask for something outside of any job: neither the cluster
  // nor the DONE marker is looked at. The context is then that of the role's task 0, without a
  // cluster. May be null: never.
  std::function<bool()> outside_job;
  // The work. CANCELLED when it was stopped by a signal.
  std::function<absl::Status(const RoleContext&)> run;
};

// Parses the common flags (--config and its overrides, --metrics_port, the cluster's flags and
// environment) and the role's own, resolves configuration and cluster, prints one line with the
// resolved role and world, ends at once when the model directory says that this job is done, else
// starts the metrics endpoint where one is wanted and runs; returns the exit code
// (core/base/exit_code.h). An error is logged as one line. A usage error exits with 2. What came of
// it all goes to --termination_log too.
int RunRoleProgram(const RoleProgram& program, int argc, char** argv);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_
