#include "tests/search/roles.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/lifecycle/chief.h"
#include "core/base/clock.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/client/sharded_parameter_client.h"
#include "core/config/initial_values.h"
#include "core/config/train_config.h"
#include "core/device/device.h"
#include "core/model/spec/model_spec.h"
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

std::vector<ServerGroup::Server> SimRoles::ServersOf(SimProcess* chief) {
  std::vector<ServerGroup::Server> servers;
  for (size_t s = 0; s < scenario_.servers; ++s) {
    const std::string name = absl::StrCat("ps-", s);
    servers.push_back({name, name,
                       new SimParameterControl(
                           network_, chief, 1 + s,
                           [this](const v1::InitializeShardRequest& request) {
                             rules_->CheckInitialize(request);
                           },
                           [this](const v1::ChiefHeartbeatRequest& request) {
                             rules_->CheckPersisted(request);
                           })});
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
  options.self = {Role::kChief, 0};
  options.incarnation = scheduler_->Random();
  options.config = config_;
  options.config_hash = config_hash_;
  const ModelSpec spec = *InferModelSpec(config_.model());
  options.variables = spec.variables;
  options.tables = *TablesWithInitialValues(config_.initial_values(), spec.variables, spec.tables);
  options.train_records = scenario_.job.records;
  options.expects_evaluator = scenario_.evaluators > 0;
  options.address = "chief";
  options.startup_timeout = absl::Minutes(1);
  options.lease = kSimLease;
  options.checkpoint_writer =
      scenario_.servers_write ? CheckpointWriter::kServers : CheckpointWriter::kChief;
  options.file_system = files;
  absl::StatusOr<std::unique_ptr<Chief>> chief =
      Chief::Create(std::move(options), ServersOf(process), Clock::Real(), stop);
  if (!chief.ok()) return chief.status();
  process->chief = (*chief)->service();
  // One that was replaced while it was frozen has lost its address.
  if (!is_replaced_(process)) network_->Connect(process->node, process);
  return chief->release()->Run();
}

absl::Status SimRoles::RunServer(SimProcess* process) {
  auto* const asked = process->stop = new StopSignal();
  auto* const end = new StopSignal();
  auto* const ends = new StopCallback(end, [asked] { asked->Raise(); });
  static_cast<void>(ends);
  ParameterHandler::Options options;
  options.incarnation = scheduler_->Random();
  options.config_hash = config_hash_;
  options.chief_exclusive = kSimLease;
  if (scenario_.servers_write) {
    options.model_dir = model_dir_;
    options.file_system = NewFileSystem(process);
  }
  auto* const handler = new ParameterHandler(options, Clock::Real(), end);
  process->control = handler;
  process->bulk = handler;
  network_->Connect(process->node, process);
  // As the program does.
  asked->Wait();
  handler->Leave();
  LingerForChief([handler] { return handler->chief_sign(); },
                 [handler] { return handler->CloseIfSaved(); }, DepartureLimits(), Clock::Real(),
                 *end);
  if (!end->raised()) {
    // What its snapshot lacks of a step under way is computed again.
    if (handler->chief_sign().unsaved) rules_->NoteLostShard();
    return absl::CancelledError("by a signal");
  }
  // Finish has to be answered.
  const StopSignal never;
  never.WaitFor(kAnswerTime);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ParameterClient>> SimRoles::MakeClient(
    SimProcess* process, ParameterClientRequest request) {
  const ModelSpec spec = *InferModelSpec(config_.model());
  ShardedParameterClient::Options options =
      TransferOptions(config_, spec.variables, request.placement);
  options.self = {Role::kWorker, static_cast<int>(process->node - 1 - scenario_.servers)};
  options.membership = request.membership;
  options.member_epoch = request.member_epoch;
  options.memory = std::move(request.memory);
  options.call_timeout = absl::Seconds(5);
  std::vector<size_t> servers;
  for (size_t s = 0; s < scenario_.servers; ++s) servers.push_back(1 + s);
  return ShardedParameterClient::Create(std::move(options), spec.variables, request.placement,
                                        MakeSimBulkTransport(network_, process, servers),
                                        Clock::Real(), request.stop);
}

absl::Status SimRoles::RunWorker(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  WorkerOptions options;
  options.self = {Role::kWorker, static_cast<int>(process->node - 1 - scenario_.servers)};
  options.peer = scenario_.NameOf(process->node);
  options.config = config_;
  options.config_hash = config_hash_;
  DeviceGroup* const devices =
      RecordDevices({[this](int64_t record) {
                       rules_->NoteComputed(record);
                       scheduler_->WaitFor(
                           this, scheduler_->Between(absl::Milliseconds(1), scenario_.step_time));
                     },
                     [this](const std::vector<float>& rows) { rules_->CheckRead(rows); }})
          .release();
  auto* const worker = new Worker(
      options, new SimChiefService(network_, process, 0),
      [this, process](ParameterClientRequest request) {
        return MakeClient(process, std::move(request));
      },
      devices, &dataset_, Clock::Real(), stop);
  return worker->Run();
}

absl::Status SimRoles::RunEvaluator(SimProcess* process) {
  auto* const stop = process->stop = new StopSignal();
  SimFileSystem* const files = NewFileSystem(process);
  EvaluatorOptions options;
  options.self = {Role::kEvaluator,
                  static_cast<int>(process->node - 1 - scenario_.servers - scenario_.workers)};
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
