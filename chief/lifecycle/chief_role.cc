#include "chief/lifecycle/chief_role.h"

#include <cmath>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief_metrics.h"
#include "chief/lifecycle/model_owner.h"
#include "chief/service/chief_grpc_service.h"
#include "core/base/auth_token.h"
#include "core/base/host_name.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/config/initial_values.h"
#include "core/data/open_datasets.h"
#include "core/model/spec/model_spec.h"
#include "core/rpc/access.h"
#include "core/rpc/health_service.h"
#include "core/rpc/server.h"
#include "core/startup/job_access.h"

namespace keelson {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

// The address at which others reach this chief: the one that the cluster gives it, else host and
// port.
std::string AnnouncedAddress(const RoleContext& context, int port) {
  const std::optional<std::string> self = context.cluster.SelfAddress();
  if (self.has_value() && context.cluster.listen_port == 0) return *self;
  const std::string host = HostName();
  return absl::StrCat(host.empty() ? "localhost" : host, ":", port);
}

std::vector<Task> ExpectedMembers(const ClusterSpec& cluster) {
  std::vector<Task> members;
  for (const auto& [index, address] : cluster.workers) members.push_back({Role::kWorker, index});
  for (const auto& [index, address] : cluster.evaluators) {
    members.push_back({Role::kEvaluator, index});
  }
  return members;
}

// The job's token; empty: the job has none.
absl::StatusOr<std::string> TokenOf(const ChiefFlags& flags) {
  if (flags.auth_token_file.empty()) return "";
  return ReadToken("--auth_token_file", flags.auth_token_file);
}

// "done at step 1000; training: loss=0.02; evaluation: accuracy=0.98 loss=0.06", as far as known.
std::string ResultOf(const CoordinatorStatus& status) {
  std::string text = absl::StrCat("done at step ", status.step);
  if (!status.end_reason.empty() && (status.max_steps == 0 || status.step < status.max_steps)) {
    const std::string of = status.max_steps > 0 ? absl::StrCat(" of ", status.max_steps) : "";
    text = absl::StrCat("ended early at step ", status.step, of, ": ", status.end_reason);
  }
  if (status.newest.steps_per_second() > 0 && std::isfinite(status.newest.loss())) {
    absl::StrAppend(&text, "; training: loss=", status.newest.loss());
  }
  if (status.evaluated_step != status.step) return text;
  absl::StrAppend(&text, "; evaluation:");
  for (const auto& [name, value] : status.evaluation) absl::StrAppend(&text, " ", name, "=", value);
  return text;
}

}  // namespace

void AddChiefFlags(CLI::App* app, ChiefFlags* flags) {
  app->add_option("--startup_timeout", flags->startup_timeout_seconds,
                  "Seconds to wait for the parameter servers to appear")
      ->capture_default_str()
      ->check(PositiveNumber());
  app->add_option("--lease", flags->lease_seconds,
                  "Seconds without a sign of life after which a member counts as lost")
      ->capture_default_str()
      ->check(PositiveNumber());
  app->add_option("--checkpoint_writer", flags->checkpoint_writer,
                  "Who writes and reads the parts of a snapshot: \"servers\", when all share the "
                  "model directory, or \"chief\", which gets them over the network")
      ->capture_default_str()
      ->check(CLI::IsMember({"servers", "chief"}));
  app->add_option("--auth_token_file", flags->auth_token_file,
                  "File with the job's token, which others need to change the mode and to end the "
                  "training (default: the mode is open to all, the end to members only)");
  app->add_option("--owner_lease", flags->owner_lease_seconds,
                  "Seconds without a renewal after which a job on another machine may take the "
                  "model directory; on this machine it may as soon as the process has ended")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  app->add_flag("--accept_new_config", flags->accept_new_config,
                "Trains the model of the model directory on although it was trained with another "
                "configuration (which train.max_steps and train.epochs do not make)");
}

