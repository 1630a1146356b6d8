#include "tests/support/local_cluster.h"

#include <google/protobuf/text_format.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/lifecycle/chief_role.h"
#include "core/base/random.h"
#include "core/client/services/grpc_chief_service.h"
#include "core/client/services/grpc_parameter_control.h"
#include "core/config/shard_layout.h"
#include "core/config/train_config.h"
#include "core/startup/done_watcher.h"
#include "evaluator/evaluator_role.h"
#include "gtest/gtest.h"
#include "worker/worker_role.h"

namespace keelson {
namespace {

constexpr absl::Duration kProgressLimit = absl::Minutes(2);
constexpr absl::Duration kPollPause = absl::Milliseconds(5);
constexpr absl::Duration kShutdownGrace = absl::Milliseconds(200);

constexpr char kSmallConfig[] = R"pb(
  model {
    input_shape: [ 28, 28, 1 ]
    layers { flatten {} }
    layers { dense { units: 16 } }
    layers { relu {} }
    layers { dense { units: 10 } }
    loss { kind: SOFTMAX_CROSS_ENTROPY }
  }
  optimizer {
    momentum {}
    clip_global_norm: 5
  }
  learning_rate { base: 0.05 }
  data { generated { train_records: 100 eval_records: 20 } }
  train { batch_size: 8 max_steps: 48 seed: 7 summary_steps: 16 }
  checkpoint { save_steps: 16 keep_max: 0 }
)pb";

WorkerFlags OneThread() {
  WorkerFlags flags;
  flags.device = "cpu";
  flags.compute_threads = 1;
  flags.peer_timeout_seconds = 120;
  return flags;
}

}  // namespace

v1::TrainConfig SmallConfig(const std::string& model_dir) {
  v1::TrainConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSmallConfig, &config));
  config.mutable_checkpoint()->set_model_dir(model_dir);
  const absl::Status status = FinalizeTrainConfig(&config);
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

v1::TrainConfig LongerConfig(const std::string& model_dir) {
  v1::TrainConfig config = SmallConfig(model_dir);
  config.mutable_train()->set_max_steps(200);
  return config;
}

LocalCluster::Options LocalCluster::Options::Collective(bool chief_trains, int workers,
                                                        const v1::TrainConfig& config) {
  Options options;
  options.servers = workers + (chief_trains ? 1 : 0);
  options.workers = workers;
  options.config = config;
  options.collective = true;
  options.chief_trains = chief_trains;
  return options;
}

LocalCluster::Options LocalCluster::Options::Hybrid(int servers, int workers,
                                                    const v1::TrainConfig& config) {
  Options options;
  options.servers = servers + workers;
  options.workers = workers;
  options.config = config;
  options.worker_shards = workers;
  return options;
}

LocalCluster::ServerMember::ServerMember(const ParameterHandler::Options& options)
    : handler(options, Clock::Real(), &end), service(&handler, &handler) {}

LocalCluster::LocalCluster(Options options)
    : options_(std::move(options)),
      ports_(options_.servers + 1),
      servers_(options_.servers),
      workers_(options_.workers) {}

LocalCluster::~LocalCluster() {
  for (auto& worker : workers_) {
    if (worker != nullptr) worker->stop.Raise();
  }
  for (Member* const member : {training_chief_.get(), evaluator_.get()}) {
    if (member != nullptr) member->stop.Raise();
  }
  for (auto& worker : workers_) Join(&worker).IgnoreError();
  Join(&training_chief_).IgnoreError();
  Join(&evaluator_).IgnoreError();
  if (chief_ != nullptr) StopChief().IgnoreError();
}

void LocalCluster::Start() {
  for (int s = 0; s < options_.servers; ++s) StartServer(s);
  StartChief();
  if (options_.chief_trains) training_chief_ = StartTraining({Role::kChief, 0});
  for (int w = 0; w < options_.workers; ++w) StartWorker(w);
  if (options_.evaluator) StartEvaluator();
}

std::vector<Task> LocalCluster::Trainers() const {
  std::vector<Task> trainers;
  if (options_.chief_trains) trainers.push_back({Role::kChief, 0});
  for (int w = 0; w < options_.workers; ++w) trainers.push_back({Role::kWorker, w});
  return trainers;
}

std::optional<Task> LocalCluster::HostOf(int shard) const {
  if (options_.collective) return Trainers()[shard];
  const int worker = shard - (options_.servers - options_.worker_shards);
  if (worker < 0) return std::nullopt;
  return Task{Role::kWorker, worker};
}

