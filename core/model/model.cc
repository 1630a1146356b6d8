#include "core/model/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

absl::Status Mismatch(absl::string_view what, const Shape& expected, const Shape& found) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": expected the shape ", expected.ToString(),
                                                 ", found ", found.ToString()));
}

Shape Batched(int64_t batch, const Shape& example) {
  std::vector<int64_t> dims{batch};
  dims.insert(dims.end(), example.dims().begin(), example.dims().end());
  return Shape(std::move(dims));
}

absl::Status CheckLabel(const ModelSpec& spec, int64_t position, float label) {
  std::string expected;
  switch (spec.loss) {
    case LossKind::kSoftmaxCrossEntropy:
      // Written so that not-a-number fails too.
      if (label >= 0 && label < static_cast<float>(spec.output_size) &&
          label == std::floor(label)) {
        return absl::OkStatus();
      }
      expected = absl::StrCat("a class from 0 to ", spec.output_size - 1);
      break;
    case LossKind::kSigmoidCrossEntropy:
      if (label == 0 || label == 1) return absl::OkStatus();
      expected = "0 or 1";
      break;
    case LossKind::kMeanSquaredError:
      if (std::isfinite(label)) return absl::OkStatus();
      expected = "a finite number";
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("batch: labels[", position, "]: expected ", expected, ", found ", label));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelConfig& config,
                                                     Device* device) {
  ASSIGN_OR_RETURN(ModelSpec spec, InferModelSpec(config));
  std::unique_ptr<Model> model(new Model(std::move(spec), device));
  RETURN_IF_ERROR(model->AllocateVariables());
  model->BuildStages();
  return model;
}

absl::Status Model::AllocateVariables() {
  for (const VariableSpec& spec : spec_.variables) {
    Variable variable;
    ASSIGN_OR_RETURN(variable.value, device_->Allocate(spec.shape.num_elements()));
    ASSIGN_OR_RETURN(variable.gradient, device_->Allocate(spec.shape.num_elements()));
    variables_.push_back(std::move(variable));
  }
  return absl::OkStatus();
}

void Model::BuildStages() {
  const auto parameter = [this](int variable) {
    if (variable < 0) return Parameter{};
    const Variable& v = variables_[static_cast<size_t>(variable)];
    return Parameter{v.value.get(), v.gradient.get()};
  };
  for (size_t i = 0; i < spec_.layers.size(); ++i) {
    const LayerSpec& spec = spec_.layers[i];
    auto layer = MakeLayer(spec, static_cast<int>(i), parameter(spec.kernel), parameter(spec.bias));
    if (layer == nullptr) continue;
    stages_.push_back({std::move(layer), spec.output.num_elements(), nullptr});
  }
  const auto trained = std::find_if(stages_.begin(), stages_.end(),
                                    [](const Stage& s) { return s.layer->has_variables(); });
  first_trained_ = static_cast<size_t>(trained - stages_.begin());
}

std::vector<absl::Span<float>> Model::HostSpans(
    std::unique_ptr<DeviceMemory> Variable::*memory) const {
  std::vector<absl::Span<float>> spans;
  for (const Variable& variable : variables_) {
    DeviceMemory* const array = (variable.*memory).get();
    const absl::Span<float> span = device_->HostSpan(array);
    if (span.empty() && array->size() > 0) return {};
    spans.push_back(span);
  }
  return spans;
}

absl::Status Model::SetVariable(int variable, absl::Span<const float> values) {
  if (variable < 0 || variable >= static_cast<int>(variables_.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable: expected 0 to ", variables_.size() - 1, ", found ", variable));
  }
  const VariableSpec& spec = spec_.variables[static_cast<size_t>(variable)];
  const int64_t elements = spec.shape.num_elements();
  if (static_cast<int64_t>(values.size()) != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, ": expected ", elements, " elements, found ", values.size()));
  }
  device_->CopyToDevice(values, variables_[static_cast<size_t>(variable)].value.get());
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Model::ComputeGradients(const Batch& batch, uint64_t dropout_seed,
                                                   absl::Span<const absl::Span<float>> gradients,
                                                   const GradientCallback& on_gradient_ready) {
  RETURN_IF_ERROR(CheckBatch(batch));
  RETURN_IF_ERROR(CheckGradients(gradients));
  RETURN_IF_ERROR(Reserve(batch.size()));
  RETURN_IF_ERROR(ReserveBackward());
  const Pass pass{batch.size(), /*training=*/true, dropout_seed};
  Forward(batch, pass);
  ComputeLoss(pass.batch, upstream_.get());
  // On a GPU this waits for the forward pass, once a step: gradients leave during the backward
  // pass, when it is too late to find the loss no number.
  ASSIGN_OR_RETURN(const double sum, SumLosses(pass.batch));
  const double loss = sum / static_cast<double>(pass.batch);
  if (!std::isfinite(loss)) return StepResult{loss, false};
  RETURN_IF_ERROR(Backward(pass, gradients, on_gradient_ready));
  return StepResult{loss, true};
}

