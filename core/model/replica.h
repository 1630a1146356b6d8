// A model on one device: the variables, the layers, and the activations of a batch.
#ifndef KEELSON_CORE_MODEL_REPLICA_H_
#define KEELSON_CORE_MODEL_REPLICA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/device/memory_view.h"
#include "core/model/device_rows.h"
#include "core/model/id_inputs.h"
#include "core/model/in_batch_softmax.h"
#include "core/model/layers/layer.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"
#include "core/model/stage.h"

namespace keelson {

// Enqueues operations and waits for none. Errors that operations set on the device are returned
// here, with the name of the layer. Not thread-safe.
//
// A pass: Reserve, LoadBatch, Forward, ComputeLosses, and in training Backward of each stage with
// runs_backward, the last one first.
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
    return *runs_[At(variable).stage].variables_unused;
  }
  // Forward waits for this event, which the uploader of the value records.
  DeviceEvent* uploaded(size_t variable) const { return At(variable).uploaded.get(); }
  void SetValue(size_t variable, absl::Span<const float> values);

  // Tables, by position.

  const DeviceRows& tables() const { return tables_; }
  // Sets the rows that the next batch needs, [rows, dim]. RESOURCE_EXHAUSTED: there is no room for
  // them, and the table has none.
  absl::Status SetRows(size_t table, absl::Span<const float> values);

  // Passes.

  size_t num_stages() const { return graph_.stages.size(); }
  bool runs_backward(size_t stage) const { return graph_.stages[stage].backward; }
  // Those whose gradients are complete after the stage's backward pass: positions, the last first.
  const std::vector<size_t>& variables_of(size_t stage) const { return runs_[stage].variables; }
  // Likewise the tables.
  const std::vector<size_t>& tables_of(size_t stage) const { return runs_[stage].tables; }

  // Makes room for `rows` records of the batch from `first` on. RESOURCE_EXHAUSTED: there is none,
  // and then there is room for no example, and no table has rows.
  absl::Status Reserve(const Batch& batch, int64_t first, int64_t rows, bool training);
  // Loads those records: the features, and the labels if there are any.
  void LoadBatch(const Batch& batch, int64_t first, int64_t rows, bool training);
  void Forward(const Pass& pass);
  // The losses and their sum; in training also what Backward begins with: the gradient of `weight`
  // times the sum.
  void ComputeLosses(const Pass& pass, float weight);
  void Backward(const Pass& pass, size_t stage);
  // In place of a pass, for a replica without a part of the batch: sets loss and gradients to
  // zeros.
  void ClearLossAndGradients();

  // The scores of the model's main loss after a forward pass, which it may have to compute. [batch,
  // LossSpec::outputs]
  const DeviceMemory& MainScores(const Pass& pass);
  // Where the main loss is of the kind IN_BATCH_SOFTMAX, after ComputeLosses: the scores of all
  // pairs of a query and an item. [batch, batch]
  const DeviceMemory& pair_scores() const { return *Part(plan_.pair_scores.front()->scores); }
  // Likewise after a forward pass: its queries and items. [batch, LossSpec::dim]
  const DeviceMemory& queries() const { return *Value(graph_.losses.front().inputs[0]); }
  const DeviceMemory& items() const { return *Value(graph_.losses.front().inputs[1]); }
  // The sum over the losses of their weights times their sums over the examples. [1]
  DeviceMemory* loss_sum() const { return loss_sum_.get(); }
  // The sum of one loss over the examples, where the model has several or gives one a weight. [1]
  const DeviceMemory& loss_part(size_t loss) const { return *loss_parts_[loss]; }

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
    // The first stage that uses it, which runs backward last.
    size_t stage = 0;
    // Where several stages use it: the last one's gradient is written, those of others are added.
    size_t last_stage = 0;
    std::unique_ptr<DeviceMemory> part;
  };
  // What belongs to a stage.
  struct Run {
    std::unique_ptr<Layer> layer;
    // The values that it uses, ascending; see variables_of.
    std::vector<size_t> used;
    std::vector<size_t> variables;
    std::vector<size_t> tables;  // see tables_of
    std::unique_ptr<DeviceEvent> variables_unused;
  };

  Replica(const ModelSpec* spec, Device* device)
      : spec_(spec),
        device_(device),
        graph_(MakeStages(*spec)),
        ids_(spec, device),
        tables_(spec, device) {}

  absl::Status CreateVariables();
  absl::Status CreateStages();
  absl::Status CreateLosses();
  // Finds the stages that use each variable, and makes memory for what several of them add.
  absl::Status ShareVariables();
  // Finds the stages that look ids up in each table.
  void FindTables();
  std::optional<size_t> TableOf(size_t stage) const {
    return spec_->layers[graph_.stages[stage].layer].table;
  }
  std::unique_ptr<Layer> MakeLayerOf(size_t stage) const;
  absl::Status ReserveValues(int64_t rows, bool training);
  absl::Status Allocate(int64_t rows, bool training);
  absl::Status AllocateForPairs(int64_t rows);
  void FreeActivations();
  const Variable& At(size_t variable) const { return variables_[variable]; }
  DeviceMemory* Part(size_t part) const { return parts_[part].get(); }
  DeviceMemory* Value(ValueId value) const { return Part(plan_.values[value]); }
  DeviceMemory* OutputOf(size_t stage) const { return Value(graph_.values().OutputOf(stage)); }
  std::vector<const DeviceMemory*> InputsOf(size_t stage) const;
  std::vector<DeviceMemory*> KeptBy(size_t stage) const;
  // `pass` with what belongs to the stage.
  Pass PassOf(const Pass& pass, size_t stage, absl::Span<DeviceMemory* const> kept) const;
  // Computes losses_ of the examples, and in training the gradients of `weight` times their sum.
  void ComputeLoss(size_t loss, const Pass& pass, float weight);
  // Likewise of a loss that takes scores; `dscores` may be null.
  void ComputeLossOfScores(const LossSpec& loss, int64_t rows, float weight,
                           const DeviceMemory& scores, DeviceMemory* dscores);
  // Multiplies both by the records' weights, where the loss has some.
  void WeighRecords(const LossSpec& loss, int64_t rows, DeviceMemory* dscores);
  QueriesAndItems PairsOf(size_t loss, int64_t rows) const;
  // Adds what a loss has computed beside the gradients of its inputs.
  void AddLossGradients(size_t loss, int64_t rows);
  // Adds to gradients what a stage's backward pass has left beside them.
  void AddInputGradients(const Pass& pass, size_t stage);
  void AddVariableGradients(size_t stage);

  const ModelSpec* const spec_;
  Device* const device_;
  absl::Status failure_;
  const StageGraph graph_;
  std::vector<Variable> variables_;
  std::vector<Run> runs_;
  std::unique_ptr<DeviceMemory> loss_sum_;
  std::vector<std::unique_ptr<DeviceMemory>>
      loss_parts_;  // empty: loss_sum_ is that of the only loss
  // What there is room for.
  int64_t rows_ = 0;
  bool trains_ = false;
  PassMemory plan_;
  std::unique_ptr<DeviceMemory> activations_;
  std::vector<std::unique_ptr<MemoryView>> parts_;  // of activations_, which is freed first
  std::vector<std::unique_ptr<DeviceMemory>> labels_;
  std::unique_ptr<DeviceMemory> losses_;
  // Of models with a loss of the kind IN_BATCH_SOFTMAX: 0, 1, ..., and each query's score of its
  // own item.
  std::unique_ptr<DeviceMemory> own_items_;
  std::unique_ptr<DeviceMemory> own_scores_;
  IdInputs ids_;
  DeviceRows tables_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_REPLICA_H_
