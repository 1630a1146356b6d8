// layer_bench: the time of each layer's forward and backward pass on the CPU device;
// docs/performance.md. bench/compare_layers.py has PyTorch's beside it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/layers/large_graph.h"
#include "bench/layers/layer_case.h"
#include "bench/one_table.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/device/cpu/cpu_device.h"
#include "core/model/id_inputs.h"
#include "core/model/layers/layer.h"
#include "core/model/spec/batch.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

// What a repetition takes at least, so that the clock's steps do not count.
constexpr absl::Duration kLeastTime = absl::Milliseconds(20);

struct Options {
  std::vector<std::string> layers;
  int threads = 1;
  OneTableOptions print = {.repeat = 7};
};

// In milliseconds.
struct Measured {
  LayerCase layer;
  Spread forward;
  Spread both;  // forward and backward
};

// A layer with memory for its inputs, output, variables and their gradients; random numbers and
// ids.
class LayerRun {
 public:
  static absl::StatusOr<std::unique_ptr<LayerRun>> Create(const LayerCase& layer, Device* device) {
    ASSIGN_OR_RETURN(ModelSpec spec, SpecOf(layer));
    std::unique_ptr<LayerRun> run(new LayerRun(layer, std::move(spec), device));
    RETURN_IF_ERROR(run->AllocateVariables());
    RETURN_IF_ERROR(run->AllocateActivations());
    RETURN_IF_ERROR(run->LoadIds());
    return run;
  }

  void Forward() { layer_->Forward(device_, pass_, inputs_, y_.get()); }
  // dy is what the last backward pass has left of it; to write it anew is not measured.
  void Backward() { layer_->Backward(device_, pass_, inputs_, *y_, dy_.get(), input_gradients_); }
  void FillGradient() { device_->Fill(1e-3f, dy_->size(), dy_.get()); }

 private:
  LayerRun(const LayerCase& layer, ModelSpec spec, Device* device)
      : case_(layer), spec_(std::move(spec)), device_(device), ids_(&spec_, device) {}

  absl::StatusOr<DeviceMemory*> AllocateRandom(int64_t elements) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, device_->Allocate(elements));
    std::vector<float> numbers(static_cast<size_t>(elements));
    const uint64_t seed = memories_.size();
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = 2.0f * UniformFloat(Philox(seed, 1, i)[0]) - 1.0f;
    }
    device_->CopyToDevice(numbers, memory.get());
    memories_.push_back(std::move(memory));
    return memories_.back().get();
  }

  absl::Status AllocateVariables() {
    std::vector<Parameter> parameters;
    for (const VariableSpec& variable : spec_.variables) {
      Parameter parameter;
      ASSIGN_OR_RETURN(parameter.value, AllocateRandom(variable.shape.num_elements()));
      ASSIGN_OR_RETURN(parameter.gradient, AllocateRandom(variable.shape.num_elements()));
      parameters.push_back(parameter);
    }
    layer_ = MakeLayer(spec_.layers.front(), 0, parameters);
    return absl::OkStatus();
  }

  absl::Status AllocateActivations() {
    const LayerSpec& layer = spec_.layers.front();
    for (const Shape& shape : layer.input_shapes) {
      if (case_.ids > 0) break;
      ASSIGN_OR_RETURN(DeviceMemory * x, AllocateRandom(case_.batch * shape.num_elements()));
      ASSIGN_OR_RETURN(DeviceMemory * dx, AllocateRandom(case_.batch * shape.num_elements()));
      inputs_.push_back(x);
      input_gradients_.push_back(dx);
    }
    if (case_.ids > 0) {
      inputs_.push_back(nullptr);
      input_gradients_.push_back(nullptr);
    }
    for (const int64_t floats : KeptFloats(layer)) {
      ASSIGN_OR_RETURN(DeviceMemory * memory, AllocateRandom(case_.batch * floats));
      kept_.push_back(memory);
    }
    const int64_t outputs = case_.batch * layer.output.num_elements();
    ASSIGN_OR_RETURN(y_, device_->Allocate(outputs));
    ASSIGN_OR_RETURN(dy_, device_->Allocate(outputs));
    return absl::OkStatus();
  }

  absl::Status LoadIds() {
    pass_ = {case_.batch, /*training=*/true, nullptr, kept_};
    if (case_.ids == 0) return absl::OkStatus();
    Batch batch;
    Resize(case_.batch, spec_.records, &batch);
    FeatureValues& feature = batch.features.front();
    feature.ids.resize(static_cast<size_t>(case_.batch * case_.ids));
    for (size_t i = 0; i < feature.ids.size(); ++i) {
      feature.ids[i] = Philox(1, 2, i)[0] % static_cast<uint64_t>(case_.num_ids);
    }
    for (size_t i = 0; i < feature.offsets.size(); ++i) {
      feature.offsets[i] = static_cast<int64_t>(i) * case_.ids;
    }
    RETURN_IF_ERROR(ids_.Reserve(batch, 0, case_.batch, case_.batch));
    ids_.Load(batch, 0, case_.batch, /*training=*/true);
    pass_.ids = ids_.For(0);
    return absl::OkStatus();
  }

  const LayerCase case_;
  const ModelSpec spec_;
  Device* const device_;
  std::vector<std::unique_ptr<DeviceMemory>> memories_;
  std::unique_ptr<Layer> layer_;
  std::vector<const DeviceMemory*> inputs_;
  std::vector<DeviceMemory*> input_gradients_;
  std::vector<DeviceMemory*> kept_;
  std::unique_ptr<DeviceMemory> y_;
  std::unique_ptr<DeviceMemory> dy_;
  IdInputs ids_;
  Pass pass_;
};

