#include "worker/script/script_role.h"

#include <memory>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "core/base/file_system.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/client/services/chief_service.h"
#include "core/model/spec/model_variables.h"
#include "core/optim/optimizer_groups.h"
#include "core/script/script_socket.h"
#include "core/startup/done_watcher.h"
#include "core/startup/health.h"
#include "worker/script/job_proposer.h"
#include "worker/script/script_worker.h"
#include "worker/worker_metrics.h"

namespace keelson {
namespace {

absl::Status Refused(absl::string_view field, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, " where a script is a worker, found ", found));
}

// How long a chief may take to come whose script finds the job done.
constexpr int kDoneProposalSeconds = 3;

// A model of layers, which other workers compute too, has records that the script only counts.
absl::Status CheckLayers(const v1::TrainConfig& config, const AgentFlags& flags) {
  if (flags.records <= 0) {
    return absl::InvalidArgumentError(
        "--records: expected how many the script has, of a model of layers, found none");
  }
  if (config.data().has_stream()) {
    return Refused("data.stream", "records whose number is known", "a stream");
  }
  const float clip = config.optimizer().clip_global_norm();
  if (clip != 0 && !config.model().tables().empty()) {
    return Refused("optimizer.clip_global_norm", "0 of a model with tables", absl::StrCat(clip));
  }
  if (clip != 0 && flags.hold_values) {
    return Refused("optimizer.clip_global_norm", "0 (or no overlap)", absl::StrCat(clip));
  }
  if (config.transfer().depth() != 1) {
    return Refused("transfer.depth", "1", absl::StrCat(config.transfer().depth()));
  }
  return absl::OkStatus();
}

GradientClip ClipOf(const v1::OptimizerConfig& optimizer,
                    absl::Span<const VariableSpec> variables) {
  GradientClip clip;
  clip.max_norm = optimizer.clip_global_norm();
  for (size_t v = 0; v < variables.size(); ++v) {
    if (variables[v].trained() && !IsFrozen(optimizer, variables[v])) clip.variables.push_back(v);
  }
  return clip;
}

absl::StatusOr<ScriptWorkerOptions> OptionsOf(const RoleContext& context, const AgentFlags& flags) {
  const v1::TrainConfig& config = context.config;
  const bool of_layers = !config.model().has_external();
  if (of_layers) RETURN_IF_ERROR(CheckLayers(config, flags));
  ScriptWorkerOptions options;
  options.compares_records = of_layers;
  options.self = context.self;
  options.peer = context.peer;
  ASSIGN_OR_RETURN(ModelVariables model, InferVariables(config.model()));
  options.variables = std::move(model.variables);
  options.tables = std::move(model.tables);
  options.clip = ClipOf(config.optimizer(), options.variables);
  options.records = {of_layers ? flags.records : config.data().external().train_records(),
                     config.train().seed(), config.data().sequential(),
                     config.data().order_group()};
  options.config_hash = context.config_hash;
  options.retry = RetryOptionsFrom(flags.worker);
  options.step_bound = absl::Seconds(flags.worker.step_bound_seconds);
  options.hold_values = flags.hold_values;
  options.servers_at = NamingOf(context);
  return options;
}

JobProposer ProposerOf(const RoleContext& context, const AgentFlags& flags, ChiefService* chief) {
  return JobProposer(
      context.config, flags.initial_values,
      [chief](const v1::ProposeJobRequest& request, v1::ProposeJobResponse* response) {
        return chief->ProposeJob(request, response);
      },
      FileSystem::Real());
}

absl::Status ServeBesideServers(const RoleContext& context, const AgentFlags& flags,
                                ScriptSocket* script, StopSignal* gone) {
  RETURN_IF_ERROR(CheckForScript(context, flags));
  const DoneWatcher done(context, gone);
  ASSIGN_OR_RETURN(const std::unique_ptr<ChiefService> chief,
                   ConnectToChief(context, flags.worker, gone));
  return ServeScript(
      context, flags, script, chief.get(), GrpcParameterClients(context, flags.worker),
      [&done](const absl::Status& status) { return done.Explain(status); }, gone);
}

}  // namespace

void AddAgentFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--script_socket", flags->script_socket,
                  "The descriptor of the socket to the script, which starts this program with it "
                  "(docs/agent-protocol.md)")
      ->required();
  app->add_flag(
      "--hold_values", flags->hold_values,
      "Values come into the script's memory when a step ends, and not before, so that the "
      "script may offer gradients while it computes others");
  app->add_option("--initial_values", flags->initial_values,
                  "A safetensors file with the values that a new job starts from, for a chief that "
                  "waits for them (--config=script)");
  app->add_option("--records", flags->records,
                  "How many records the script has, of a configuration with a model of layers; the "
                  "job must have as many")
      ->check(PositiveNumber());
  app->add_flag("--propose_when_done", flags->propose_when_done,
                "Where the job is done already, says so to a chief that waits for a script, which "
                "then need not wait whether one wants more of it");
  flags->worker.step_bound_seconds = 600;
  AddExchangeFlags(app, &flags->worker);
}

absl::Status CheckForScript(const RoleContext& context, const AgentFlags& flags) {
  return OptionsOf(context, flags).status();
}

absl::Status ServeScript(const RoleContext& context, const AgentFlags& flags, ScriptSocket* script,
                         ChiefService* chief, ParameterClientFactory make_client,
                         std::function<absl::Status(const absl::Status&)> explain,
                         StopSignal* gone) {
  ASSIGN_OR_RETURN(ScriptWorkerOptions options, OptionsOf(context, flags));
  options.explain = std::move(explain);
  JobProposer proposer = ProposerOf(context, flags, chief);
  if (context.config.model().has_external()) {
    options.propose = [&proposer] { return proposer.Propose(); };
  }
  ScriptWorker worker(std::move(options), chief, std::move(make_client), script, Clock::Real(),
                      gone);
  const MetricRegistry::Registration metrics =
      context.telemetry->metrics.Add([&worker](MetricPage* page) {
        const std::string computes = worker.computes();
        if (!computes.empty()) CollectWorkerDevice(computes, page);
        CollectWorkerMetrics(worker.progress().totals(), page);
      });
  context.telemetry->ready = true;
  return worker.Run();
}

absl::Status RunAgentRole(const RoleContext& context, const AgentFlags& flags, StopSignal* stop) {
  StopSignal gone(stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<ScriptSocket> script,
                   ScriptSocket::Create(flags.script_socket, &gone));
  const std::unique_ptr<HealthEndpoint> health = StartHealthEndpoint(context);
  const absl::Status status = ServeBesideServers(context, flags, script.get(), &gone);
  if (absl::IsCancelled(status) && !stop->raised()) {
    LogInfo("the script has ended");
    return absl::OkStatus();
  }
  return status;
}

absl::Status ProposeJobOf(const RoleContext& context, const AgentFlags& flags, ChiefService* chief,
                          const StopSignal* stop) {
  if (!context.config.model().has_external()) return absl::OkStatus();
  JobProposer proposer = ProposerOf(context, flags, chief);
  return CallWithRetries(RetryOptionsFrom(flags.worker), "waiting for the chief", Clock::Real(),
                         stop, [&] { return proposer.Propose(); });
}

void ProposeDoneJob(const RoleContext& context, const AgentFlags& flags, StopSignal* stop) {
  if (!flags.propose_when_done || !context.config.model().has_external()) return;
  if (context.cluster.collective()) return;  // The leader knows that the job is done.
  AgentFlags impatient = flags;
  impatient.worker.peer_timeout_seconds = kDoneProposalSeconds;
  const auto propose = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<ChiefService> chief,
                     ConnectToChief(context, impatient.worker, stop));
    return ProposeJobOf(context, impatient, chief.get(), stop);
  };
  const absl::Status status = propose();
  if (!status.ok()) LogInfo("no chief waits for this script: ", status.message());
}

}  // namespace keelson
