#include "tests/search/roles.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/services/retry.h"
#include "core/client/services/shard_control.h"
#include "core/client/sharded_parameter_client.h"
#include "core/client/transport/own_shard_transport.h"
#include "core/cluster/task_proto.h"
#include "core/config/initial_values.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config.h"
#include "core/device/device.h"
#include "core/model/spec/model_spec.h"
#include "core/startup/role_program.h"
#include "evaluator/evaluator.h"
#include "ps_server/service/departure.h"
#include "ps_server/service/parameter_handler.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

constexpr int64_t kOwnerLeaseSeconds = 3;
constexpr absl::Duration kEvaluatorPoll = absl::Milliseconds(500);
// A server that was told that the job is over goes on answering for so long.
constexpr absl::Duration kAnswerTime = absl::Seconds(1);

}  // namespace

SimRoles::SimRoles(const Surroundings& around)
    : scenario_(*around.scenario),
      config_(*around.config),
      scheduler_(around.scheduler),
      disk_(around.disk),
      network_(around.network),
      rules_(around.rules),
      at_(around.at),
      is_replaced_(around.is_replaced),
      model_dir_(config_.checkpoint().model_dir()),
      config_hash_(ConfigHash(config_)),
      dataset_(scenario_.job.records, scenario_.job.table),
      eval_dataset_(1, scenario_.job.table) {}

absl::Status SimRoles::Run(SimProcess* process) {
  if (process->node == 0) return RunChief(process);
  if (scenario_.HostsShard(process->node)) return RunHost(process);
  if (scenario_.IsServer(process->node)) return RunServer(process);
  if (scenario_.IsWorker(process->node)) return RunWorker(process);
  return RunEvaluator(process);
}

absl::StatusOr<std::shared_ptr<DirectoryOwner>> SimRoles::TakeDirectory(FileSystem* file_system,
                                                                        StopSignal* stop) {
  DirectoryOwner::Options options;
  options.model_dir = model_dir_;
  options.self.set_owner(scheduler_->Random());
  options.self.set_task("chief-0");
  options.self.set_boot_id("simulated");
  options.self.set_lease_seconds(kOwnerLeaseSeconds);
  absl::StatusOr<std::unique_ptr<DirectoryOwner>> owner =
      DirectoryOwner::Take(std::move(options), file_system, Clock::Real(), stop);
  if (!owner.ok()) return owner.status();
  return std::shared_ptr<DirectoryOwner>(*std::move(owner));
}

SimFileSystem* SimRoles::NewFileSystem(SimProcess* process) {
  return new SimFileSystem(scheduler_, disk_, process,
                           [this, process](const SimPoint& point) { at_(process, point); });
}

Task SimRoles::TaskOf(size_t node) const {
  // Launchers number processes, and know no chief.
  if (scenario_.registers) return {Role::kWorker, static_cast<int>(node)};
  if (node == 0) return {Role::kChief, 0};
  if (scenario_.IsServer(node)) return {Role::kPs, static_cast<int>(node - 1)};
  if (scenario_.IsWorker(node)) {
    return {Role::kWorker, static_cast<int>(node - 1 - scenario_.servers)};
  }
  return {Role::kEvaluator, static_cast<int>(node - 1 - scenario_.servers - scenario_.workers)};
}

ClusterSpec SimRoles::ClusterOf(size_t node) const {
  ClusterSpec cluster;
  cluster.distributed = true;
  cluster.self = TaskOf(node);
  for (size_t each = 0; each < scenario_.nodes(); ++each) {
    const Task task = TaskOf(each);
    if (scenario_.registers && each > 0) continue;
    cluster.addresses(task.role)[task.index] = scenario_.NameOf(each);
  }
  if (!scenario_.registers) return cluster;
  cluster.min_workers = static_cast<int>(scenario_.shards());
  cluster.world_size = cluster.min_workers;
  return cluster;
}

ClusterSpec SimRoles::ClusterOf(const SimProcess& process) const {
  ClusterSpec cluster = ClusterOf(process.node);
  if (process.address.empty()) return cluster;
  cluster.addresses(cluster.self.role)[cluster.self.index] = process.address;
  return cluster;
}

// A host that is frozen is replaced after two heartbeats.
ControlDeadlines SimRoles::HostDeadlines() const {
  if (!WantsReplicas(config_, ClusterOf(0))) return SimParameterControl::UsualDeadlines();
  return {absl::Milliseconds(1500), absl::Seconds(3)};
}

