#include "bench/gpu/step.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "bench/gpu/random_memory.h"
#include "bench/load_client.h"
#include "bench/meter.h"
#include "bench/peer.h"
#include "bench/server_start.h"
#include "core/base/clock.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/client/grpc_parameter_client.h"
#include "core/client/plan/wire_plan.h"
#include "core/device/factory/device_factory.h"
#include "core/model/model.h"

namespace keelson::bench {
namespace {

constexpr int kWarmUpSteps = 3;
constexpr int kServerThreads = 2;

v1::ModelConfig ConfigOf(const PerceptronExtents& extents) {
  v1::ModelConfig config;
  config.add_input_shape(static_cast<uint32_t>(extents.units));
  for (int i = 0; i < extents.layers; ++i) {
    if (i > 0) config.add_layers()->mutable_relu();
    v1::LayerConfig* const layer = config.add_layers();
    layer->set_name(absl::StrCat("dense_", i));
    layer->mutable_dense()->set_units(static_cast<uint32_t>(extents.units));
  }
  config.mutable_loss()->set_kind(v1::LossConfig::SOFTMAX_CROSS_ENTROPY);
  return config;
}

Batch RandomBatch(int64_t rows, int64_t units) {
  Batch batch = MakeBatch(Tensor(Shape({rows, units})), Tensor(Shape({rows})));
  const std::vector<float> numbers = RandomNumbers(rows * units);
  std::copy(numbers.begin(), numbers.end(), batch.features[0].numbers.data());
  for (int64_t i = 0; i < rows; ++i) batch.labels[0].data()[i] = static_cast<float>(i % units);
  return batch;
}

// How long at least one of the intervals lasts.
double UnionOf(std::vector<StepTimes::Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  double covered = 0, until = -1e30;
  for (const StepTimes::Interval& interval : intervals) {
    if (interval.end <= until) continue;
    covered += interval.end - std::max(interval.begin, until);
    until = interval.end;
  }
  return covered;
}

double Length(const StepTimes::Interval& interval) { return interval.end - interval.begin; }

// One value per step and kind.
class Samples {
 public:
  void Add(double value) { values_.push_back(value); }
  Spread spread() const { return SpreadOf(values_); }
  double median() const { return spread().median; }

 private:
  std::vector<double> values_;
};

class StepBench {
 public:
  StepBench(const StepCase& step_case, const StepBenchOptions& options)
      : case_(step_case),
        options_(options),
        batch_(RandomBatch(step_case.batch, options.model.units)) {}

  absl::StatusOr<StepMeasurement> Run() {
    RETURN_IF_ERROR(CreateModel());
    RETURN_IF_ERROR(StartServers());
    RETURN_IF_ERROR(Connect());
    RETURN_IF_ERROR(LoadFirstValues());
    StepMeasurement measurement;
    measurement.step_case = case_;
    ASSIGN_OR_RETURN(measurement.step, Repeat([&] { return WholeStep(); }));
    RETURN_IF_ERROR(client_->Drain().status());
    ASSIGN_OR_RETURN(measurement.compute, Repeat([&] { return ComputeOnly(); }));
    ASSIGN_OR_RETURN(measurement.transfer, Repeat([&] { return TransferOnly(); }));
    RETURN_IF_ERROR(model_->StartTrace(Clock::Real()));
    RETURN_IF_ERROR(TraceWholeSteps(&measurement));
    RETURN_IF_ERROR(TraceCompute(&measurement));
    return measurement;
  }

 private:
  absl::Status CreateModel() {
    DeviceOptions device_options;
    device_options.precision = case_.precision;
    ASSIGN_OR_RETURN(device_, CreateDevice(options_.device, device_options));
    ASSIGN_OR_RETURN(model_, Model::Create(ConfigOf(options_.model), device_.get()));
    return absl::OkStatus();
  }

  absl::Status StartServers() {
    for (int i = 0; i < case_.servers; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<Peer> server, Peer::Start({{"role", "parameter_server"},
                                                                  {"transport", "tcp"},
                                                                  {"handler", Name(Handler::kSgd)},
                                                                  {"io_threads", kServerThreads}}));
      plan_.addresses.push_back(server->ready().at("address").get<std::string>());
      servers_.push_back(std::move(server));
    }
    plan_.placement = Placement::Compute(model_->variables(), case_.servers);
    plan_.formats.assign(model_->variables().size(), FormatsOf(case_.wire));
    return InitializeServers(plan_);
  }

  absl::Status Connect() {
    ASSIGN_OR_RETURN(const std::vector<VariableWire> wire,
                     WireOf(plan_.placement, model_->variables(), plan_.formats));
    ASSIGN_OR_RETURN(WireMemory memory, model_->PrepareWire(wire, case_.depth));
    ShardedParameterClient::Options client_options;
    client_options.self = {Role::kWorker, 0};
    client_options.membership = plan_.membership();
    client_options.retry.give_up_after = absl::Seconds(10);
    client_options.formats = plan_.formats;
    client_options.depth = case_.depth;
    client_options.background = true;
    client_options.memory.emplace();
    client_options.memory->wire = std::move(memory);
    ASSIGN_OR_RETURN(client_,
                     ConnectParameterClient(std::move(client_options), model_->variables(),
                                            plan_.placement, ServersAt(plan_.addresses),
                                            CredentialsAs("worker"), Clock::Real(), &stop_));
    return absl::OkStatus();
  }

  absl::Status LoadFirstValues() {
    RETURN_IF_ERROR(client_->Pull());
    return LoadAll();
  }

  absl::Status LoadAll() {
    for (size_t v = 0; v < model_->variables().size(); ++v) {
      RETURN_IF_ERROR(model_->LoadWire(v, client_->value_set()));
    }
    return absl::OkStatus();
  }

