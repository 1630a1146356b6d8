// A feed-forward model on one device or several: gradients of the mean loss of a batch, and
// evaluation.
#ifndef KEELSON_CORE_MODEL_MODEL_H_
#define KEELSON_CORE_MODEL_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "core/model/evaluation_pass.h"
#include "core/model/replica_group.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/model_spec.h"
#include "core/model/step_trace.h"
#include "core/model/wire_transfer.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_layout.h"

namespace keelson {

struct StepOptions {
  // Dropout's random choices depend on this seed and on the number of devices.
  uint64_t dropout_seed = 0;
  // > 0: the gradients of the trained variables are scaled to at most this joint norm
  // (Device::ClipByGlobalNorm). None is delivered before all are known.
  float clip_global_norm = 0;
  // False: the gradients are not delivered before DeliverGradients.
  bool deliver = true;
};

// The destination of gradients: wire memory when there is some, else `arrays`.
struct GradientTarget {
  // The elements of each variable.
  absl::Span<const absl::Span<float>> arrays = {};
  // By table, with wire memory too: [the batch's rows, dim], of the rows in their order.
  absl::Span<const absl::Span<float>> rows = {};
  // Called, unless it is null, with a table's position when its gradient is in `rows`.
  std::function<void(size_t table)> on_rows_ready = nullptr;
  // The set of WireMemory::gradients.
  size_t wire_set = 0;
};

struct StepResult {
  double loss = 0;  // mean over the batch
  // False: the loss is not a finite number, and there are no gradients.
  bool has_gradients = false;
};

// Holds the variables' values on its devices; they are zeros until the caller sets them. Not
// thread-safe.
//
// Of a model with tables the caller sets the rows of Batch::rows (SetRows) before each call with a
// batch; they stay until other rows are set, or a call returns RESOURCE_EXHAUSTED. A batch whose
// rows were not set is FAILED_PRECONDITION. It has one device.
//
// Any call may return the device's error, with the name of the layer or variable, and then every
// later call does. A batch that does not fit the model is INVALID_ARGUMENT. A batch for which there
// is no memory is RESOURCE_EXHAUSTED; smaller ones may be tried.
//
// Several devices compute nearly equal parts of each batch; the result is that of one device up to
// rounding, except that each device draws its own dropout and normalizes by the statistics of its
// own part; the delivered statistics are the means over the parts, weighted by rows.
class Model {
 public:
  // Called with a variable's position when its gradient is in the target.
  using GradientCallback = std::function<void(size_t variable)>;

  // The device, or the group, must outlive the model. Errors: InferModelSpec's,
  // RESOURCE_EXHAUSTED. INVALID_ARGUMENT: tables with a group of several devices.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const v1::ModelConfig& config,
                                                       Device* device);
  static absl::StatusOr<std::unique_ptr<Model>> Create(const v1::ModelConfig& config,
                                                       DeviceGroup* group);
  ~Model();

  const ModelSpec& spec() const { return spec_; }
  const std::vector<VariableSpec>& variables() const { return spec_.variables; }

  // The host cannot use the values' memory, or there are several replicas: wire memory is best for
  // values and gradients.
  bool uses_wire_memory() const { return HostValues().size() < spec_.variables.size(); }

  // The variables' values and gradients in the model's own memory, an array per variable; empty
  // with uses_wire_memory. The host may write values and read gradients while no call is under way,
  // and within `on_gradient_ready` those of its variable.
  std::vector<absl::Span<float>> HostValues() const;
  std::vector<absl::Span<float>> HostGradients() const;

  // Copies all elements of a variable to the devices; those of HostValues are there already.
  absl::Status SetVariable(size_t variable, absl::Span<const float> values);

  // Copies the rows of a table to the device: [Batch::rows' ids, dim] of the batch to come.
  // `values` may be reused when the call returns. INVALID_ARGUMENT: there is no such table, or
  // numbers that are no whole rows. RESOURCE_EXHAUSTED: as of a batch, and the table has no rows.
  absl::Status SetRows(size_t table, absl::Span<const float> values);

  // Leaves the gradients of these variables and tables, and of no others, out of the joint norm and
  // of clipping (StepOptions::clip_global_norm): nobody applies them. They are delivered all the
  // same. The joint norm of the others is over their elements and those of the batch's rows.
  void Freeze(absl::Span<const size_t> variables, absl::Span<const size_t> tables = {});

  // From now on values may be loaded as bytes (LoadWire), and gradients are delivered as bytes,
  // encoded on the device with error feedback, which is zeros at first. `wire` has one entry per
  // variable. The memory is the device's for copies and lives as long as the model, or until the
  // next call, which replaces it. INVALID_ARGUMENT: entries or elements that are not the model's,
  // or `sets` < 1. After an error there is no wire memory.
  absl::StatusOr<WireMemory> PrepareWire(absl::Span<const VariableWire> wire, size_t sets);
  // Begins to copy the variable from values[set][variable] of the wire memory; the next pass waits
  // for it on the device. If the array changes before that pass has returned, it must be loaded
  // again. INVALID_ARGUMENT: there is no such array.
  absl::Status LoadWire(size_t variable, size_t set);

