#include "core/model/replica.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status Name(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Replica>> Replica::Create(const ModelSpec* spec, Device* device) {
  std::unique_ptr<Replica> replica(new Replica(spec, device));
  RETURN_IF_ERROR(replica->CreateVariables());
  RETURN_IF_ERROR(replica->CreateStages());
  ASSIGN_OR_RETURN(replica->loss_sum_, device->Allocate(1));
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
  std::vector<Parameter> parameters;
  for (const Variable& variable : variables_) {
    parameters.push_back({variable.value.get(), variable.gradient.get()});
  }
  const std::vector<LayerSpec>& layers = spec_->layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    std::optional<ActivationKind> activation;
    if (TakesActivation(layers[i].kind) && i + 1 < layers.size()) {
      activation = ActivationOf(layers[i + 1].kind);
    }
    std::unique_ptr<Layer> layer = MakeLayer(layers[i], i, parameters, activation);
    if (layer != nullptr) RETURN_IF_ERROR(AddStage(std::move(layer)));
    if (activation.has_value()) ++i;
  }
  const auto trained = std::find_if(stages_.begin(), stages_.end(),
                                    [](const Stage& s) { return s.layer->has_variables(); });
  first_trained_ = trained - stages_.begin();
  return absl::OkStatus();
}

absl::Status Replica::AddStage(std::unique_ptr<Layer> layer) {
  Stage stage;
  stage.output_elements = layer->spec().output.num_elements();
  stage.variables = layer->spec().variables();
  std::reverse(stage.variables.begin(), stage.variables.end());
  for (const size_t variable : stage.variables) {
    variables_[variable].stage = stages_.size();
  }
  ASSIGN_OR_RETURN(stage.variables_unused, device_->NewEvent());
  // Recorded after the zeros with which the variables begin.
  device_->Record(stage.variables_unused.get());
  stage.layer = std::move(layer);
  stages_.push_back(std::move(stage));
  return absl::OkStatus();
}

void Replica::SetValue(size_t variable, absl::Span<const float> values) {
  const Variable& v = At(variable);
  device_->WaitFor(*v.uploaded);
  device_->CopyToDevice(values, v.value.get());
  device_->Record(stages_[v.stage].variables_unused.get());
  NoteFailure("variable", spec_->variables[variable].name);
}

absl::Status Replica::Reserve(int64_t rows, bool training) {
  if (rows > forward_rows_) {
    FreeActivations();
    if (const absl::Status status = AllocateForward(rows); !status.ok()) {
      FreeActivations();
      return Name(absl::StrCat("a batch of ", rows), status);
    }
    forward_rows_ = rows;
  }
  if (training && rows > backward_rows_) {
    if (const absl::Status status = AllocateBackward(rows); !status.ok()) {
      FreeActivations();
      return Name(absl::StrCat("a batch of ", rows), status);
    }
    backward_rows_ = rows;
  }
  return absl::OkStatus();
}

absl::Status Replica::AllocateForward(int64_t rows) {
  ASSIGN_OR_RETURN(features_, device_->Allocate(rows * spec_->input.num_elements()));
  ASSIGN_OR_RETURN(labels_, device_->Allocate(rows));
  ASSIGN_OR_RETURN(losses_, device_->Allocate(rows));
  for (Stage& stage : stages_) {
    ASSIGN_OR_RETURN(stage.output, device_->Allocate(rows * stage.output_elements));
  }
  return absl::OkStatus();
}

absl::Status Replica::AllocateBackward(int64_t rows) {
  int64_t largest = 0;
  for (const Stage& stage : stages_) largest = std::max(largest, stage.output_elements);
  for (std::unique_ptr<DeviceMemory>& gradient : output_gradients_) {
    gradient.reset();
    ASSIGN_OR_RETURN(gradient, device_->Allocate(rows * largest));
  }
  return absl::OkStatus();
}

void Replica::FreeActivations() {
  forward_rows_ = 0;
  backward_rows_ = 0;
  features_.reset();
  labels_.reset();
  losses_.reset();
  for (Stage& stage : stages_) stage.output.reset();
  for (std::unique_ptr<DeviceMemory>& gradient : output_gradients_) gradient.reset();
}

void Replica::LoadBatch(absl::Span<const float> features, absl::Span<const float> labels) {
  device_->CopyToDevice(features, features_.get());
  device_->CopyToDevice(labels, labels_.get());
  NoteFailure("model", "batch");
}

void Replica::Forward(const Pass& pass) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Stage& stage = stages_[i];
    for (const size_t variable : stage.variables) device_->WaitFor(*uploaded(variable));
    stage.layer->Forward(device_, pass, InputOf(i), stage.output.get());
    NoteFailure("layer", stage.layer->spec().name);
  }
}

void Replica::ComputeLoss(const Pass& pass, float weight) {
  DeviceMemory* const dscores = pass.training ? OutputGradient(stages_.size() - 1) : nullptr;
  switch (spec_->loss) {
    case LossKind::kSoftmaxCrossEntropy:
      device_->SoftmaxCrossEntropy(pass.batch, spec_->output_size, weight, scores(), *labels_,
                                   losses_.get(), dscores);
      break;
    case LossKind::kSigmoidCrossEntropy:
      device_->SigmoidCrossEntropy(pass.batch, weight, scores(), *labels_, losses_.get(), dscores);
      break;
    case LossKind::kMeanSquaredError:
      device_->MeanSquaredError(pass.batch, weight, scores(), *labels_, losses_.get(), dscores);
      break;
  }
  device_->Sum(pass.batch, *losses_, loss_sum_.get());
  NoteFailure("loss", LossKindName(spec_->loss));
}

void Replica::Backward(const Pass& pass, size_t stage) {
  const Stage& s = stages_[stage];
  DeviceMemory* const dx = stage == first_trained_ ? nullptr : OutputGradient(stage - 1);
  s.layer->Backward(device_, pass, InputOf(stage), *s.output, OutputGradient(stage), dx);
  // Recorded before the gradients are delivered: a caller that has one may load the next value.
  if (!s.variables.empty()) device_->Record(s.variables_unused.get());
  NoteFailure("layer", s.layer->spec().name);
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