ServerGroup::Server SimRoles::PlaceOf(SimProcess* chief, ShardHandlers* own, size_t shard,
                                      size_t node, Connections* connections) {
  SimParameterControl::Route route = {{node}};
  const std::string name = scenario_.NameOf(node);
  const bool hosted = scenario_.IsHostedShard(shard);
  if (hosted) route.deadlines = HostDeadlines();
  if (node == chief->node) route.own = own->at(shard);
  SimControlWatch watch;
  watch.on_initialize =
      [this, chief, shard](const v1::InitializeShardRequest& request) -> std::function<void()> {
    const std::string wrong = rules_->CheckInitialize(*chief, shard, request);
    return [this, wrong] { rules_->NoteTaken(wrong); };
  };
  watch.on_heartbeat = [this](const v1::ChiefHeartbeatRequest& request) {
    rules_->CheckPersisted(request);
  };
  if (!hosted) {
    return {name, name, new SimParameterControl(network_, chief, route, std::move(watch))};
  }
  watch.on_end = [this, chief, shard](const SimProcess* host, absl::string_view what, bool done) {
    if (host != nullptr && !is_replaced_(chief)) rules_->NoteHostCall(shard, *host, what, done);
  };
  const Task host = TaskOf(node);
  const std::string title = absl::StrCat("shard-", shard, " of ", host.ToString());
  if (route.own != nullptr) {
    return {title, name, new SimParameterControl(network_, chief, route, std::move(watch)), host};
  }
  // As the program does.
  auto connection = std::make_shared<MovingControl>(
      host.ToString(), [this, chief, route, watch](const std::string& address) {
        SimParameterControl::Route there = route;
        there.target = network_->TargetAt(address);
        return std::make_unique<SimParameterControl>(network_, chief, there, watch);
      });
  const std::string listed = scenario_.registers ? "" : name;
  connection->MoveTo(listed);
  connections->emplace(host, connection);
  return {title, listed, new ShardControl(static_cast<uint32_t>(shard), std::move(connection)),
          host};
}

AnnouncedHosts* SimRoles::FollowHosts(Chief* chief, const Connections* connections) const {
  if (!scenario_.registers) return nullptr;
  auto* const hosts = new AnnouncedHosts(ClusterOf(0), config_hash_, Clock::Real());
  hosts->Watch([chief, connections](const Task& host, const std::string& address) {
    for (const auto& [task, connection] : *connections) {
      if (task == host) connection->MoveTo(address);
    }
    chief->NoteAddress(host, address);
  });
  return hosts;
}

std::vector<ServerGroup::Server> SimRoles::ServersOf(SimProcess* chief, ShardHandlers* own,
                                                     Connections* connections) {
  const ShardLayout layout(config_, ClusterOf(0));
  std::vector<ServerGroup::Server> servers;
  for (size_t s = 0; s < scenario_.shards(); ++s) {
    servers.push_back(PlaceOf(chief, own, s, scenario_.HomeOf(s), connections));
    if (!scenario_.IsHostedShard(s)) continue;
    for (const size_t next : layout.RingFrom(s)) {
      if (next == s) continue;
      servers.back().others.push_back(PlaceOf(chief, own, s, scenario_.HomeOf(next), connections));
    }
  }
  return servers;
}

// What a process makes is not destroyed by a kill, so it is not owned by anything that could be.
absl::Status SimRoles::RunChief(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  SimFileSystem* const files = NewFileSystem(process);
  // As every program does first.
  const auto marker = CheckpointDirectory(files, model_dir_, Clock::Real()).ReadDoneMarker();
  if (!marker.ok()) return marker.status();
  if (marker->has_value()) return absl::OkStatus();
  ChiefOptions options;
  absl::StatusOr<std::shared_ptr<DirectoryOwner>> owner = TakeDirectory(files, stop);
  if (!owner.ok()) return owner.status();
  options.owner = *std::move(owner);
  options.self = TaskOf(process->node);
  options.incarnation = scheduler_->Random();
  options.config = config_;
  options.config_hash = config_hash_;
  const ModelSpec spec = *InferModelSpec(config_.model());
  options.variables = spec.variables;
  options.tables = *TablesWithInitialValues(config_.initial_values(), spec.variables, spec.tables);
  options.train_records = scenario_.job.records;
  options.replicas = WantsReplicas(config_, ClusterOf(0));
  options.expects_evaluator = scenario_.evaluators > 0;
  options.address = "chief";
  options.startup_timeout = absl::Minutes(1);
  options.lease = kSimLease;
  options.checkpoint_writer =
      scenario_.servers_write ? CheckpointWriter::kServers : CheckpointWriter::kChief;
  options.file_system = files;
  ShardHandlers* const own =
      scenario_.HostsShard(0) ? MakeShards(process, new StopSignal()) : nullptr;
  auto* const connections = new Connections();
  absl::StatusOr<std::unique_ptr<Chief>> chief =
      Chief::Create(std::move(options), ServersOf(process, own, connections), Clock::Real(), stop);
  if (!chief.ok()) return chief.status();
  process->chief = (*chief)->service();
  process->announced = FollowHosts(chief->get(), connections);
  // One that was replaced while it was frozen has lost its address.
  if (!is_replaced_(process)) network_->Connect(process->node, process);
  if (own == nullptr) return chief->release()->Run();
  return Lead(process, chief->release(), own, stop);
}