std::string LocalCluster::ServerAddress(int index) const {
  return absl::StrCat("127.0.0.1:", ports_[1 + index]);
}

std::string LocalCluster::ChiefAddress() const { return absl::StrCat("127.0.0.1:", ports_[0]); }

RoleContext LocalCluster::ContextOf(Task task) const {
  RoleContext context;
  context.self = task;
  context.incarnation = RandomId();
  context.peer = absl::StrCat("test:", task.ToString());
  context.config = options_.config;
  context.config_hash = ConfigHash(options_.config);
  context.cluster.self = task;
  context.cluster.distributed = true;
  if (options_.collective) {
    const std::vector<Task> hosts = Trainers();
    for (int s = 0; s < options_.servers; ++s) {
      context.cluster.addresses(hosts[s].role)[hosts[s].index] = ServerAddress(s);
    }
  } else {
    context.cluster.chief = {{0, ChiefAddress()}};
    const int servers = options_.servers - options_.worker_shards;
    for (int s = 0; s < servers; ++s) context.cluster.ps[s] = ServerAddress(s);
    for (int w = 0; w < options_.worker_shards; ++w) {
      context.cluster.workers[w] = ServerAddress(servers + w);
    }
  }
  if (options_.evaluator) context.cluster.evaluators = {{0, "127.0.0.1:1"}};
  return context;
}

void LocalCluster::StartServer(int index) {
  auto member = std::make_unique<ServerMember>(
      ParameterHandler::Options{.incarnation = RandomId(),
                                .config_hash = ConfigHash(options_.config),
                                .model_dir = options_.config.checkpoint().model_dir()});
  auto server = RpcServer::Start(ServerAddress(index), grpc::InsecureServerCredentials(),
                                 {&member->service}, {member->service.RawMethods()});
  ASSERT_TRUE(server.ok()) << server.status();
  member->server = *std::move(server);
  servers_[index] = std::move(member);
}

void LocalCluster::KillServer(int index) { servers_[index] = nullptr; }

v1::ShardStatus LocalCluster::ShardStatus(int index) const {
  v1::ShardStatus status;
  EXPECT_TRUE(servers_.at(index)->handler.GetStatus({}, &status).ok());
  return status;
}

void LocalCluster::StartChief() {
  auto member = std::make_unique<ChiefMember>();
  std::vector<ServerGroup::Server> servers;
  for (int s = 0; s < options_.servers; ++s) {
    const std::string name = absl::StrCat("ps-", s);
    member->connections.push_back(ConnectParameterControl(name, ServerAddress(s), Credentials()));
    member->links.push_back(
        std::make_unique<FaultyParameterControl>(member->connections.back().get()));
    servers.push_back({name, ServerAddress(s), member->links.back().get()});
    servers.back().host = HostOf(s);
  }
  ChiefFlags flags;
  flags.lease_seconds = options_.lease_seconds;
  auto chief =
      MakeChief(ContextOf({Role::kChief, 0}), flags, std::move(servers), nullptr, &member->stop);
  ASSERT_TRUE(chief.ok()) << chief.status();
  member->chief = *std::move(chief);
  member->service = std::make_unique<ChiefGrpcService>(member->chief->service());
  auto server =
      RpcServer::Start(ChiefAddress(), grpc::InsecureServerCredentials(), {member->service.get()});
  ASSERT_TRUE(server.ok()) << server.status();
  member->server = *std::move(server);
  ChiefMember* const running = member.get();
  member->thread = std::thread([running] { running->status = running->chief->Run(); });
  chief_ = std::move(member);
}

absl::Status LocalCluster::WaitForChief() {
  chief_->thread.join();
  chief_->server->Shutdown(kShutdownGrace);
  return chief_->status;
}

absl::Status LocalCluster::StopChief() {
  chief_->stop.Raise();
  const absl::Status status = chief_->thread.joinable() ? WaitForChief() : chief_->status;
  chief_ = nullptr;
  return status;
}

void LocalCluster::KillChief() {
  for (const auto& link : chief_->links) link->Sever();
  chief_->server->Shutdown(absl::ZeroDuration());
  StopChief().IgnoreError();
}

