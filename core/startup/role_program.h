// The common part of every role's program: flags, configuration, cluster, log, exit code.
#ifndef KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_
#define KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/stop_signal.h"
#include "core/cluster/cluster_spec.h"
#include "core/startup/telemetry.h"
#include "keelson/v1/train_config.pb.h"

namespace CLI {
class App;
}

namespace keelson {

// The environment of a role in this process; the same for every role.
struct RoleContext {
  Task self;
  // A random identity of this process.
  uint64_t incarnation = 0;
  // "host:pid", for messages.
  std::string peer;
  v1::TrainConfig config;  // final
  uint64_t config_hash = 0;
  // --config=script: a script will say what is trained. `config` has the model directory alone
  // then, and no hash.
  bool config_from_script = false;
  ClusterSpec cluster;
  // What --job_token_file holds, which the job's tasks show one another; empty: the job has none.
  std::string job_token;
  // The process's telemetry, shared by the roles in it; never null.
  std::shared_ptr<Telemetry> telemetry = std::make_shared<Telemetry>();
  // --leave_within: how long the role takes to end in order after it was asked to stop, at most.
  absl::Duration leave_within = absl::Seconds(100);
  // The result in one line, if it is more than "done". The role sets it at its end, on its thread;
  // never null.
  std::shared_ptr<std::string> result = std::make_shared<std::string>();
};

struct RoleProgram {
  Role role = Role::kWorker;
  // First paragraph of --help.
  std::string description;
  // Whether --config=script is accepted.
  bool takes_config_from_script = false;
  // RankEnvironment::several_per_host.
  bool several_per_host = false;
  // Adds the role's own flags to the common ones. May be null.
  std::function<void(CLI::App*)> add_flags;
  // Whether the parsed flags request work outside of any job: then neither the cluster nor the DONE
  // marker is read. The context is then that of the role's task 0, without a cluster. May be null:
  // never.
  std::function<bool()> outside_job;
  // Is called where the model directory says that this job is done, before the program ends. May be
  // null.
  std::function<void(const RoleContext&, StopSignal* stop)> already_done;
  // The work, until `stop` is raised by a signal at the latest: then CANCELLED.
  std::function<absl::Status(const RoleContext&, StopSignal* stop)> run;
};

// Parses the common flags (--config and its overrides, --metrics_…, the cluster's flags and
// environment) and the role's own, resolves configuration and cluster, prints one line with the
// resolved role and world, ends at once when the model directory says that this job is done, else
// starts the metrics endpoint where one is wanted and runs; returns the exit code
// (core/base/exit_code.h). An error is logged as one line. A usage error exits with 2. The result
// is also written to --termination_log. A process that was asked to stop and hangs longer than
// --leave_within says in its log and there which operations on files are under way, and ends with
// kExitStopped. --help=json prints the flags, as core/startup/flag_table.h
// describes them.
int RunRoleProgram(const RoleProgram& program, int argc, char** argv);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_ROLE_PROGRAM_H_