  // Milliseconds of a call; the first ones do not count.
  absl::StatusOr<Spread> Repeat(absl::FunctionRef<absl::StatusOr<double>()> step) {
    Samples samples;
    for (int i = 0; i < kWarmUpSteps + options_.steps; ++i) {
      ASSIGN_OR_RETURN(const double milliseconds, step());
      if (i >= kWarmUpSteps) samples.Add(milliseconds);
    }
    return samples.spread();
  }

  // What a worker's training loop does from one batch to the next.
  absl::StatusOr<double> WholeStep() {
    const double start = MonotonicSeconds();
    RETURN_IF_ERROR(Compute(/*deliver=*/true));
    const double computed = MonotonicSeconds();
    RETURN_IF_ERROR(ReceiveValues());
    const double end = MonotonicSeconds();
    waited_ = 1000 * (end - computed);
    return 1000 * (end - start);
  }

  absl::StatusOr<double> ComputeOnly() {
    const double start = MonotonicSeconds();
    RETURN_IF_ERROR(Compute(/*deliver=*/false));
    RETURN_IF_ERROR(device_->Synchronize());
    return 1000 * (MonotonicSeconds() - start);
  }

  absl::StatusOr<double> TransferOnly() {
    RETURN_IF_ERROR(Compute(/*deliver=*/false));
    RETURN_IF_ERROR(device_->Synchronize());
    const double start = MonotonicSeconds();
    client_->Begin(step_++);
    RETURN_IF_ERROR(model_->DeliverGradients({.wire_set = client_->gradient_set()},
                                             [&](size_t variable) { client_->Offer(variable); }));
    RETURN_IF_ERROR(ReceiveValues());
    if (case_.depth > 1) {
      RETURN_IF_ERROR(client_->Drain().status());
      RETURN_IF_ERROR(LoadAll());
    }
    RETURN_IF_ERROR(device_->Synchronize());
    return 1000 * (MonotonicSeconds() - start);
  }

  absl::Status Compute(bool deliver) {
    keelson::StepOptions step_options;
    step_options.deliver = deliver;
    bool begun = false;
    ASSIGN_OR_RETURN(
        const StepResult result,
        model_->ComputeGradients(batch_, step_options, {.wire_set = client_->gradient_set()},
                                 [&](size_t variable) {
                                   if (!begun) client_->Begin(step_++);
                                   begun = true;
                                   client_->Offer(variable);
                                 }));
    if (result.has_gradients) return absl::OkStatus();
    return absl::InternalError("gpu_bench: the loss is not finite");
  }

  // Ends the step and begins the uploads of what it brought.
  absl::Status ReceiveValues() {
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<size_t> variable, client_->NextValues());
      if (!variable.has_value()) break;
      RETURN_IF_ERROR(model_->LoadWire(*variable, client_->value_set()));
    }
    ASSIGN_OR_RETURN(const std::optional<PushResult> pushed, client_->End());
    if (pushed.has_value()) push_ = absl::ToDoubleMilliseconds(pushed->duration);
    return case_.depth > 1 ? LoadAll() : absl::OkStatus();
  }

  absl::Status TraceWholeSteps(StepMeasurement* measurement) {
    Samples waited, up, down, forward, backward, push;
    for (int i = 0; i < kWarmUpSteps + options_.steps; ++i) {
      RETURN_IF_ERROR(WholeStep().status());
      if (i < kWarmUpSteps) continue;
      ASSIGN_OR_RETURN(StepTimes times, model_->ReadTrace());
      times.uploads.push_back(times.batch);
      waited.Add(waited_);
      up.Add(UnionOf(times.uploads));
      down.Add(UnionOf(times.downloads));
      forward.Add(Length(times.forward));
      backward.Add(Length(times.backward));
      push.Add(push_);
    }
    RETURN_IF_ERROR(client_->Drain().status());
    measurement->wait_for_parameters = waited.median();
    measurement->host_to_device = up.median();
    measurement->device_to_host = down.median();
    measurement->forward = forward.median();
    measurement->backward = backward.median();
    measurement->push = push.median();
    return absl::OkStatus();
  }

  absl::Status TraceCompute(StepMeasurement* measurement) {
    Samples busy;
    for (int i = 0; i < kWarmUpSteps + options_.steps; ++i) {
      RETURN_IF_ERROR(ComputeOnly().status());
      if (i < kWarmUpSteps) continue;
      ASSIGN_OR_RETURN(const StepTimes times, model_->ReadTrace());
      busy.Add(Length(times.forward) + Length(times.backward));
    }
    measurement->busy = busy.median();
    return absl::OkStatus();
  }

  const StepCase case_;
  const StepBenchOptions options_;
  const Batch batch_;
  LoadPlan plan_;
  StopSignal stop_;
  std::vector<std::unique_ptr<Peer>> servers_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<ParameterClient> client_;  // goes before the model, whose memory it uses
  int64_t step_ = 0;
  // The wait in the last whole step, in milliseconds.
  double waited_ = 0;
  double push_ = 0;
};

}  // namespace

double StepMeasurement::Hidden() const {
  if (transfer.median <= 0) return 0;
  return std::clamp((compute.median + transfer.median - step.median) / transfer.median, 0.0, 1.0);
}

double StepMeasurement::Idle() const {
  if (step.median <= 0) return 0;
  return std::clamp(1 - busy / step.median, 0.0, 1.0);
}

absl::StatusOr<StepMeasurement> MeasureStep(const StepCase& step_case,
                                            const StepBenchOptions& options) {
  return StepBench(step_case, options).Run();
}

}  // namespace keelson::bench