// Milliseconds of one call.
template <typename Call>
double TimeOf(int calls, Call call) {
  const absl::Time begin = absl::Now();
  for (int i = 0; i < calls; ++i) call();
  return absl::ToDoubleMilliseconds(absl::Now() - begin) / calls;
}

absl::StatusOr<Measured> Measure(const LayerCase& layer, int repeat, Device* device) {
  ASSIGN_OR_RETURN(const std::unique_ptr<LayerRun> run, LayerRun::Create(layer, device));
  const auto forward = [&] { run->Forward(); };
  const auto both = [&] {
    run->Forward();
    run->FillGradient();
    run->Backward();
  };
  const double once = TimeOf(2, both);
  const int calls =
      std::max(1, static_cast<int>(absl::ToDoubleMilliseconds(kLeastTime) / std::max(once, 1e-6)));
  std::vector<double> of_forward, of_both;
  for (int i = 0; i < repeat; ++i) {
    of_forward.push_back(TimeOf(calls, forward));
    of_both.push_back(TimeOf(calls, both));
  }
  RETURN_IF_ERROR(device->Synchronize());
  return Measured{layer, SpreadOf(std::move(of_forward)), SpreadOf(std::move(of_both))};
}

absl::StatusOr<std::vector<LayerCase>> ChosenCases(const Options& options) {
  std::vector<LayerCase> chosen;
  for (const LayerCase& layer : LayerCases()) {
    if (options.layers.empty() || std::find(options.layers.begin(), options.layers.end(),
                                            layer.name) != options.layers.end()) {
      chosen.push_back(layer);
    }
  }
  for (const std::string& name : options.layers) {
    if (std::any_of(chosen.begin(), chosen.end(), [&](const auto& c) { return c.name == name; })) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("--layers: expected layers that are measured, found \"", name, "\""));
  }
  return chosen;
}

std::string Text(const Spread& spread) {
  return absl::StrFormat("%.3f (%.3f-%.3f)", spread.median, spread.min, spread.max);
}

Table ToTable(const std::vector<Measured>& all) {
  Table table;
  table.title = "Layers on the CPU, ms: median (least-most)";
  table.columns = {"layer", "batch", "forward", "forward and backward"};
  for (const Measured& measured : all) {
    table.rows.push_back({measured.layer.name, absl::StrCat(measured.layer.batch),
                          Text(measured.forward), Text(measured.both)});
  }
  return table;
}

absl::StatusOr<Spread> MeasurePlan(int repeat) {
  const v1::ModelConfig config = LargeGraph();
  std::vector<double> milliseconds;
  for (int i = 0; i < repeat; ++i) {
    ASSIGN_OR_RETURN(const double once, MillisecondsToPlan(config));
    milliseconds.push_back(once);
  }
  return SpreadOf(std::move(milliseconds));
}

nlohmann::json ToJson(const Options& options, const std::vector<Measured>& all,
                      const Spread& plan) {
  nlohmann::json layers = nlohmann::json::array();
  for (const Measured& measured : all) {
    const LayerCase& layer = measured.layer;
    layers.push_back({{"name", layer.name},
                      {"config", layer.config},
                      {"shapes", layer.shapes},
                      {"batch", layer.batch},
                      {"ids", layer.ids},
                      {"num_ids", layer.num_ids},
                      {"forward_ms", SpreadAsJson(measured.forward)},
                      {"forward_backward_ms", SpreadAsJson(measured.both)}});
  }
  return {
      {"threads", options.threads}, {"layers", layers}, {"plan_200_layers_ms", SpreadAsJson(plan)}};
}

absl::Status Run(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateCpuDevice(options.threads));
  ASSIGN_OR_RETURN(const std::vector<LayerCase> cases, ChosenCases(options));
  std::vector<Measured> all;
  for (const LayerCase& layer : cases) {
    ASSIGN_OR_RETURN(Measured measured, Measure(layer, options.print.repeat, device.get()));
    all.push_back(std::move(measured));
  }
  ASSIGN_OR_RETURN(const Spread plan, MeasurePlan(options.print.repeat));
  Print(options.print, ToTable(all), ToJson(options, all, plan),
        absl::StrCat("A graph of 200 layers and 50 features is checked and planned in ", Text(plan),
                     " ms.\n"));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures each layer's forward and backward pass on the CPU device.");
  app.add_option("--layers", options.layers, "only these, comma-separated (default: all)")
      ->delimiter(',');
  app.add_option("--threads", options.threads, "of the device")->check(CLI::Range(1, 1024));
  AddOneTableFlags(&app, &options.print);
  return RunProgram(&app, argc, argv, [&] { return Run(options); });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return keelson::bench::Main(argc, argv);
}