  // Forward and backward pass: the gradient of the mean loss, by variable, into `target`.
  // `on_gradient_ready` (may be null) is called on this thread as soon as a gradient is there, the
  // last layer's first; the other arrays are still undefined. From then on the pass uses neither
  // the variable's value nor its gradient. A loss that is not finite delivers nothing, and leaves
  // error feedback as it is. A variable that is not trained has the batch's sample instead of a
  // gradient.
  absl::StatusOr<StepResult> ComputeGradients(const Batch& batch, const StepOptions& options,
                                              const GradientTarget& target,
                                              const GradientCallback& on_gradient_ready);
  // Delivers the gradients of the last step, which was computed with `deliver` = false. Call once,
  // and before the next step or evaluation. FAILED_PRECONDITION: there are none.
  absl::Status DeliverGradients(const GradientTarget& target,
                                const GradientCallback& on_gradient_ready);

  // Forward pass without dropout, on the first device. `scores` (may be null) becomes the scores
  // themselves, as Predict's, and `pairs` (likewise) the queries and items, as PredictPairs'.
  absl::StatusOr<EvaluationSums> Evaluate(const Batch& batch, absl::Span<const MetricSpec> metrics,
                                          std::vector<float>* scores = nullptr,
                                          PairVectors* pairs = nullptr);
  // Evaluates without a loss: `scores` becomes the scores of the features, [rows, output_size]
  // row-major. The batch's labels are ignored.
  absl::Status Predict(const Batch& batch, std::vector<float>* scores);
  // Likewise the queries and items of the main loss. FAILED_PRECONDITION: it is not of the kind
  // IN_BATCH_SOFTMAX.
  absl::Status PredictPairs(const Batch& batch, PairVectors* pairs);

  // From the next step on ReadTrace returns the times of the last step. The clock must outlive the
  // model.
  absl::Status StartTrace(const Clock* clock);
  // FAILED_PRECONDITION: no step with gradients has been traced.
  absl::StatusOr<StepTimes> ReadTrace() const;

 private:
  // The properties on which a step's operations depend, and by which they are repeated.
  struct StepShape {
    int64_t rows = 0;
    // Nothing: the gradients are not delivered to wire memory.
    std::optional<size_t> wire_set;
    float clip_global_norm = 0;
    // Counts calls of PrepareWire and StartTrace, which change the operations.
    uint64_t generation = 0;

    auto operator<=>(const StepShape&) const = default;
  };
  // Positions of variables and tables whose gradients are complete.
  struct Complete {
    absl::Span<const size_t> variables;
    absl::Span<const size_t> tables;
  };
  using HandOverFunction = absl::FunctionRef<absl::Status(const Complete&)>;

  explicit Model(ModelSpec spec) : spec_(std::move(spec)) {}

  static absl::StatusOr<std::unique_ptr<Model>> Create(const v1::ModelConfig& config,
                                                       DeviceGroup* group,
                                                       absl::Span<Device* const> devices);
  absl::Status CreateParts(DeviceGroup* group, absl::Span<Device* const> devices);
  std::vector<absl::Span<float>> HostSpans(absl::FunctionRef<DeviceMemory*(size_t)> memory) const;
  absl::Status CheckTarget(const GradientTarget& target) const;
  // Checks that the rows that a batch needs are set.
  absl::Status CheckRowsAreSet(const Batch& batch) const;
  absl::Status CheckHasPairs() const;
  Complete All() const { return {delivery_order_, table_order_}; }

  // Computes a step on a device whose calls return when they are done: the gradients of a layer are
  // handed over before the next layer is computed. This and the next method return the sum of the
  // losses; if it is not finite, nothing is handed over.
  absl::StatusOr<double> ComputeInTurn(const StepShape& shape, HandOverFunction hand_over);
  // Computes a step on an asynchronous device: the whole step is enqueued before anything is waited
  // for.
  absl::StatusOr<double> ComputeAhead(const StepShape& shape, HandOverFunction hand_over);
  void LoadBatch(const Batch& batch, uint64_t dropout_seed);
  // Enqueues the forward pass up to the copy of the sum of the losses to the host.
  void Forward();
  // Calls `on_sent` with what is complete after each layer, or with all at the end when gradients
  // are clipped.
  void Backward(const StepShape& shape, absl::FunctionRef<void(const Complete&)> on_sent);
  void Clip(float max_norm);
  // Begins to copy gradients to wire memory.
  void Send(absl::Span<const size_t> variables, size_t wire_set);
  // Waits for the copies that Send began, or copies to the arrays, and calls the callbacks.
  absl::Status HandOver(const Complete& complete, const GradientTarget& target,
                        const GradientCallback& on_gradient_ready);
  absl::Status HandOverRows(size_t table, const GradientTarget& target);
  // Waits for the sum of the losses of the last Forward or evaluation.
  absl::StatusOr<double> AwaitLossSum();
  Replica& first() const { return replicas_->first(); }

  const ModelSpec spec_;
  std::unique_ptr<ReplicaGroup> replicas_;
  // Positions of all variables and of all tables in the order in which their gradients are
  // complete; of those that count for the joint norm the first replica's gradients, and the tables.
  std::vector<size_t> delivery_order_;
  std::vector<size_t> table_order_;
  std::vector<DeviceMemory*> trained_gradients_;
  std::vector<size_t> trained_tables_;
  std::unique_ptr<LossTransfer> loss_;
  std::unique_ptr<WireTransfer> wire_;
  std::unique_ptr<StepTrace> trace_;
  // The address of an entry, which no other living object has, is the key of its operations.
  std::set<StepShape> shapes_;
  uint64_t generation_ = 0;
  // The last step: whether its gradients wait for DeliverGradients; whether it can be read from the
  // trace, and its gradients left by wire memory.
  bool gradients_kept_ = false;
  bool step_traced_ = false;
  bool step_sent_ = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_MODEL_H_
