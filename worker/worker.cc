#include "worker/worker.h"

#include <cmath>

#include "absl/cleanup/cleanup.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/optim/clip.h"

namespace keelson {
namespace {

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
      make_client_(placement, {located.ps_addresses().begin(), located.ps_addresses().end()}));
  for (const VariableSpec& variable : model->variables()) gradients_.emplace_back(variable.shape);
  LogInfo("training on ", device_->name(), ", ", dataset_->num_records(), " records");
  return TrainUntilDone(client.get(), model.get());
}

absl::Status Worker::TrainUntilDone(ParameterClient* client, Model* model) {
  Batcher batcher(dataset_, &session_,
                  {options_.config.train().seed(), options_.config.data().sequential()});
  const absl::Cleanup end_wait_for_work = [this] { stop_.Raise(); };
  while (true) {
    const absl::Duration start = clock_->Monotonic();
    ASSIGN_OR_RETURN(std::optional<PreparedBatch> prepared, batcher.Next());
    if (!prepared.has_value()) return absl::OkStatus();
    if (stop_.raised()) return absl::CancelledError("by a signal");
    if (progress_.IsValid(prepared->ticket)) {
      RETURN_IF_ERROR(TrainStep(*prepared, clock_->Monotonic() - start, client, model));
    }
    batcher.Recycle(std::move(prepared->batch));
  }
}

absl::Status Worker::TrainStep(const PreparedBatch& prepared, absl::Duration input_wait,
                               ParameterClient* client, Model* model) {
  FinishedStep step;
  step.ticket = prepared.ticket;
  step.input = input_wait;
  const absl::Duration start = clock_->Monotonic();
  RETURN_IF_ERROR(client->Pull());
  const absl::Duration pulled = clock_->Monotonic();
  RETURN_IF_ERROR(LoadValues(*client, model));
  ASSIGN_OR_RETURN(
      const StepResult result,
      model->ComputeGradients(prepared.batch,
                              DropoutSeed(options_.config.train().seed(), step.ticket.step),
                              absl::MakeSpan(gradients_), nullptr));
  if (!std::isfinite(result.loss)) {
    progress_.AddNonFiniteLoss();
    return absl::OkStatus();
  }
  ClipGradients();
  const absl::Duration computed = clock_->Monotonic();
  ASSIGN_OR_RETURN(const PushResult pushed, client->Push(step.ticket.step, gradients_));
  step.loss = result.loss;
  step.staleness = pushed.staleness;
  step.push_retries = pushed.retries;
  step.pull = pulled - start;
  step.compute = computed - pulled;
  step.push = clock_->Monotonic() - computed;
  progress_.Finish(step);
  return absl::OkStatus();
}

absl::Status Worker::LoadValues(const ParameterClient& client, Model* model) {
  for (size_t i = 0; i < client.values().size(); ++i) {
    RETURN_IF_ERROR(model->SetVariable(static_cast<int>(i), client.values()[i].span()));
  }
  return absl::OkStatus();
}

void Worker::ClipGradients() {
  const float max_norm = options_.config.optimizer().clip_global_norm();
  if (max_norm <= 0) return;
  std::vector<absl::Span<float>> spans;
  for (Tensor& gradient : gradients_) spans.push_back(gradient.span());
  ClipByGlobalNorm(spans, max_norm);
}

}  // namespace keelson