absl::StatusOr<EvaluationSums> Model::Evaluate(const Batch& batch,
                                               absl::Span<const MetricSpec> metrics) {
  RETURN_IF_ERROR(CheckBatch(batch));
  RETURN_IF_ERROR(Reserve(batch.size()));
  Forward(batch, Pass{batch.size()});
  ComputeLoss(batch.size(), nullptr);
  EvaluationSums sums;
  ASSIGN_OR_RETURN(sums.loss, SumLosses(batch.size()));
  sums.examples = batch.size();
  Tensor scores(Shape({batch.size(), spec_.output_size}));
  RETURN_IF_ERROR(device_->CopyToHost(this->scores(), scores.span()));
  for (const MetricSpec& metric : metrics) {
    sums.correct.push_back(
        CountCorrect(metric, spec_.output_size, scores.span(), batch.labels.span()));
  }
  return sums;
}

absl::Status Model::CheckBatch(const Batch& batch) const {
  if (batch.size() == 0) {
    return absl::InvalidArgumentError("batch: expected one example or more, found none");
  }
  if (batch.labels.shape().rank() != 1) {
    return Mismatch("batch: labels", Shape({batch.size()}), batch.labels.shape());
  }
  const Shape expected = Batched(batch.size(), spec_.input);
  if (batch.features.shape() != expected) {
    return Mismatch("batch: features", expected, batch.features.shape());
  }
  for (int64_t i = 0; i < batch.size(); ++i) {
    RETURN_IF_ERROR(CheckLabel(spec_, i, batch.labels.data()[i]));
  }
  return absl::OkStatus();
}

absl::Status Model::CheckGradients(absl::Span<const absl::Span<float>> gradients) const {
  if (gradients.size() != variables_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("gradients: expected ", variables_.size(),
                                                   " arrays, found ", gradients.size()));
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    const VariableSpec& spec = spec_.variables[i];
    const auto found = static_cast<int64_t>(gradients[i].size());
    if (found == spec.shape.num_elements()) continue;
    return absl::InvalidArgumentError(absl::StrCat("gradient of ", spec.name, ": expected ",
                                                   spec.shape.num_elements(), " elements, found ",
                                                   found));
  }
  return absl::OkStatus();
}

absl::Status Model::Reserve(int64_t batch) {
  if (batch <= capacity_) return absl::OkStatus();
  // Until all is there, the model has room for nothing.
  capacity_ = 0;
  upstream_.reset();
  downstream_.reset();
  ASSIGN_OR_RETURN(features_, device_->Allocate(batch * spec_.input.num_elements()));
  ASSIGN_OR_RETURN(labels_, device_->Allocate(batch));
  ASSIGN_OR_RETURN(losses_, device_->Allocate(batch));
  for (Stage& stage : stages_) {
    ASSIGN_OR_RETURN(stage.output, device_->Allocate(batch * stage.output_elements));
  }
  capacity_ = batch;
  return absl::OkStatus();
}

absl::Status Model::ReserveBackward() {
  if (downstream_ != nullptr) return absl::OkStatus();
  int64_t largest = 0;
  for (const Stage& stage : stages_) largest = std::max(largest, stage.output_elements);
  ASSIGN_OR_RETURN(upstream_, device_->Allocate(capacity_ * largest));
  ASSIGN_OR_RETURN(downstream_, device_->Allocate(capacity_ * largest));
  return absl::OkStatus();
}

void Model::Forward(const Batch& batch, const Pass& pass) {
  device_->CopyToDevice(batch.features.span(), features_.get());
  device_->CopyToDevice(batch.labels.span(), labels_.get());
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i].layer->Forward(device_, pass, InputOf(i), stages_[i].output.get());
  }
}

void Model::ComputeLoss(int64_t batch, DeviceMemory* dscores) {
  switch (spec_.loss) {
    case LossKind::kSoftmaxCrossEntropy:
      return device_->SoftmaxCrossEntropy(batch, spec_.output_size, scores(), *labels_,
                                          losses_.get(), dscores);
    case LossKind::kSigmoidCrossEntropy:
      return device_->SigmoidCrossEntropy(batch, scores(), *labels_, losses_.get(), dscores);
    case LossKind::kMeanSquaredError:
      return device_->MeanSquaredError(batch, scores(), *labels_, losses_.get(), dscores);
  }
}

absl::Status Model::Backward(const Pass& pass, absl::Span<const absl::Span<float>> gradients,
                             const GradientCallback& on_gradient_ready) {
  for (size_t i = stages_.size(); i-- > first_trained_;) {
    const Layer& layer = *stages_[i].layer;
    DeviceMemory* const dx = i == first_trained_ ? nullptr : downstream_.get();
    layer.Backward(device_, pass, InputOf(i), *stages_[i].output, *upstream_, dx);
    RETURN_IF_ERROR(DeliverGradients(layer, gradients, on_gradient_ready));
    std::swap(upstream_, downstream_);
  }
  return absl::OkStatus();
}

absl::Status Model::DeliverGradients(const Layer& layer,
                                     absl::Span<const absl::Span<float>> gradients,
                                     const GradientCallback& on_gradient_ready) {
  for (int variable : {layer.spec().bias, layer.spec().kernel}) {
    if (variable < 0) continue;
    const auto i = static_cast<size_t>(variable);
    RETURN_IF_ERROR(device_->CopyToHost(*variables_[i].gradient, gradients[i]));
    if (on_gradient_ready) on_gradient_ready(variable);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Model::SumLosses(int64_t batch) {
  host_losses_.resize(static_cast<size_t>(batch));
  RETURN_IF_ERROR(device_->CopyToHost(*losses_, absl::MakeSpan(host_losses_)));
  return std::accumulate(host_losses_.begin(), host_losses_.end(), 0.0);
}

}  // namespace keelson
