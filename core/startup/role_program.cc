#include "core/startup/role_program.h"

#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/allocator.h"
#include "core/base/auth_token.h"
#include "core/base/exit_code.h"
#include "core/base/file_operation.h"
#include "core/base/host_name.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/cluster/cluster_flags.h"
#include "core/config/config_flags.h"
#include "core/config/train_config.h"
#include "core/startup/done_watcher.h"
#include "core/startup/flag_table.h"
#include "core/startup/metrics_endpoint.h"
#include "core/startup/task_metrics.h"
#include "core/startup/termination_log.h"

namespace keelson {
namespace {

struct CommonFlags {
  std::string config_path;
  ConfigOverrides overrides;
  ClusterFlags cluster;
  std::string job_token_file;
  std::optional<int> metrics_port;
  std::string metrics_address;
  std::vector<std::string> metrics_hosts;
  std::string termination_log = kTerminationLog;
  int64_t leave_within = 100;
};

// --config of a chief and a server that wait for a script.
constexpr char kConfigFromScript[] = "script";
// What a process gets in addition that has not ended in order, before it is ended.
constexpr absl::Duration kHangingGrace = absl::Seconds(5);
// Operations on files that take as long hang.
constexpr absl::Duration kHanging = absl::Seconds(1);

void AddMetricsFlags(CLI::App* app, CommonFlags* flags) {
  CLI::Option* const port =
      app->add_option("--metrics_port", flags->metrics_port,
                      "Serves /metrics (Prometheus), /healthz and /readyz on this port; 0: any "
                      "free one, which the log names (default: not served)")
          ->check(CLI::Range(0, 65535));
  app->add_option("--metrics_address", flags->metrics_address,
                  "Serves them on this address only, 127.0.0.1 or ::1 for this machine alone "
                  "(default: on all of the host's)")
      ->needs(port);
  app->add_option("--metrics_hosts", flags->metrics_hosts,
                  "NAME,NAME,…: further names by which clients reach that port; *: any. Requests "
                  "for others get 403. Always admitted are localhost, numeric addresses, the own "
                  "host's name, the task's name in the cluster, and names of Services that end in "
                  ".svc or .svc.cluster.local")
      ->delimiter(',')
      ->needs(port);
}

void AddCommonFlags(CLI::App* app, CommonFlags* flags) {
  app->add_option(
      "--config", flags->config_path,
      "A file, the TrainConfig as a text proto, the same for all roles; \"script\", for chief and "
      "ps_server: what the first Python script of the job proposes (default: an MLP on generated "
      "digits)");
  ConfigOverrides* overrides = &flags->overrides;
  app->add_option("--batch_size", overrides->batch_size, "Overrides train.batch_size");
  app->add_option("--training_steps", overrides->training_steps,
                  "Overrides train.max_steps (and train.epochs)");
  app->add_option("--epochs", overrides->epochs, "Overrides train.epochs (and train.max_steps)");
  app->add_option("--learning_rate", overrides->learning_rate, "Overrides learning_rate.base");
  app->add_option("--seed", overrides->seed, "Overrides train.seed");
  app->add_option("--wire", overrides->wire,
                  "Replaces transfer.groups: all gradients in this format, " +
                      absl::StrJoin(WireNames(), ", ") +
                      "; values in the same one, for int8 and top_k in bfloat16");
  app->add_option("--pipeline_depth", overrides->pipeline_depth,
                  "Overrides transfer.depth: steps of a worker under way at a time, 1 or 2");
  app->add_option("--model_dir", overrides->model_dir,
                  "Overrides checkpoint.model_dir: a directory that all roles share");
  app->add_option("--data_dir", overrides->data_dir,
                  "Overrides data.data_dir: a directory with IDX files, or with the files of "
                  "data.libsvm and the like");
  AddMetricsFlags(app, flags);
  app->add_option(
         "--termination_log", flags->termination_log,
         "Receives the program's error or result when it ends, if there is such a file, as "
         "Kubernetes makes it")
      ->capture_default_str();
  app->add_option("--leave_within", flags->leave_within,
                  "Seconds that the program takes to end in order when it is asked to stop, at "
                  "most: as long the chief tries to take its last snapshot, and servers wait for "
                  "it. A program that hangs is ended 5 seconds later. Less than the grace period "
                  "before SIGKILL")
      ->capture_default_str()
      ->check(PositiveNumber());
  ClusterFlags* cluster = &flags->cluster;
  const char* const group = "Cluster (completes or replaces TF_CONFIG)";
  app->add_option("--job_name", cluster->job_name, "chief, ps, worker or evaluator")->group(group);
  app->add_option("--task_index", cluster->task_index,
                  "Index within the role (default: JOB_COMPLETION_INDEX of the environment, as "
                  "Kubernetes sets it in an Indexed Job)")
      ->group(group);
  app->add_option("--ps_hosts", cluster->ps_hosts,
                  "host:port,host:port,… in order of the indexes; {0..3} in it stands for the "
                  "numbers 0 to 3: 'mnist-ps-{0..3}.mnist:2222' are four hosts")
      ->group(group);
  app->add_option(
         "--worker_hosts", cluster->worker_hosts,
         "Likewise. Where they are not listed (dynamic workers), any number may come; listed "
         "without --ps_hosts, they hold the variables")
      ->group(group);
  app->add_option(
         "--chief_hosts", cluster->chief_hosts,
         "host:port; where a launcher numbers the processes (RANK, mpirun), that of rank 0")
      ->group(group);
  app->add_option("--evaluator_hosts", cluster->evaluator_hosts, "host:port")->group(group);
  app->add_option("--job_token_file", flags->job_token_file,
                  "File with the job's token, the same for all its tasks, without which no process "
                  "is let into the job (default: whoever reaches the ports may take part)")
      ->envname("KEELSON_JOB_TOKEN_FILE")
      ->group(group);
  app->add_option("--port", cluster->port, "Port to listen on (default: the own address's)")
      ->group(group);
  app->add_option("--announce_host", cluster->announce_host,
                  "Name or address at which the others reach this process, where it registers with "
                  "the first one (default: the address that the first one sees)")
      ->group(group);
}

absl::Status JoinCluster(const RoleProgram& program, const ClusterFlags& flags,
                         RoleContext* context) {
  ClusterEnvironment environment = ClusterEnvironment::OfProcess();
  environment.ranks.several_per_host = program.several_per_host;
  ASSIGN_OR_RETURN(context->cluster, ResolveCluster(program.role, flags, environment));
  context->self = context->cluster.self;
  SetLogName(context->self.ToString());
  return absl::OkStatus();
}

absl::Status ResolveConfig(const RoleProgram& program, const CommonFlags& flags,
                           RoleContext* context) {
  context->config_from_script = flags.config_path == kConfigFromScript;
  if (!context->config_from_script) {
    ASSIGN_OR_RETURN(context->config, ResolveTrainConfig(flags.config_path, flags.overrides));
    context->config_hash = ConfigHash(context->config);
    return CheckFitsCluster(context->config, context->cluster);
  }
  if (!program.takes_config_from_script) {
    return absl::InvalidArgumentError(
        "--config=script: expected a file; chief and ps_server alone wait for a script that says "
        "what is trained");
  }
  return ApplyToScriptConfig(flags.overrides, &context->config);
}

absl::StatusOr<RoleContext> ResolveContext(const RoleProgram& program, bool outside_job,
                                           const CommonFlags& flags) {
  RoleContext context;
  context.self = {program.role, 0};
  if (!outside_job) RETURN_IF_ERROR(JoinCluster(program, flags.cluster, &context));
  if (!outside_job && !flags.job_token_file.empty()) {
    ASSIGN_OR_RETURN(context.job_token, ReadToken("--job_token_file", flags.job_token_file));
  }
  RETURN_IF_ERROR(ResolveConfig(program, flags, &context));
  context.incarnation = RandomId();
  context.leave_within = absl::Seconds(flags.leave_within);
  context.peer = absl::StrCat(HostName(), ":", getpid());
  return context;
}

// Null: not wanted.
absl::StatusOr<std::unique_ptr<HttpServer>> StartEndpoint(const CommonFlags& flags,
                                                          const RoleContext& context) {
  if (!flags.metrics_port.has_value()) return nullptr;
  MetricsEndpointOptions options = {*flags.metrics_port, flags.metrics_address,
                                    flags.metrics_hosts};
  const std::string own = context.cluster.SelfHostName();
  if (!own.empty()) options.hosts.push_back(own);
  return StartMetricsEndpoint(options, context.telemetry.get());
}

// "nothing to do: …"; nothing: the job is not done, or it is not known yet what it is.
absl::StatusOr<std::optional<std::string>> AlreadyDone(const RoleContext& context) {
  if (context.config_from_script) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<int64_t> done_step, DoneStepOf(context));
  if (!done_step.has_value()) return std::nullopt;
  return absl::StrCat("nothing to do: ", context.config.checkpoint().model_dir(),
                      " holds this job, done at step ", *done_step);
}

// Runs the role; returns the result in one line.
absl::StatusOr<std::string> Run(const RoleProgram& program, const CommonFlags& flags,
                                StopSignal* stop) {
  const bool outside_job = program.outside_job != nullptr && program.outside_job();
  ASSIGN_OR_RETURN(const RoleContext context, ResolveContext(program, outside_job, flags));
  if (!outside_job) {
    LogInfo(context.cluster.ToString(), " config=",
            context.config_from_script ? kConfigFromScript : HashToString(context.config_hash),
            " pid=", getpid());
    ASSIGN_OR_RETURN(const std::optional<std::string> done, AlreadyDone(context));
    if (done.has_value()) {
      LogInfo(*done);
      if (program.already_done != nullptr) program.already_done(context, stop);
      return *done;
    }
  }
  const MetricRegistry::Registration metrics = AddTaskMetrics(context);
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> endpoint, StartEndpoint(flags, context));
  RETURN_IF_ERROR(program.run(context, stop));
  return context.result->empty() ? "done" : *context.result;
}

