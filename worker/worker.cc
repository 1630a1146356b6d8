#include "worker/worker.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/client/plan/wire_plan.h"
#include "core/cluster/transfer_formats.h"
#include "core/optim/optimizer_groups.h"
#include "worker/device_status.h"
#include "worker/memberships.h"
#include "worker/training_loop.h"

namespace keelson {
namespace {

ChiefSession::Options SessionOptions(const WorkerOptions& options, const MembershipId& membership,
                                     const DeviceGroup& devices) {
  ChiefSession::Options out;
  out.self = options.self;
  out.membership = membership;
  out.config_hash = options.config_hash;
  out.peer = options.peer;
  out.device = devices.name();
  out.retry = options.retry;
  out.step_bound = options.step_bound;
  out.stream = options.stream;
  return out;
}

std::vector<size_t> FrozenOf(const v1::OptimizerConfig& optimizer,
                             absl::Span<const VariableSpec> variables) {
  std::vector<size_t> frozen;
  for (size_t v = 0; v < variables.size(); ++v) {
    if (IsFrozen(optimizer, variables[v])) frozen.push_back(v);
  }
  return frozen;
}

std::vector<size_t> FrozenTablesOf(const v1::OptimizerConfig& optimizer,
                                   absl::Span<const TableSpec> tables) {
  std::vector<size_t> frozen;
  for (size_t t = 0; t < tables.size(); ++t) {
    const v1::OptimizerConfig::Group* const group = OptimizerGroupOf(optimizer, tables[t].name);
    if (group != nullptr && group->frozen()) frozen.push_back(t);
  }
  return frozen;
}

}  // namespace

Worker::Worker(WorkerOptions options, ChiefService* chief, ParameterClientFactory make_client,
               DeviceGroup* devices, const Dataset* dataset, const Clock* clock, StopSignal* stop)
    : options_(std::move(options)),
      chief_(chief),
      make_client_(std::move(make_client)),
      devices_(devices),
      dataset_(dataset),
      clock_(clock),
      stop_(stop) {}

absl::Status Worker::Run() {
  absl::StatusOr<std::unique_ptr<Model>> model = Model::Create(options_.config.model(), devices_);
  if (!model.ok()) return DeviceStatus(model.status());
  (*model)->Freeze(FrozenOf(options_.config.optimizer(), (*model)->variables()),
                   FrozenTablesOf(options_.config.optimizer(), (*model)->spec().tables));
  histograms_ = MakeHistograms(**model);
  return RunMemberships(
      options_.retry, &progress_, clock_, stop_, [this] { return finished_steps_; },
      [&] { return RunMembership(model->get()); });
}

std::unique_ptr<GradientHistograms> Worker::MakeHistograms(const Model& model) const {
  const int64_t every = options_.config.train().histogram_steps();
  const std::string& model_dir = options_.config.checkpoint().model_dir();
  const bool is_first = options_.self.role == Role::kWorker && options_.self.index == 0;
  if (every == 0 || !is_first || model_dir.empty()) return nullptr;
  return std::make_unique<GradientHistograms>(
      GradientHistograms::Options{JoinPath(model_dir, "gradients"), every}, model.variables(),
      clock_);
}

absl::Status Worker::RunMembership(Model* model) {
  const MembershipId membership = options_.new_membership();
  ChiefSession session(SessionOptions(options_, membership, *devices_), chief_, &progress_, clock_,
                       stop_);
  RETURN_IF_ERROR(session.Join());
  const absl::Status status = RunJoined(&session, membership, model);
  session.Leave();
  // The session's error takes precedence: the calls that its end cancels are only consequences.
  const absl::Status over = session.status();
  return status.ok() || over.ok() ? status : over;
}

absl::Status Worker::RunJoined(ChiefSession* session, const MembershipId& membership,
                               Model* model) {
  ASSIGN_OR_RETURN(const v1::GetModelResponse located, session->WaitForModel());
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(located.placement()));
  // Not ASSIGN_OR_RETURN: GCC 14 would take the optional for uninitialised.
  absl::StatusOr<std::optional<ParameterMemory>> memory = MemoryFor(placement, model);
  RETURN_IF_ERROR(memory.status());
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterClient> client,
                   make_client_({std::move(placement),
                                 {located.ps_addresses().begin(), located.ps_addresses().end()},
                                 membership,
                                 located.member_epoch(),
                                 *std::move(memory),
                                 session->ended()}));
  const ServerFollower follower(session, client.get(), options_.servers_at);
  LogInfo("training on ", devices_->name(), ", ", dataset_->num_records(), " records");
  return TrainUntilDone(session, client.get(), model);
}

absl::StatusOr<std::optional<ParameterMemory>> Worker::MemoryFor(const Placement& placement,
                                                                 Model* model) {
  const v1::TransferConfig& transfer = options_.config.transfer();
  const size_t depth = transfer.depth();
  if (model->uses_wire_memory()) {
    ASSIGN_OR_RETURN(const std::vector<VariableWire> wire,
                     WireOf(placement, model->variables(),
                            ResolveTransferFormats(transfer, model->variables())));
    absl::StatusOr<WireMemory> memory = model->PrepareWire(wire, depth);
    if (!memory.ok()) return DeviceStatus(memory.status());
    if (histograms_ != nullptr) {
      std::vector<WireLayout> layouts;
      for (const VariableWire& variable : wire) layouts.push_back(variable.gradient);
      histograms_->UseWireMemory(std::move(layouts), memory->gradients);
    }
    return ParameterMemory{{}, {}, *std::move(memory)};
  }
  if (depth > 1) return std::nullopt;
  return ParameterMemory{model->HostValues(), model->HostGradients()};
}

absl::Status Worker::TrainUntilDone(ChiefSession* session, ParameterClient* client, Model* model) {
  BatcherOptions batches;
  batches.seed = options_.config.train().seed();
  batches.sequential = options_.config.data().sequential();
  batches.order_group = options_.config.data().order_group();
  batches.tables = TableFeaturesOf(model->spec());
  Batcher batcher(dataset_, session, batches);
  const std::unique_ptr<TableExchange> tables = TableExchange::Create(client, model, &batcher);
  TrainingLoop loop(
      {options_.config.train().seed(), options_.config.optimizer().clip_global_norm()}, session,
      &progress_, client, model, histograms_.get(), tables.get(), clock_);
  const absl::Cleanup end_wait_for_work = [session] { session->ended()->Raise(); };
  const absl::Status status = loop.Run(&batcher);
  finished_steps_ += loop.finished_steps();
  // A server refuses a membership that is over; the chief tells whether another process took the
  // task.
  if (absl::IsAborted(status)) session->Confirm().IgnoreError();
  return status;
}

}  // namespace keelson
