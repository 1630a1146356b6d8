#include "chief/lifecycle/chief_role.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief_metrics.h"
#include "chief/lifecycle/model_owner.h"
#include "chief/lifecycle/proposed_job.h"
#include "chief/servers/announced_hosts.h"
#include "chief/service/chief_grpc_service.h"
#include "core/base/auth_token.h"
#include "core/base/exit_code.h"
#include "core/base/host_name.h"
#include "core/base/log.h"
#include "core/base/number_flags.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/client/services/moving_control.h"
#include "core/client/services/shard_control.h"
#include "core/config/initial_values.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config.h"
#include "core/data/open_datasets.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/model_variables.h"
#include "core/rpc/access.h"
#include "core/rpc/health_service.h"
#include "core/rpc/server.h"
#include "core/startup/job_access.h"

namespace keelson {
namespace {

constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

// A host that is frozen is replaced after two heartbeats, and what it has not answered is given up.
constexpr ControlDeadlines kWithReplicas = {absl::Milliseconds(1250), absl::Seconds(3)};

// The address at which others reach this chief: the one that the cluster gives it, else host and
// port.
std::string AnnouncedAddress(const RoleContext& context, int port) {
  const std::optional<std::string> self = context.cluster.SelfAddress();
  if (self.has_value() && context.cluster.listen_port == 0) return *self;
  const std::string host = HostName();
  return absl::StrCat(host.empty() ? "localhost" : host, ":", port);
}

std::vector<Task> ExpectedMembers(const ClusterSpec& cluster) {
  std::vector<Task> members = cluster.ShardHosts();
  if (members.empty()) {
    for (const auto& [index, address] : cluster.workers) members.push_back({Role::kWorker, index});
  }
  for (const auto& [index, address] : cluster.evaluators) {
    members.push_back({Role::kEvaluator, index});
  }
  return members;
}

// The records that train.
struct Records {
  int64_t count = 0;
  std::shared_ptr<const StreamDirectory> stream;  // null: it is no stream
};

absl::StatusOr<Records> RecordsOf(const v1::TrainConfig& config) {
  if (config.data().has_external())
    return Records{config.data().external().train_records(), nullptr};
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  ASSIGN_OR_RETURN(const Datasets data,
                   OpenDatasets(config.data(), spec.records, config.train().seed()));
  return Records{data.train->num_records(), data.stream_directory};
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
                  "Seconds to wait for the parameter servers, or the other processes that hold the "
                  "variables, to appear")
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
                                                 ReceivedValues* proposed, StopSignal* stop) {
  // What changes in a script from one run to the next is what its user wants.
  const OwnershipOptions ownership = {absl::Seconds(flags.owner_lease_seconds),
                                      flags.accept_new_config || context.config_from_script};
  ASSIGN_OR_RETURN(std::unique_ptr<DirectoryOwner> owner,
                   TakeModelDirectory(context, ownership, FileSystem::Real(), Clock::Real(), stop));
  if (proposed != nullptr) RETURN_IF_ERROR(proposed->Place());
  ASSIGN_OR_RETURN(const ModelVariables model, InferVariables(context.config.model()));
  ASSIGN_OR_RETURN(Records records, RecordsOf(context.config));
  ChiefOptions options;
  options.owner = std::move(owner);
  options.self = context.self;
  options.incarnation = context.incarnation;
  options.config = WithModeOf(context.config, context.cluster);
  options.config_hash = context.config_hash;
  const v1::InitialValuesConfig& initial = context.config.initial_values();
  ASSIGN_OR_RETURN(options.variables, WithInitialValues(initial, model.variables, model.tables));
  ASSIGN_OR_RETURN(options.tables, TablesWithInitialValues(initial, model.variables, model.tables));
  options.train_records = records.count;
  options.stream = std::move(records.stream);
  options.expects_evaluator = !context.cluster.evaluators.empty();
  options.expected_members = ExpectedMembers(context.cluster);
  options.replicas = WantsReplicas(context.config, context.cluster);
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

namespace {

// How many scripts take part whose agents are processes of their own. Where a cluster with servers
// does not list its workers, the chief knows the one that has proposed the job.
int ScriptsBeside(const ClusterSpec& cluster) {
  if (cluster.collective()) return static_cast<int>(cluster.ShardHosts().size()) - 1;
  return std::max(1, static_cast<int>(cluster.workers.size()));
}

// How many workers other than `self` were members of the job and have left it.
int WorkersThatLeft(const CoordinatorStatus& status, const Task& self) {
  std::set<int> left;
  for (const Member& member : status.members) {
    const bool other = member.task.role == Role::kWorker && member.task != self;
    if (other && member.state == Member::kLeft) {
      left.insert(member.task.index);
    }
  }
  return static_cast<int>(left.size());
}

// The servers of the job as this process calls them.
class Servers {
 public:
  Servers(const RoleContext& context, const ChiefSurroundings& surroundings)
      : context_(context), surroundings_(surroundings) {
    for (const auto& [index, address] : context.cluster.ps) {
      const Task server = {Role::kPs, index};
      servers_.push_back({server.ToString(), address, ConnectionTo(server).get()});
    }
    AddHosts(ShardLayout(context.config, context.cluster));
  }

  const std::vector<ServerGroup::Server>& list() const { return servers_; }
  // Calls of this task's process go there from now on; empty: nobody knows where it is.
  void MoveTo(const Task& task, const std::string& address) {
    const auto connection = connections_.find(task);
    if (connection != connections_.end()) connection->second->MoveTo(address);
  }

 private:
  // The tasks that hold shards beside training: each shard may be at all of them, the next one
  // first.
  void AddHosts(const ShardLayout& layout) {
    const auto host = [&](size_t s) { return layout.hosts()[s - layout.servers()]; };
    for (size_t s = layout.servers(); s < layout.num_shards(); ++s) {
      ServerGroup::Server home = HostedBy(host(s), s);
      for (const size_t next : layout.RingFrom(s)) {
        if (next != s) home.others.push_back(HostedBy(host(next), s));
      }
      servers_.push_back(std::move(home));
    }
  }

  ServerGroup::Server HostedBy(const Task& host, size_t shard) {
    ParameterControl* service = nullptr;
    if (host == context_.self) {
      service = surroundings_.shard->control(shard);
    } else {
      shards_.push_back(
          std::make_unique<ShardControl>(static_cast<uint32_t>(shard), ConnectionTo(host)));
      service = shards_.back().get();
    }
    return {absl::StrCat("shard-", shard, " of ", host.ToString()), AddressOf(host), service, host};
  }

  // Empty: the cluster does not list it.
  std::string AddressOf(const Task& task) const {
    const TaskAddresses& listed = context_.cluster.addresses(task.role);
    const auto own = listed.find(task.index);
    return own == listed.end() ? "" : own->second;
  }

  std::shared_ptr<ParameterControl> ConnectionTo(const Task& task) {
    std::shared_ptr<MovingControl>& connection = connections_[task];
    if (connection == nullptr) {
      const bool replicas =
          task.role != Role::kPs && WantsReplicas(context_.config, context_.cluster);
      connection = std::make_shared<MovingControl>(
          task.ToString(), [this, task, replicas](const std::string& address) {
            return ConnectParameterControl(task.ToString(), address,
                                           CredentialsOf(context_, Role::kChief),
                                           replicas ? kWithReplicas : ControlDeadlines());
          });
      connection->MoveTo(AddressOf(task));
    }
    return connection;
  }

  const RoleContext& context_;
  const ChiefSurroundings& surroundings_;
  std::map<Task, std::shared_ptr<MovingControl>> connections_;
  std::vector<std::unique_ptr<ParameterControl>> shards_;
  std::vector<ServerGroup::Server> servers_;
};

// Has chief and connections follow the processes that say where they are, for as long as it lives.
class HostFollower {
 public:
  // `hosts` may be null: the cluster lists all. All outlive this.
  HostFollower(AnnouncedHosts* hosts, Servers* servers, Chief* chief) : hosts_(hosts) {
    if (hosts_ == nullptr) return;
    hosts_->Watch([servers, chief](const Task& host, const std::string& address) {
      servers->MoveTo(host, address);
      chief->NoteAddress(host, address);
    });
  }
  ~HostFollower() {
    if (hosts_ != nullptr) hosts_->Watch(nullptr);
  }

 private:
  AnnouncedHosts* const hosts_;
};

// What takes the announcements of the other processes; null: the cluster lists them.
std::unique_ptr<AnnouncedHosts> HostsOf(const RoleContext& context) {
  if (!context.cluster.peers_register()) return nullptr;
  return std::make_unique<AnnouncedHosts>(context.cluster, context.config_hash, Clock::Real());
}

// As RunChiefRole, of a job that is known. `left`: receives how many workers have left it.
absl::Status RunKnownJob(const RoleContext& context, const ChiefFlags& flags,
                         const std::string& token, ReceivedValues* proposed,
                         const ChiefSurroundings& surroundings, StopSignal* stop, int* left) {
  Servers servers(context, surroundings);
  ASSIGN_OR_RETURN(const std::unique_ptr<Chief> chief,
                   MakeChief(context, flags, servers.list(), proposed, stop));
  const MetricRegistry::Registration metrics =
      AddChiefMetrics(&context.telemetry->metrics, chief.get(), context.config.checkpoint());
  const AccessGuard guard(SecretsOf(context, token));
  const std::unique_ptr<AnnouncedHosts> hosts = HostsOf(context);
  const HostFollower follower(hosts.get(), &servers, chief.get());
  ChiefGrpcService service(chief->service(), &guard, hosts.get());
  HealthService health(&context.telemetry->ready, {v1::ChiefService::service_full_name()});
  std::vector<grpc::Service*> services = {&service, &health};
  ServiceShell shell;
  if (surroundings.shard.has_value()) {
    shell = surroundings.shard->make_shell(&guard);
    services.push_back(shell.service.get());
  }
  RawServing serving = shell.serving;
  for (ByteMethod& method : service.ByteMethods()) {
    serving.through_memory.push_back(std::move(method));
  }
  serving.guard = &guard;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(context.cluster.ListenAddress(), grpc::InsecureServerCredentials(), services,
                       std::move(serving)));
  LogInfo("listening on port ", server->port());
  context.telemetry->ready = true;
  const absl::Status status = RunChief(context, chief.get(), surroundings.companions, stop);
  *left = WorkersThatLeft(chief->coordinator()->reports()->GetStatus(), context.self);
  context.telemetry->ready = false;
  health.Stop();
  server->Shutdown(kShutdownGrace);
  return status;
}

}  // namespace

absl::Status RunChiefRole(const RoleContext& context, const ChiefFlags& flags,
                          const ChiefSurroundings& surroundings, StopSignal* stop) {
  ASSIGN_OR_RETURN(const std::string token, TokenOf(flags));
  int left = 0;
  if (!context.config_from_script && surroundings.job == nullptr) {
    return RunKnownJob(context, flags, token, nullptr, surroundings, stop, &left);
  }
  std::optional<ProposedJob> awaited;
  if (surroundings.job == nullptr) {
    ASSIGN_OR_RETURN(awaited,
                     AwaitProposedJob(context, context.cluster.ListenAddress(), token, stop));
  }
  const ProposedJob& job = awaited.has_value() ? *awaited : *surroundings.job;
  RoleContext known = context;
  known.config_from_script = true;
  known.config = job.config;
  known.config_hash = ConfigHash(job.config);
  const absl::Status status =
      RunKnownJob(known, flags, token, job.values.get(), surroundings, stop, &left);
  // Another chief answers where this one was replaced, and a restarted one where that helps.
  if (ExitCodeFor(status) == kExitPermanent && !absl::IsAlreadyExists(status)) {
    TellScripts(known, context.cluster.ListenAddress(), token, status,
                ScriptsBeside(context.cluster) - left);
  }
  return status;
}

}  // namespace keelson