absl::StatusOr<std::unique_ptr<Chief>> MakeChief(const RoleContext& context,
                                                 const ChiefFlags& flags,
                                                 std::vector<ServerGroup::Server> servers,
                                                 StopSignal* stop) {
  const OwnershipOptions ownership = {absl::Seconds(flags.owner_lease_seconds),
                                      flags.accept_new_config};
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryOwner> owner,
                   TakeModelDirectory(context, ownership, FileSystem::Real(), Clock::Real(), stop));
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(context.config.model()));
  ASSIGN_OR_RETURN(const Datasets data, OpenDatasets(context.config.data(), spec.records,
                                                     context.config.train().seed()));
  ChiefOptions options;
  options.owner = std::move(owner);
  options.self = context.self;
  options.incarnation = context.incarnation;
  options.config = context.config;
  options.config_hash = context.config_hash;
  ASSIGN_OR_RETURN(options.variables,
                   WithInitialValues(context.config.initial_values(), spec.variables, spec.tables));
  ASSIGN_OR_RETURN(options.tables, TablesWithInitialValues(context.config.initial_values(),
                                                           spec.variables, spec.tables));
  options.train_records = data.train->num_records();
  options.stream = data.stream_directory;
  options.expects_evaluator = !context.cluster.evaluators.empty();
  options.expected_members = ExpectedMembers(context.cluster);
  if (context.cluster.distributed) {
    options.address = AnnouncedAddress(context, context.cluster.listen_port);
  }
  options.startup_timeout = absl::Seconds(flags.startup_timeout_seconds);
  options.peer = context.peer;
  options.lease = absl::Seconds(flags.lease_seconds);
  options.leave_within = context.leave_within;
  if (flags.checkpoint_writer == "chief") options.checkpoint_writer = CheckpointWriter::kChief;
  return Chief::Create(std::move(options), std::move(servers), Clock::Real(), stop);
}

absl::Status RunChief(const RoleContext& context, Chief* chief,
                      const std::vector<Companion>& companions, StopSignal* stop) {
  std::vector<absl::Status> statuses(companions.size());
  std::vector<Thread> threads;
  for (size_t i = 0; i < companions.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = companions[i](chief->service(), stop);
      if (!statuses[i].ok()) stop->Raise();
    });
  }
  const absl::Status status = chief->Run();
  if (!status.ok()) stop->Raise();
  *context.result = ResultOf(chief->coordinator()->reports()->GetStatus());
  for (Thread& thread : threads) thread.Join();
  for (const absl::Status& companion : statuses) {
    // A companion's error is the cause when the chief was merely stopped.
    const bool caused = !companion.ok() && companion.code() != absl::StatusCode::kCancelled;
    if (caused && (status.ok() || status.code() == absl::StatusCode::kCancelled)) return companion;
  }
  return status;
}

absl::Status RunChiefRole(const RoleContext& context, const ChiefFlags& flags,
                          const std::vector<Companion>& companions, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::string token, TokenOf(flags));
  std::vector<std::unique_ptr<ParameterControl>> connections;
  std::vector<ServerGroup::Server> servers;
  for (const auto& [index, address] : context.cluster.ps) {
    const std::string name = absl::StrCat("ps-", index);
    connections.push_back(
        ConnectParameterControl(name, address, CredentialsOf(context, Role::kChief)));
    servers.push_back({name, address, connections.back().get()});
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Chief> chief,
                   MakeChief(context, flags, std::move(servers), stop));
  const MetricRegistry::Registration metrics =
      AddChiefMetrics(&context.telemetry->metrics, chief.get(), context.config.checkpoint());
  const AccessGuard guard(SecretsOf(context, token));
  ChiefGrpcService service(chief->service(), &guard);
  HealthService health(&context.telemetry->ready, {v1::ChiefService::service_full_name()});
  RawServing serving;
  serving.guard = &guard;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(context.cluster.ListenAddress(), grpc::InsecureServerCredentials(),
                       {&service, &health}, std::move(serving)));
  LogInfo("listening on port ", server->port());
  context.telemetry->ready = true;
  const absl::Status status = RunChief(context, chief.get(), companions, stop);
  context.telemetry->ready = false;
  health.Stop();
  server->Shutdown(kShutdownGrace);
  return status;
}

}  // namespace keelson