absl::Status SimRoles::Lead(SimProcess* process, Chief* chief, ShardHandlers* own,
                            StopSignal* stop) {
  BulkHandler* const own_shards = MakeSimOwnShards(network_, process, own->calls()).release();
  auto* const context = new RoleContext();
  return keelson::RunChief(*context, chief,
                           {[=, this](ChiefService* service, StopSignal* companion_stop) {
                             return Train(process, service, own_shards, companion_stop);
                           }},
                           stop);
}

ShardHandlers* SimRoles::MakeShards(SimProcess* process, StopSignal* end) {
  ParameterHandler::Options options;
  options.incarnation = scheduler_->Random();
  options.config_hash = config_hash_;
  options.chief_exclusive = kSimLease;
  if (scenario_.servers_write) {
    options.model_dir = model_dir_;
    options.file_system = NewFileSystem(process);
  }
  std::vector<size_t> shards = {process->node - 1};
  if (scenario_.HostsShard(process->node)) {
    const ClusterSpec cluster = ClusterOf(process->node);
    const ShardLayout layout(config_, cluster);
    shards = layout.RingFrom(*layout.HomeAt(cluster.self));
    options.connect_host = [this, process](const std::string& address) {
      const SimParameterControl::Route route = {network_->TargetAt(address), nullptr,
                                                HostDeadlines()};
      return std::make_unique<SimParameterControl>(network_, process, route);
    };
  }
  auto* const made = new ShardHandlers(shards, options, Clock::Real(), end);
  process->control = made->calls();
  process->bulk = made->calls();
  return made;
}