std::unique_ptr<LocalCluster::Member> LocalCluster::MakeMember(Task task) {
  auto member = std::make_unique<Member>();
  member->context = ContextOf(task);
  member->connection = ConnectChiefService(ChiefAddress(), Credentials());
  ChiefService* const chief = member->connection.get();
  member->link = std::make_unique<FaultyChiefService>(chief);
  member->link->Answer(&ChiefService::AcquireWork,
                       [this, chief](const auto& request, auto* response) {
                         return gate_.AcquireWork(chief, request, response);
                       });
  return member;
}

absl::Status LocalCluster::Join(std::unique_ptr<Member>* member) {
  if (*member == nullptr) return absl::OkStatus();
  (*member)->thread.join();
  const absl::Status status = (*member)->status;
  *member = nullptr;
  return status;
}

absl::Status LocalCluster::RunWorker(Member* member) const {
  const auto devices = options_.open_devices
                           ? options_.open_devices()
                           : OpenWorkerDevices(OneThread(), member->context.cluster);
  if (!devices.ok()) return devices.status();
  BulkHandler* const own = OwnShardOf(member->context);
  // As a program's, it may find no chief any more to tell it that a short job is over.
  const DoneWatcher done(member->context, &member->stop);
  return done.Explain(
      RunWorkerRole(member->context, OneThread(), devices->get(), member->link.get(),
                    GrpcParameterClients(member->context, OneThread(), own), &member->stop));
}

BulkHandler* LocalCluster::OwnShardOf(const RoleContext& context) const {
  const std::optional<size_t> home =
      ShardLayout(context.config, context.cluster).HomeAt(context.self);
  return home.has_value() ? &servers_[*home]->handler : nullptr;
}

std::unique_ptr<LocalCluster::Member> LocalCluster::StartTraining(Task task) {
  std::unique_ptr<Member> started = MakeMember(task);
  Member* const member = started.get();
  member->thread = std::thread([this, member] { member->status = RunWorker(member); });
  return started;
}

void LocalCluster::StartWorker(int index) {
  workers_[index] = StartTraining({Role::kWorker, index});
}

void LocalCluster::KillWorker(int index) {
  workers_[index]->link->Sever();
  workers_[index]->stop.Raise();
  Join(&workers_[index]).IgnoreError();
}

void LocalCluster::StartEvaluator() {
  evaluator_ = MakeMember({Role::kEvaluator, 0});
  Member* const member = evaluator_.get();
  member->thread = std::thread([member] {
    EvaluatorFlags flags;
    flags.device = "cpu";
    flags.compute_threads = 1;
    member->status = RunEvaluatorRole(member->context, flags, member->link.get(), &member->stop);
  });
}

void LocalCluster::ExpectDone() {
  const absl::Status chief = WaitForChief();
  EXPECT_TRUE(chief.ok()) << chief;
  const absl::Status trained = Join(&training_chief_);
  EXPECT_TRUE(trained.ok()) << "the chief's training: " << trained;
  for (size_t w = 0; w < workers_.size(); ++w) {
    const absl::Status worker = Join(&workers_[w]);
    EXPECT_TRUE(worker.ok()) << "worker-" << w << ": " << worker;
  }
  const absl::Status evaluator = Join(&evaluator_);
  EXPECT_TRUE(evaluator.ok()) << evaluator;
}

void LocalCluster::WaitForStep(int64_t step) {
  const absl::Time deadline = absl::Now() + kProgressLimit;
  while (chief().coordinator()->reports()->GetStatus().step < step) {
    ASSERT_LT(absl::Now(), deadline) << "step " << step;
    absl::SleepFor(kPollPause);
  }
}

void LocalCluster::WaitForSnapshot(int64_t step) {
  const absl::Time deadline = absl::Now() + kProgressLimit;
  while (chief().coordinator()->reports()->GetStatus().snapshot_step < step) {
    ASSERT_LT(absl::Now(), deadline) << "snapshot of step " << step;
    absl::SleepFor(kPollPause);
  }
}

void LocalCluster::WaitForWorkers(int count) {
  const absl::Time deadline = absl::Now() + kProgressLimit;
  const auto alive = [this] {
    const std::vector<keelson::Member> members =
        chief().coordinator()->reports()->GetStatus().members;
    return std::count_if(members.begin(), members.end(), [](const keelson::Member& member) {
      return member.task.role != Role::kEvaluator && member.state == keelson::Member::kAlive;
    });
  };
  while (alive() < count) {
    ASSERT_LT(absl::Now(), deadline) << count << " workers";
    absl::SleepFor(kPollPause);
  }
}

}  // namespace keelson
