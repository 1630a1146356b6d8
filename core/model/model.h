// A feed-forward model on a device: gradients of the mean loss of a batch, and evaluation.
#ifndef KEELSON_CORE_MODEL_MODEL_H_
#define KEELSON_CORE_MODEL_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/batch.h"
#include "core/model/layer.h"
#include "core/model/metrics.h"
#include "core/model/model_spec.h"
#include "core/tensor/tensor.h"
#include "core/tensor/variable.h"

namespace keelson {

struct StepResult {
  double loss = 0;  // mean over the batch
  // False: the loss is not a finite number, so no gradient was computed.
  bool has_gradients = false;
};

// Holds the variables' values on the device; where they come from is the caller's business: they
// are zeros until SetVariable. Not thread-safe. Any call may return the device's error; a batch
// that does not fit the model is INVALID_ARGUMENT.
class Model {
 public:
  // Called with a variable's position when its gradient is complete.
  using GradientCallback = std::function<void(int variable)>;

  // `device` must outlive the model. Errors: InferModelSpec's, RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const v1::ModelConfig& config,
                                                       Device* device);

  const ModelSpec& spec() const { return spec_; }
  const std::vector<VariableSpec>& variables() const { return spec_.variables; }

  // The variables' values and gradients in the model's own memory, an array per variable; empty
  // where the host cannot use the device's memory. The host may write values and read gradients
  // while no call is under way, and within `on_gradient_ready` those of the variable it is told of.
  std::vector<absl::Span<float>> HostValues() const { return HostSpans(&Variable::value); }
  std::vector<absl::Span<float>> HostGradients() const { return HostSpans(&Variable::gradient); }

  // Copies all elements of a variable to the device; those of HostValues are there already.
  absl::Status SetVariable(int variable, absl::Span<const float> values);

  // Forward and backward pass. gradients[i] has variable i's elements and receives the gradient of
  // the mean loss; HostGradients costs no copy. `on_gradient_ready` (may be null) is called on this
  // thread as soon as a gradient is complete, the last layer's first, while the other gradients are
  // still undefined; from then on the pass uses neither the variable's value nor its gradient. A
  // loss that is not finite ends the pass before the first gradient. What dropout drops depends on
  // `dropout_seed` alone.
  absl::StatusOr<StepResult> ComputeGradients(const Batch& batch, uint64_t dropout_seed,
                                              absl::Span<const absl::Span<float>> gradients,
                                              const GradientCallback& on_gradient_ready);

  // Forward pass without dropout.
  absl::StatusOr<EvaluationSums> Evaluate(const Batch& batch, absl::Span<const MetricSpec> metrics);

 private:
  struct Variable {
    std::unique_ptr<DeviceMemory> value;
    std::unique_ptr<DeviceMemory> gradient;
  };
  // A layer and its output. Flatten has none: it changes the shape only.
  struct Stage {
    std::unique_ptr<Layer> layer;
    int64_t output_elements = 0;  // of one example
    std::unique_ptr<DeviceMemory> output;
  };

  Model(ModelSpec spec, Device* device) : spec_(std::move(spec)), device_(device) {}

  absl::Status AllocateVariables();
  std::vector<absl::Span<float>> HostSpans(std::unique_ptr<DeviceMemory> Variable::*memory) const;
  void BuildStages();
  absl::Status CheckBatch(const Batch& batch) const;
  absl::Status CheckGradients(absl::Span<const absl::Span<float>> gradients) const;
  // Makes room for batches of `batch` examples.
  absl::Status Reserve(int64_t batch);
  absl::Status ReserveBackward();
  // From the batch to the losses of its examples, and with `training` to their gradient.
  void Forward(const Batch& batch, const Pass& pass);
  void ComputeLoss(int64_t batch, DeviceMemory* dscores);
  absl::Status Backward(const Pass& pass, absl::Span<const absl::Span<float>> gradients,
                        const GradientCallback& on_gradient_ready);
  // Copies the gradients of a layer's variables to the host.
  absl::Status DeliverGradients(const Layer& layer, absl::Span<const absl::Span<float>> gradients,
                                const GradientCallback& on_gradient_ready);
  absl::StatusOr<double> SumLosses(int64_t batch);
  const DeviceMemory& scores() const { return *stages_.back().output; }
  const DeviceMemory& InputOf(size_t stage) const {
    return stage == 0 ? *features_ : *stages_[stage - 1].output;
  }

  const ModelSpec spec_;
  Device* const device_;
  std::vector<Variable> variables_;
  std::vector<Stage> stages_;
  // The first stage with variables; the backward pass ends there.
  size_t first_trained_ = 0;
  int64_t capacity_ = 0;  // examples
  std::unique_ptr<DeviceMemory> features_;
  std::unique_ptr<DeviceMemory> labels_;
  std::unique_ptr<DeviceMemory> losses_;
  std::vector<float> host_losses_;
  // Gradients of a stage's output and input, in turns.
  std::unique_ptr<DeviceMemory> upstream_;
  std::unique_ptr<DeviceMemory> downstream_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_MODEL_H_