absl::Status SimRoles::RunHost(SimProcess* process) {
  auto* const asked = process->stop = new StopSignal();
  auto* const end = new StopSignal();
  auto* const ends = new StopCallback(end, [asked] { asked->Raise(); });
  static_cast<void>(ends);
  ShardHandlers* const shards = MakeShards(process, end);
  int port = 0;
  if (scenario_.registers) {
    port = network_->ListenAnywhere(process);
  } else {
    network_->Connect(process->node, process);
  }
  BulkHandler* const own_shards = MakeSimOwnShards(network_, process, shards->calls()).release();
  // As the program does.
  const auto registered = Register(process, port, asked);
  absl::Status trained = registered.status();
  if (trained.ok()) {
    trained = Train(process, new SimChiefService(network_, process, 0), own_shards, asked);
  }
  if (!trained.ok() && !absl::IsCancelled(trained)) return trained;
  if (trained.ok() && !shards->called()) return trained;
  asked->Wait();
  if (registered.ok() && *registered != nullptr) RETURN_IF_ERROR((*registered)->status());
  shards->Linger(DepartureLimits());
  if (!shards->finished()) return absl::CancelledError("by a signal");
  // Finish has to be answered.
  const StopSignal never;
  never.WaitFor(kAnswerTime);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HostAnnouncer>> SimRoles::Register(SimProcess* process, int port,
                                                                  StopSignal* stop) {
  if (!scenario_.registers) return nullptr;
  v1::AnnounceHostRequest request;
  *request.mutable_header()->mutable_task() = TaskToProto(TaskOf(process->node));
  request.mutable_header()->set_incarnation(scheduler_->Random());
  request.set_config_hash(config_hash_);
  request.set_peer(scenario_.NameOf(process->node));
  request.set_hosts(static_cast<uint32_t>(scenario_.shards()));
  request.set_port(static_cast<uint32_t>(port));
  return HostAnnouncer::Start(request, std::make_unique<SimChiefService>(network_, process, 0),
                              RetryOptions(), Clock::Real(), stop, [stop] { stop->Raise(); });
}

absl::Status SimRoles::RunServer(SimProcess* process) {
  auto* const asked = process->stop = new StopSignal();
  auto* const end = new StopSignal();
  auto* const ends = new StopCallback(end, [asked] { asked->Raise(); });
  static_cast<void>(ends);
  ShardHandlers* const shards = MakeShards(process, end);
  network_->Connect(process->node, process);
  // As the program does.
  asked->Wait();
  shards->Linger(DepartureLimits());
  if (!end->raised()) {
    // What its snapshot lacks of a step under way is computed again.
    if (shards->own()->chief_sign().unsaved) rules_->NoteLostServer();
    return absl::CancelledError("by a signal");
  }
  // Finish has to be answered.
  const StopSignal never;
  never.WaitFor(kAnswerTime);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParameterClient>> SimRoles::MakeClient(
    SimProcess* process, BulkHandler* own_shards, ParameterClientRequest request) {
  const ModelSpec spec = *InferModelSpec(config_.model());
  ShardedParameterClient::Options options =
      TransferOptions(config_, spec.variables, request.placement);
  options.self = TaskOf(process->node);
  options.membership = request.membership;
  options.member_epoch = request.member_epoch;
  options.memory = std::move(request.memory);
  options.call_timeout = absl::Seconds(5);
  std::vector<SimTarget> targets;
  for (const std::string& address : request.ps_addresses) {
    targets.push_back(network_->TargetAt(address));
  }
  std::unique_ptr<BulkTransport> transport =
      MakeSimBulkTransport(network_, process, std::move(targets));
  if (own_shards != nullptr) {
    const ClusterSpec cluster = ClusterOf(*process);
    const ShardLayout layout(config_, cluster);
    options.names_shards = true;
    options.servers = NameServers(layout, cluster, request.ps_addresses);
    OwnShards own = {cluster.SelfAddress().value_or(""), {}};
    for (const size_t s : layout.RingFrom(*layout.HomeAt(cluster.self))) {
      own.handlers[s] = own_shards;
    }
    const std::vector<std::string> all(request.ps_addresses.begin(), request.ps_addresses.end());
    const auto first = std::find(all.begin(), all.end(), own.address);
    // The own shard's calls are made last.
    if (first != all.end()) {
      options.first_shard = static_cast<size_t>(first - all.begin() + 1) % all.size();
    }
    transport =
        std::make_unique<OwnShardTransport>(std::move(own), options.servers, std::move(transport));
  }
  return ShardedParameterClient::Create(std::move(options), spec.variables, request.placement,
                                        std::move(transport), Clock::Real(), request.stop);
}

absl::Status SimRoles::RunWorker(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  return Train(process, new SimChiefService(network_, process, 0), nullptr, stop);
}

absl::Status SimRoles::Train(SimProcess* process, ChiefService* chief, BulkHandler* own_shards,
                             StopSignal* stop) {
  WorkerOptions options;
  options.self = TaskOf(process->node);
  options.peer = scenario_.NameOf(process->node);
  options.config = config_;
  options.config_hash = config_hash_;
  options.servers_at = [this, process](const std::vector<std::string>& addresses) {
    const ClusterSpec cluster = ClusterOf(*process);
    return NameServers(ShardLayout(config_, cluster), cluster, addresses);
  };
  DeviceGroup* const devices =
      RecordDevices({[this](int64_t record) {
                       rules_->NoteComputed(record);
                       scheduler_->WaitFor(
                           this, scheduler_->Between(absl::Milliseconds(1), scenario_.step_time));
                     },
                     [this](const std::vector<float>& rows) { rules_->CheckRead(rows); }})
          .release();
  auto* const worker = new Worker(
      options, chief,
      [this, process, own_shards](ParameterClientRequest request) {
        return MakeClient(process, own_shards, std::move(request));
      },
      devices, &dataset_, Clock::Real(), stop);
  return worker->Run();
}

absl::Status SimRoles::RunEvaluator(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  SimFileSystem* const files = NewFileSystem(process);
  EvaluatorOptions options;
  options.self = TaskOf(process->node);
  options.peer = scenario_.NameOf(process->node);
  options.config = config_;
  options.config_hash = config_hash_;
  options.on_evaluation = [this](const EvaluationRecord& record, bool scored_here) {
    if (scored_here) rules_->NoteEvaluation(record);
  };
  options.file_system = options.lease_files = options.export_files = files;
  options.poll_interval = kEvaluatorPoll;
  Device* const device =
      ScoringDevice([this] {
        scheduler_->WaitFor(this, scheduler_->Between(absl::Milliseconds(1), scenario_.score_time));
      }).release();
  auto* const chief = new SimChiefService(network_, process, 0,
                                          [this](const v1::AcknowledgeEvaluationRequest& request) {
                                            rules_->CheckAcknowledged(request);
                                          });
  auto* const evaluator =
      new Evaluator(options, chief, device, &eval_dataset_, Clock::Real(), stop);
  return evaluator->Run();
}

}  // namespace keelson
