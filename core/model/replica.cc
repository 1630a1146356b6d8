#include "core/model/replica.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor/tensor.h"

namespace keelson {
namespace {

absl::Status Name(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Span<const float> Rows(const Tensor& tensor, int64_t first, int64_t rows) {
  const int64_t row = tensor.shape().row_elements();
  return absl::MakeConstSpan(tensor.data() + first * row, rows * row);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replica>> Replica::Create(const ModelSpec* spec, Device* device) {
  std::unique_ptr<Replica> replica(new Replica(spec, device));
  RETURN_IF_ERROR(replica->CreateVariables());
  RETURN_IF_ERROR(replica->CreateStages());
  RETURN_IF_ERROR(replica->CreateLosses());
  return replica;
}

absl::Status Replica::CreateVariables() {
  for (const VariableSpec& spec : spec_->variables) {
    Variable variable;
    ASSIGN_OR_RETURN(variable.value, device_->Allocate(spec.shape.num_elements()));
    ASSIGN_OR_RETURN(variable.gradient, device_->Allocate(spec.shape.num_elements()));
    ASSIGN_OR_RETURN(variable.uploaded, device_->NewEvent());
    variables_.push_back(std::move(variable));
  }
  return absl::OkStatus();
}

absl::Status Replica::CreateStages() {
  runs_.resize(num_stages());
  for (size_t i = 0; i < num_stages(); ++i) {
    runs_[i].used = spec_->layers[graph_.stages[i].layer].variables();
    ASSIGN_OR_RETURN(runs_[i].variables_unused, device_->NewEvent());
    // Recorded after the zeros with which the variables begin.
    device_->Record(runs_[i].variables_unused.get());
  }
  RETURN_IF_ERROR(ShareVariables());
  FindTables();
  for (size_t i = 0; i < num_stages(); ++i) runs_[i].layer = MakeLayerOf(i);
  return absl::OkStatus();
}

absl::Status Replica::CreateLosses() {
  ASSIGN_OR_RETURN(loss_sum_, device_->Allocate(1));
  if (spec_->losses.size() == 1 && spec_->main_loss().weight == 1) return absl::OkStatus();
  for (size_t i = 0; i < spec_->losses.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> part, device_->Allocate(1));
    loss_parts_.push_back(std::move(part));
  }
  return absl::OkStatus();
}

absl::Status Replica::ShareVariables() {
  for (size_t i = num_stages(); i-- > 0;) {
    for (const size_t variable : runs_[i].used) {
      Variable& v = variables_[variable];
      v.stage = i;
      v.last_stage = std::max(v.last_stage, i);
      if (v.last_stage == i || v.part != nullptr) continue;
      ASSIGN_OR_RETURN(v.part, device_->Allocate(v.gradient->size()));
    }
  }
  for (size_t variable = variables_.size(); variable-- > 0;) {
    runs_[At(variable).stage].variables.push_back(variable);
  }
  return absl::OkStatus();
}

void Replica::FindTables() {
  for (size_t table = 0; table < spec_->tables.size(); ++table) {
    DeviceRows::Stages stages;
    for (size_t i = num_stages(); i-- > 0;) {
      if (TableOf(i) != table) continue;
      stages.first = i;
      stages.last = std::max(stages.last, i);
    }
    tables_.SetStages(table, stages);
    runs_[stages.first].tables.push_back(table);
  }
}

std::unique_ptr<Layer> Replica::MakeLayerOf(size_t stage) const {
  std::vector<Parameter> parameters;
  for (const Variable& variable : variables_) {
    const bool adds = variable.part != nullptr && stage < variable.last_stage;
    parameters.push_back(
        {variable.value.get(), adds ? variable.part.get() : variable.gradient.get()});
  }
  const size_t layer = graph_.stages[stage].layer;
  const std::optional<size_t> table = TableOf(stage);
  return MakeLayer(spec_->layers[layer], layer, parameters, graph_.stages[stage].activation,
                   table ? tables_.ParameterOf(*table, stage) : Parameter{});
}

absl::Status Replica::SetRows(size_t table, absl::Span<const float> values) {
  const std::string& name = spec_->tables[table].name;
  const int64_t rows = static_cast<int64_t>(values.size()) / spec_->tables[table].dim;
  const absl::StatusOr<bool> moved = tables_.Reserve(table, rows);
  if (!moved.ok()) return Name(absl::StrCat(rows, " rows of ", name), moved.status());
  for (size_t i = 0; *moved && i < num_stages(); ++i) {
    if (TableOf(i) == table) runs_[i].layer = MakeLayerOf(i);
  }
  tables_.Set(table, values);
  NoteFailure("table", name);
  return failure_;
}

void Replica::SetValue(size_t variable, absl::Span<const float> values) {
  const Variable& v = At(variable);
  device_->WaitFor(*v.uploaded);
  device_->CopyToDevice(values, v.value.get());
  device_->Record(runs_[v.stage].variables_unused.get());
  NoteFailure("variable", spec_->variables[variable].name);
}

absl::Status Replica::Reserve(const Batch& batch, int64_t first, int64_t rows, bool training) {
  absl::Status status = ReserveValues(rows, training);
  if (status.ok()) status = ids_.Reserve(batch, first, rows, rows_);
  if (status.ok()) return status;
  FreeActivations();
  tables_.Free();
  return Name(absl::StrCat("a batch of ", rows), status);
}

absl::Status Replica::ReserveValues(int64_t rows, bool training) {
  if (rows <= rows_ && (!training || trains_)) return absl::OkStatus();
  const bool trains = training || trains_;
  const int64_t room = std::max(rows, rows_);
  FreeActivations();
  RETURN_IF_ERROR(Allocate(room, trains));
  rows_ = room;
  trains_ = trains;
  return absl::OkStatus();
}

absl::Status Replica::Allocate(int64_t rows, bool training) {
  plan_ = PlanPass(graph_, rows, training);
  ASSIGN_OR_RETURN(activations_, device_->Allocate(plan_.floats));
  for (const MemoryPart& part : plan_.parts) {
    parts_.push_back(std::make_unique<MemoryView>(*activations_, part.begin, part.floats));
  }
  for (size_t i = 0; i < spec_->records.labels.size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> labels, device_->Allocate(rows));
    labels_.push_back(std::move(labels));
  }
  ASSIGN_OR_RETURN(losses_, device_->Allocate(rows));
  return AllocateForPairs(rows);
}

absl::Status Replica::AllocateForPairs(int64_t rows) {
  if (std::none_of(graph_.losses.begin(), graph_.losses.end(),
                   [](const LossStage& loss) { return loss.scores_pairs; })) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(own_scores_, device_->Allocate(rows));
  ASSIGN_OR_RETURN(own_items_, device_->Allocate(rows));
  std::vector<float> positions(rows);
  std::iota(positions.begin(), positions.end(), 0.0f);
  device_->CopyToDevice(positions, own_items_.get());
  return absl::OkStatus();
}

void Replica::FreeActivations() {
  rows_ = 0;
  activations_.reset();
  parts_.clear();
  labels_.clear();
  losses_.reset();
  own_items_.reset();
  own_scores_.reset();
  ids_.Free();
}

void Replica::LoadBatch(const Batch& batch, int64_t first, int64_t rows, bool training) {
  ids_.Load(batch, first, rows, training);
  for (size_t i = 0; i < batch.features.size(); ++i) {
    if (spec_->records.features[i].kind != FeatureKind::kNumbers) continue;
    device_->CopyToDevice(Rows(batch.features[i].numbers, first, rows), Value(i));
  }
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    device_->CopyToDevice(Rows(batch.labels[i], first, rows), labels_[i].get());
  }
  NoteFailure("model", "batch");
}

std::vector<const DeviceMemory*> Replica::InputsOf(size_t stage) const {
  std::vector<const DeviceMemory*> inputs;
  for (const ValueId input : graph_.stages[stage].inputs) inputs.push_back(Value(input));
  return inputs;
}

std::vector<DeviceMemory*> Replica::KeptBy(size_t stage) const {
  std::vector<DeviceMemory*> kept;
  for (const size_t part : plan_.kept[stage]) kept.push_back(Part(part));
  return kept;
}

Pass Replica::PassOf(const Pass& pass, size_t stage, absl::Span<DeviceMemory* const> kept) const {
  return {pass.batch, pass.training, ids_.For(graph_.stages[stage].layer), kept};
}

void Replica::Forward(const Pass& pass) {
  for (size_t i = 0; i < num_stages(); ++i) {
    const Run& run = runs_[i];
    for (const size_t variable : run.used) device_->WaitFor(*uploaded(variable));
    const std::vector<DeviceMemory*> kept = KeptBy(i);
    run.layer->Forward(device_, PassOf(pass, i, kept), InputsOf(i), OutputOf(i));
    NoteFailure("layer", run.layer->spec().name);
  }
}

const DeviceMemory& Replica::MainScores(const Pass& pass) {
  if (!graph_.losses.front().scores_pairs) return *Value(graph_.losses.front().inputs.front());
  const QueriesAndItems pairs = PairsOf(0, pass.batch);
  device_->RowDots(pairs.rows, pairs.dim, 1 / pairs.temperature, *pairs.queries, *pairs.items, 0,
                   own_scores_.get());
  return *own_scores_;
}

void Replica::ComputeLosses(const Pass& pass, float weight) {
  const bool weighted = !loss_parts_.empty();
  if (weighted) device_->Fill(0, 1, loss_sum_.get());
  for (size_t i = 0; i < spec_->losses.size(); ++i) {
    const LossSpec& loss = spec_->losses[i];
    ComputeLoss(i, pass, weight * loss.weight);
    if (pass.training) AddLossGradients(i, pass.batch);
    DeviceMemory* const sum = weighted ? loss_parts_[i].get() : loss_sum_.get();
    device_->Sum(pass.batch, *losses_, sum);
    if (weighted) device_->Axpy(loss.weight, 1, *sum, loss_sum_.get());
    NoteFailure("loss", LossKindName(loss.kind));
  }
}

void Replica::ComputeLoss(size_t loss, const Pass& pass, float weight) {
  const LossSpec& spec = spec_->losses[loss];
  const auto gradient = [&](size_t input) {
    return pass.training ? Part(plan_.loss_gradients[loss][input].part) : nullptr;
  };
  const std::optional<PassMemory::PairScores>& pairs = plan_.pair_scores[loss];
  if (!pairs.has_value()) {
    const DeviceMemory& scores = *Value(graph_.losses[loss].inputs.front());
    ComputeLossOfScores(spec, pass.batch, weight, scores, gradient(0));
    WeighRecords(spec, pass.batch, gradient(0));
    return;
  }
  InBatchGradients gradients;
  if (pass.training) gradients = {Part(pairs->gradient), gradient(0), gradient(1)};
  InBatchSoftmax(device_, PairsOf(loss, pass.batch), weight, Part(pairs->scores), losses_.get(),
                 gradients);
}

QueriesAndItems Replica::PairsOf(size_t loss, int64_t rows) const {
  const LossSpec& spec = spec_->losses[loss];
  const auto label = [&](std::optional<size_t> position) {
    return position ? labels_[*position].get() : nullptr;
  };
  return {.rows = rows,
          .dim = spec.dim,
          .temperature = spec.temperature,
          .queries = Value(graph_.losses[loss].inputs[0]),
          .items = Value(graph_.losses[loss].inputs[1]),
          .log_probabilities = label(spec.log_probability_label),
          .weights = label(spec.weight_label),
          .own_items = own_items_.get()};
}

void Replica::AddLossGradients(size_t loss, int64_t rows) {
  for (const PassMemory::Gradient& gradient : plan_.loss_gradients[loss]) {
    if (!gradient.sum.has_value()) continue;
    device_->Axpy(1, rows * spec_->losses[loss].input_floats(), *Part(gradient.part),
                  Part(*gradient.sum));
  }
}

void Replica::ComputeLossOfScores(const LossSpec& loss, int64_t rows, float weight,
                                  const DeviceMemory& scores, DeviceMemory* dscores) {
  const DeviceMemory& labels = *labels_[*loss.label];
  switch (loss.kind) {
    case LossKind::kSoftmaxCrossEntropy:
      device_->SoftmaxCrossEntropy(rows, loss.outputs, weight, scores, labels, losses_.get(),
                                   dscores);
      break;
    case LossKind::kSigmoidCrossEntropy:
      device_->SigmoidCrossEntropy(rows, weight, scores, labels, losses_.get(), dscores);
      break;
    case LossKind::kMeanSquaredError:
      device_->MeanSquaredError(rows, weight, scores, labels, losses_.get(), dscores);
      break;
    case LossKind::kHuber:
      device_->HuberLoss(rows, loss.delta, weight, scores, labels, losses_.get(), dscores);
      break;
    case LossKind::kInBatchSoftmax:
      break;  // takes no scores
  }
}

void Replica::WeighRecords(const LossSpec& loss, int64_t rows, DeviceMemory* dscores) {
  if (!loss.weight_label) return;
  const DeviceMemory& weights = *labels_[*loss.weight_label];
  device_->Multiply(rows, *losses_, weights, losses_.get());
  if (dscores != nullptr) device_->ScaleRows(rows, loss.outputs, weights, dscores);
}

void Replica::Backward(const Pass& pass, size_t stage) {
  const Run& run = runs_[stage];
  std::vector<DeviceMemory*> dx;
  for (const std::optional<PassMemory::Gradient>& gradient : plan_.input_gradients[stage]) {
    dx.push_back(gradient.has_value() ? Part(gradient->part) : nullptr);
  }
  const std::vector<DeviceMemory*> kept = KeptBy(stage);
  run.layer->Backward(device_, PassOf(pass, stage, kept), InputsOf(stage), *OutputOf(stage),
                      Part(plan_.output_gradients[stage]), dx);
  AddInputGradients(pass, stage);
  AddVariableGradients(stage);
  // Recorded before the gradients are delivered: a caller that has one may load the next value.
  if (!run.variables.empty()) device_->Record(run.variables_unused.get());
  NoteFailure("layer", run.layer->spec().name);
}

void Replica::AddInputGradients(const Pass& pass, size_t stage) {
  for (size_t k = 0; k < graph_.stages[stage].inputs.size(); ++k) {
    const std::optional<PassMemory::Gradient>& gradient = plan_.input_gradients[stage][k];
    if (!gradient.has_value() || !gradient->sum.has_value()) continue;
    const ValueId input = graph_.stages[stage].inputs[k];
    const int64_t floats = graph_.stages[graph_.values().LayerOf(input)].output_floats;
    device_->Axpy(1, pass.batch * floats, *Part(gradient->part), Part(*gradient->sum));
  }
}

void Replica::AddVariableGradients(size_t stage) {
  for (const size_t variable : runs_[stage].used) {
    const Variable& v = At(variable);
    if (v.part == nullptr || stage == v.last_stage) continue;
    device_->Axpy(1, v.gradient->size(), *v.part, v.gradient.get());
  }
}

void Replica::ClearLossAndGradients() {
  device_->Fill(0, 1, loss_sum_.get());
  for (const Variable& variable : variables_) {
    device_->Fill(0, variable.gradient->size(), variable.gradient.get());
  }
  NoteFailure("model", "gradients");
}

void Replica::NoteFailure(absl::string_view kind, absl::string_view name) {
  if (!failure_.ok()) return;
  const absl::Status status = device_->status();
  if (!status.ok()) failure_ = Name(absl::StrCat(kind, " ", name), status);
}

}  // namespace keelson
