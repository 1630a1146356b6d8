#include "worker/worker.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/optim/clip.h"

namespace keelson {
namespace {

// Other workers go on while this one waits for work.
constexpr absl::Duration kValuesAreOld = absl::Seconds(1);

ChiefSession::Options SessionOptions(const WorkerOptions& options) {
  ChiefSession::Options out;
  out.self = options.self;
  out.incarnation = options.incarnation;
  out.config_hash = options.config_hash;
  out.peer = options.peer;
  out.retry = options.retry;
  return out;
}

// The same for every worker that takes the step.
uint64_t DropoutSeed(uint64_t seed, int64_t step) {
  const auto bits = Philox(seed, StableHash("dropout"), static_cast<uint64_t>(step));
  return (static_cast<uint64_t>(bits[0]) << 32) | bits[1];
}

}  // namespace

Worker::Worker(WorkerOptions options, ChiefService* chief, ParameterClientFactory make_client,
               Device* device, const Dataset* dataset, const Clock* clock, StopSignal* stop)
    : options_(std::move(options)),
      chief_(chief),
      make_client_(std::move(make_client)),
      device_(device),
      dataset_(dataset),
      clock_(clock),
      stop_(stop),
      session_(SessionOptions(options_), chief, &progress_, clock, &stop_) {}

absl::Status Worker::Run() {
  RETURN_IF_ERROR(session_.Join());
  const absl::Status status = RunJoined();
  session_.Leave();
  return status;
}

absl::Status Worker::RunJoined() {
  ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                   Model::Create(options_.config.model(), device_));
  ASSIGN_OR_RETURN(const v1::GetModelResponse located, session_.WaitForModel());
  ASSIGN_OR_RETURN(const Placement placement, Placement::FromProto(located.placement()));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ParameterClient> client,
      make_client_(placement, {located.ps_addresses().begin(), located.ps_addresses().end()},
                   LentMemory(*model)));
  LogInfo("training on ", device_->name(), ", ", dataset_->num_records(), " records");
  return TrainUntilDone(client.get(), model.get());
}

std::optional<ParameterMemory> Worker::LentMemory(const Model& model) const {
  if (options_.config.transfer().depth() > 1) return std::nullopt;
  ParameterMemory memory = {model.HostValues(), model.HostGradients()};
  if (memory.values.empty()) return std::nullopt;
  return memory;
}

absl::Status Worker::TrainUntilDone(ParameterClient* client, Model* model) {
  Batcher batcher(dataset_, &session_,
                  {options_.config.train().seed(), options_.config.data().sequential()});
  const absl::Cleanup end_wait_for_work = [this] { stop_.Raise(); };
  const absl::Status status = TrainOnBatches(&batcher, client, model);
  // A step that the servers have is counted, whatever ended the training.
  const absl::Status drained = Drain(client);
  return status.ok() ? drained : status;
}

absl::Status Worker::TrainOnBatches(Batcher* batcher, ParameterClient* client, Model* model) {
  while (true) {
    // The chief may be waiting for just that step before it gives out more.
    if (!batcher->Ready()) RETURN_IF_ERROR(Drain(client));
    const absl::Duration start = clock_->Monotonic();
    ASSIGN_OR_RETURN(std::optional<PreparedBatch> prepared, batcher->Next());
    if (!prepared.has_value()) return absl::OkStatus();
    if (stop_.raised()) return absl::CancelledError("by a signal");
    if (progress_.IsValid(prepared->ticket)) {
      FinishedStep step;
      step.ticket = prepared->ticket;
      step.input = clock_->Monotonic() - start;
      RETURN_IF_ERROR(TrainStep(*prepared, step, client, model));
    }
    batcher->Recycle(std::move(prepared->batch));
  }
}

absl::Status Worker::TrainStep(const PreparedBatch& prepared, FinishedStep step,
                               ParameterClient* client, Model* model) {
  const absl::Duration start = clock_->Monotonic();
  RETURN_IF_ERROR(LoadValues(client, model));
  const absl::Duration loaded = clock_->Monotonic();
  ASSIGN_OR_RETURN(const bool pushes, ComputeAndOffer(prepared, &step, client, model));
  if (!pushes) {
    progress_.AddNonFiniteLoss();
    return absl::OkStatus();
  }
  const absl::Duration computed = clock_->Monotonic();
  step.pull = loaded - start;
  step.compute = computed - loaded;
  under_way_.push_back(step);
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client->End());
  values_from_ = clock_->Monotonic();
  under_way_.back().push = values_from_ - computed;
  Acknowledge(pushed);
  return absl::OkStatus();
}

absl::Status Worker::LoadValues(ParameterClient* client, Model* model) {
  if (clock_->Monotonic() - values_from_ > kValuesAreOld) {
    RETURN_IF_ERROR(Drain(client));
    RETURN_IF_ERROR(client->Pull());
  }
  for (size_t i = 0; i < client->values().size(); ++i) {
    RETURN_IF_ERROR(model->SetVariable(static_cast<int>(i), client->values()[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Worker::ComputeAndOffer(const PreparedBatch& prepared, FinishedStep* step,
                                             ParameterClient* client, Model* model) {
  const float max_norm = options_.config.optimizer().clip_global_norm();
  bool begun = false;
  const auto begin = [&] {
    if (!begun) client->Begin(step->ticket.step);
    begun = true;
  };
  Model::GradientCallback offer;
  if (max_norm <= 0) {
    offer = [&](int variable) {
      begin();
      client->Offer(variable);
    };
  }
  ASSIGN_OR_RETURN(
      const StepResult result,
      model->ComputeGradients(prepared.batch,
                              DropoutSeed(options_.config.train().seed(), step->ticket.step),
                              client->gradients(), offer));
  if (!result.has_gradients) return false;
  step->loss = result.loss;
  if (max_norm > 0) ClipByGlobalNorm(client->gradients(), max_norm);
  begin();
  return true;
}

absl::Status Worker::Drain(ParameterClient* client) {
  if (under_way_.empty()) return absl::OkStatus();
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client->Drain());
  under_way_.back().push += clock_->Monotonic() - start;
  Acknowledge(pushed);
  return absl::OkStatus();
}

void Worker::Acknowledge(const std::optional<PushResult>& pushed) {
  if (!pushed.has_value()) return;
  FinishedStep step = under_way_.front();
  under_way_.pop_front();
  step.staleness = pushed->staleness;
  step.push_retries = pushed->retries;
  step.bytes_pushed = pushed->bytes_pushed;
  step.bytes_pulled = pushed->bytes_pulled;
  step.waited_for_credit = pushed->waited_for_credit;
  progress_.Finish(step);
}

}  // namespace keelson
