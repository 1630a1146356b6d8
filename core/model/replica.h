// A model on one device: the variables, the layers, and the activations of a batch.
#ifndef KEELSON_CORE_MODEL_REPLICA_H_
#define KEELSON_CORE_MODEL_REPLICA_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/layers/layer.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// Enqueues operations and waits for none. Errors that operations set on the device are returned
// here, with the name of the layer. Not thread-safe.
//
// A pass: Reserve, LoadBatch, Forward, ComputeLoss, and in training Backward of each stage from the
// last to first_trained(). A stage is a layer, or one with the activation that follows it.
class Replica {
 public:
  // The spec and the device must outlive it. RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Replica>> Create(const ModelSpec* spec, Device* device);

  Device* device() const { return device_; }

  // Variables, by position. Values are zeros at first.

  DeviceMemory* value(size_t variable) const { return At(variable).value.get(); }
  DeviceMemory* gradient(size_t variable) const { return At(variable).gradient.get(); }
  // Has passed when no operation so far uses the value.
  const DeviceEvent& unused(size_t variable) const {
    return *stages_[At(variable).stage].variables_unused;
  }
  // Forward waits for this event, which the uploader of the value records.
  DeviceEvent* uploaded(size_t variable) const { return At(variable).uploaded.get(); }
  void SetValue(size_t variable, absl::Span<const float> values);

  // Passes.

  size_t num_stages() const { return stages_.size(); }
  // The first stage with variables.
  size_t first_trained() const { return first_trained_; }
  // Positions, the last first.
  const std::vector<size_t>& variables_of(size_t stage) const { return stages_[stage].variables; }

  // Makes room for `rows` examples. RESOURCE_EXHAUSTED: there is none, and then there is room for
  // no example.
  absl::Status Reserve(int64_t rows, bool training);
  void LoadBatch(absl::Span<const float> features, absl::Span<const float> labels);
  void Forward(const Pass& pass);
  // Losses and their sum; in training also what Backward begins with: the gradient of `weight`
  // times the sum.
  void ComputeLoss(const Pass& pass, float weight);
  void Backward(const Pass& pass, size_t stage);
  // In place of a pass, for a replica without a part of the batch: sets loss and gradients to
  // zeros.
  void ClearLossAndGradients();

  const DeviceMemory& scores() const { return *stages_.back().output; }
  DeviceMemory* loss_sum() const { return loss_sum_.get(); }  // [1]

  // Call after an operation of `kind` `name` ("layer", "conv2d_1"): the first failure gets its
  // name.
  void NoteFailure(absl::string_view kind, absl::string_view name);
  // The device's first error, with the name of what failed where that is known; OK: none is known.
  const absl::Status& failure() const { return failure_; }
  void SetFailure(absl::Status failure) { failure_ = std::move(failure); }

 private:
  struct Variable {
    std::unique_ptr<DeviceMemory> value;
    std::unique_ptr<DeviceMemory> gradient;
    std::unique_ptr<DeviceEvent> uploaded;
    size_t stage = 0;
  };
  struct Stage {
    std::unique_ptr<Layer> layer;
    int64_t output_elements = 0;  // of one example
    std::vector<size_t> variables;
    std::unique_ptr<DeviceEvent> variables_unused;
    std::unique_ptr<DeviceMemory> output;
  };

  Replica(const ModelSpec* spec, Device* device) : spec_(spec), device_(device) {}

  absl::Status CreateVariables();
  absl::Status CreateStages();
  absl::Status AddStage(std::unique_ptr<Layer> layer);
  absl::Status AllocateForward(int64_t rows);
  absl::Status AllocateBackward(int64_t rows);
  void FreeActivations();
  const Variable& At(size_t variable) const { return variables_[variable]; }
  const DeviceMemory& InputOf(size_t stage) const {
    return stage == 0 ? *features_ : *stages_[stage - 1].output;
  }
  // The gradient of a stage's output. It shares memory with that of the stage after the next.
  DeviceMemory* OutputGradient(size_t stage) const { return output_gradients_[stage % 2].get(); }

  const ModelSpec* const spec_;
  Device* const device_;
  absl::Status failure_;
  std::vector<Variable> variables_;
  std::vector<Stage> stages_;
  size_t first_trained_ = 0;
  std::unique_ptr<DeviceMemory> loss_sum_;
  int64_t forward_rows_ = 0;
  int64_t backward_rows_ = 0;
  std::unique_ptr<DeviceMemory> features_;
  std::unique_ptr<DeviceMemory> labels_;
  std::unique_ptr<DeviceMemory> losses_;
  std::unique_ptr<DeviceMemory> output_gradients_[2];
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_REPLICA_H_