void SayWhatHangs(const CommonFlags& flags) {
  std::vector<std::string> hanging = FileOperation::UnderWay(kHanging);
  if (hanging.empty()) hanging = {"no operation on a file, but something else"};
  const std::string text =
      absl::StrCat("ended although it was not ready, ",
                   absl::FormatDuration(absl::Seconds(flags.leave_within) + kHangingGrace),
                   " after it was asked to stop; what hangs: ", absl::StrJoin(hanging, ", "));
  LogError(text);
  WriteTerminationLog(flags.termination_log, text);
}

int RefuseUsage(absl::string_view what, const std::string& termination_log) {
  const std::string message = absl::StrCat(what, "; see --help");
  LogError(message);
  WriteTerminationLog(termination_log, message);
  return kExitPermanent;
}

int PrintHelp(const CLI::App& app, const CLI::ParseError& help,
              const std::string& termination_log) {
  const absl::StatusOr<bool> table = WantsFlagTable(app);
  if (!table.ok()) return RefuseUsage(table.status().message(), termination_log);
  if (!*table) return app.exit(help);
  std::cout << FlagTable(app);
  return 0;
}

// CLI11 reports usage errors by exceptions; they end here.
std::optional<int> Parse(CLI::App* app, int argc, char** argv, const std::string& termination_log) {
  try {
    app->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return PrintHelp(*app, error, termination_log);
    return RefuseUsage(error.what(), termination_log);
  }
}

}  // namespace

int RunRoleProgram(const RoleProgram& program, int argc, char** argv) {
  TuneAllocator();
  SetLogName(RoleName(program.role));
  CLI::App app(program.description);
  CommonFlags flags;
  AddCommonFlags(&app, &flags);
  if (program.add_flags != nullptr) program.add_flags(&app);
  if (const auto exit_code = Parse(&app, argc, argv, flags.termination_log)) return *exit_code;
  StopSignal stop;
  const SignalWatcher watcher(&stop, {absl::Seconds(flags.leave_within) + kHangingGrace,
                                      [&flags] { SayWhatHangs(flags); }});
  const absl::StatusOr<std::string> result = Run(program, flags, &stop);
  const absl::Status& status = result.status();
  std::string last_word = result.ok() ? *result : std::string(status.message());
  if (status.code() == absl::StatusCode::kCancelled) {
    last_word = absl::StrCat("stopped: ", last_word);
    LogInfo(last_word);
  } else if (!status.ok()) {
    LogError(last_word);
  }
  WriteTerminationLog(flags.termination_log, last_word);
  return ExitCodeFor(status);
}

}  // namespace keelson
