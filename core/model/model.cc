#include "core/model/model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/evaluation_pass.h"

namespace keelson {
namespace {

absl::Status CheckVariable(const ModelSpec& spec, size_t variable) {
  if (variable < spec.variables.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable: expected 0 to ", spec.variables.size() - 1, ", found ", variable));
}

// Of `wire`, which may be null.
absl::Status CheckWireSet(const WireTransfer* wire, size_t set) {
  if (wire == nullptr) {
    return absl::InvalidArgumentError("wire set: expected wire memory, found none");
  }
  if (set < wire->sets()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("wire set: expected 0 to ", wire->sets() - 1, ", found ", set));
}

// Of arrays for the gradients of rows: `rows` has the number of each table.
absl::Status CheckRowArrays(const ModelSpec& spec, const DeviceRows& rows,
                            absl::Span<const absl::Span<float>> arrays) {
  if (arrays.size() != spec.tables.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradients of rows: expected ", spec.tables.size(), " arrays, found ", arrays.size()));
  }
  for (size_t t = 0; t < arrays.size(); ++t) {
    const int64_t expected = rows.rows(t).value_or(0) * spec.tables[t].dim;
    const auto found = static_cast<int64_t>(arrays[t].size());
    if (found == expected) continue;
    return absl::InvalidArgumentError(absl::StrCat("gradient of the rows of ", spec.tables[t].name,
                                                   ": expected ", expected, " elements, found ",
                                                   found));
  }
  return absl::OkStatus();
}

absl::Status CheckArrays(const ModelSpec& spec, absl::Span<const absl::Span<float>> arrays) {
  if (arrays.size() != spec.variables.size()) {
    return absl::InvalidArgumentError(absl::StrCat("gradients: expected ", spec.variables.size(),
                                                   " arrays, found ", arrays.size()));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    const VariableSpec& variable = spec.variables[i];
    const auto found = static_cast<int64_t>(arrays[i].size());
    if (found == variable.shape.num_elements()) continue;
    return absl::InvalidArgumentError(absl::StrCat("gradient of ", variable.name, ": expected ",
                                                   variable.shape.num_elements(),
                                                   " elements, found ", found));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelConfig& config,
                                                     Device* device) {
  return Create(config, nullptr, {device});
}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelConfig& config,
                                                     DeviceGroup* group) {
  std::vector<Device*> devices;
  for (size_t i = 0; i < group->size(); ++i) devices.push_back(group->device(i));
  return Create(config, group, devices);
}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(const v1::ModelConfig& config,
                                                     DeviceGroup* group,
                                                     absl::Span<Device* const> devices) {
  ASSIGN_OR_RETURN(ModelSpec spec, InferModelSpec(config));
  std::unique_ptr<Model> model(new Model(std::move(spec)));
  RETURN_IF_ERROR(model->CreateParts(group, devices));
  return model;
}

absl::Status Model::CreateParts(DeviceGroup* group, absl::Span<Device* const> devices) {
  if (!spec_.tables.empty() && devices.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("device: expected one for a model with tables, found ", devices.size()));
  }
  ASSIGN_OR_RETURN(replicas_, ReplicaGroup::Create(&spec_, group, devices));
  ASSIGN_OR_RETURN(loss_, LossTransfer::Create(devices.front()));
  for (size_t stage = first().num_stages(); stage-- > 0;) {
    for (const size_t variable : first().variables_of(stage)) {
      delivery_order_.push_back(variable);
    }
    for (const size_t table : first().tables_of(stage)) table_order_.push_back(table);
  }
  Freeze({});
  return absl::OkStatus();
}

void Model::Freeze(absl::Span<const size_t> variables, absl::Span<const size_t> tables) {
  const auto contains = [](absl::Span<const size_t> frozen, size_t position) {
    return std::find(frozen.begin(), frozen.end(), position) != frozen.end();
  };
  trained_gradients_.clear();
  for (const size_t variable : delivery_order_) {
    if (contains(variables, variable) || !spec_.variables[variable].trained()) continue;
    trained_gradients_.push_back(first().gradient(variable));
  }
  trained_tables_.clear();
  for (const size_t table : table_order_) {
    if (!contains(tables, table)) trained_tables_.push_back(table);
  }
  ++generation_;
}

Model::~Model() {
  // Copies under way use host memory, so they must end first.
  if (replicas_ == nullptr) return;
  for (const std::unique_ptr<Replica>& replica : replicas_->replicas()) {
    replica->device()->Synchronize().IgnoreError();
  }
}

std::vector<absl::Span<float>> Model::HostSpans(
    absl::FunctionRef<DeviceMemory*(size_t)> memory) const {
  std::vector<absl::Span<float>> spans;
  if (replicas_->size() > 1) return spans;
  for (size_t i = 0; i < spec_.variables.size(); ++i) {
    spans.push_back(first().device()->HostSpan(memory(i)));
    if (spans.back().empty()) return {};
  }
  return spans;
}

std::vector<absl::Span<float>> Model::HostValues() const {
  return HostSpans([this](size_t variable) { return first().value(variable); });
}

std::vector<absl::Span<float>> Model::HostGradients() const {
  return HostSpans([this](size_t variable) { return first().gradient(variable); });
}

absl::Status Model::CheckTarget(const GradientTarget& target) const {
  RETURN_IF_ERROR(CheckRowArrays(spec_, first().tables(), target.rows));
  if (wire_ != nullptr) return CheckWireSet(wire_.get(), target.wire_set);
  return CheckArrays(spec_, target.arrays);
}

absl::Status Model::SetVariable(size_t variable, absl::Span<const float> values) {
  RETURN_IF_ERROR(CheckVariable(spec_, variable));
  const VariableSpec& spec = spec_.variables[variable];
  const int64_t elements = spec.shape.num_elements();
  if (static_cast<int64_t>(values.size()) != elements) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, ": expected ", elements, " elements, found ", values.size()));
  }
  replicas_->SetValue(variable, values);
  return replicas_->Failure();
}

absl::Status Model::SetRows(size_t table, absl::Span<const float> values) {
  if (table >= spec_.tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table: expected one of ", spec_.tables.size(), ", found ", table));
  }
  const TableSpec& spec = spec_.tables[table];
  if (values.size() % static_cast<size_t>(spec.dim) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("rows of ", spec.name, ": expected rows of ",
                                                   spec.dim, " numbers, found ", values.size(),
                                                   " numbers"));
  }
  gradients_kept_ = false;
  return first().SetRows(table, values);
}

absl::Status Model::CheckRowsAreSet(const Batch& batch) const {
  for (size_t t = 0; t < spec_.tables.size(); ++t) {
    const auto expected = static_cast<int64_t>(batch.rows[t].ids.size());
    const std::optional<int64_t> found = first().tables().rows(t);
    if (found == expected) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("rows of ", spec_.tables[t].name, ": expected the batch's ", expected,
                     ", found ", found ? absl::StrCat(*found) : "none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<WireMemory> Model::PrepareWire(absl::Span<const VariableWire> wire, size_t sets) {
  RETURN_IF_ERROR(replicas_->Synchronize());
  ++generation_;
  step_traced_ = false;
  wire_.reset();
  ASSIGN_OR_RETURN(wire_, WireTransfer::Create(&spec_, replicas_->replicas(), wire, sets));
  return wire_->memory();
}

absl::Status Model::LoadWire(size_t variable, size_t set) {
  RETURN_IF_ERROR(CheckVariable(spec_, variable));
  RETURN_IF_ERROR(CheckWireSet(wire_.get(), set));
  if (trace_ != nullptr) trace_->UploadBegins(variable);
  wire_->Upload(variable, set);
  return replicas_->Failure();
}

absl::StatusOr<StepResult> Model::ComputeGradients(const Batch& batch, const StepOptions& options,
                                                   const GradientTarget& target,
                                                   const GradientCallback& on_gradient_ready) {
  RETURN_IF_ERROR(CheckBatch(spec_, batch));
  RETURN_IF_ERROR(CheckRowsAreSet(batch));
  if (options.deliver) RETURN_IF_ERROR(CheckTarget(target));
  gradients_kept_ = false;
  step_traced_ = false;
  RETURN_IF_ERROR(replicas_->Reserve(batch));
  LoadBatch(batch, options.dropout_seed);
  const StepShape shape = {.rows = batch.size(),
                           .wire_set = options.deliver && wire_ != nullptr
                                           ? std::optional<size_t>(target.wire_set)
                                           : std::nullopt,
                           .clip_global_norm = std::max(0.0f, options.clip_global_norm),
                           .generation = generation_};
  const auto hand_over = [&](const Complete& complete) -> absl::Status {
    if (!options.deliver) return absl::OkStatus();
    return HandOver(complete, target, on_gradient_ready);
  };
  ASSIGN_OR_RETURN(const double loss_sum, first().device()->asynchronous()
                                              ? ComputeAhead(shape, hand_over)
                                              : ComputeInTurn(shape, hand_over));
  RETURN_IF_ERROR(replicas_->Failure());
  const bool finite = std::isfinite(loss_sum);
  gradients_kept_ = finite && !options.deliver;
  step_traced_ = finite && trace_ != nullptr;
  step_sent_ = shape.wire_set.has_value();
  return StepResult{loss_sum / static_cast<double>(batch.size()), finite};
}

absl::StatusOr<double> Model::ComputeInTurn(const StepShape& shape, HandOverFunction hand_over) {
  Forward();
  ASSIGN_OR_RETURN(const double loss_sum, AwaitLossSum());
  if (trace_ != nullptr) trace_->LossArrives();
  if (!std::isfinite(loss_sum)) return loss_sum;
  absl::Status status;
  Backward(shape, [&](const Complete& complete) {
    if (status.ok()) status = hand_over(complete);
  });
  RETURN_IF_ERROR(status);
  return loss_sum;
}

absl::StatusOr<double> Model::ComputeAhead(const StepShape& shape, HandOverFunction hand_over) {
  const auto enqueue = [&] {
    Forward();
    Backward(shape, [](const Complete&) {});
  };
  if (replicas_->size() > 1) {
    enqueue();
  } else {
    const StepShape* const key = &*shapes_.insert(shape).first;
    first().device()->Repeat(reinterpret_cast<uintptr_t>(key), enqueue);
  }
  ASSIGN_OR_RETURN(const double loss_sum, AwaitLossSum());
  if (trace_ != nullptr) trace_->LossArrives();
  if (std::isfinite(loss_sum)) {
    RETURN_IF_ERROR(hand_over(All()));
  } else if (shape.wire_set) {
    // The gate must keep its value as long as an encoder may read it.
    for (const size_t variable : delivery_order_)
      RETURN_IF_ERROR(replicas_->Explain(wire_->Await(variable)));
  }
  return loss_sum;
}

absl::Status Model::DeliverGradients(const GradientTarget& target,
                                     const GradientCallback& on_gradient_ready) {
  if (!gradients_kept_) {
    return absl::FailedPreconditionError(
        "gradients: expected a step that kept them, found none since the last delivery");
  }
  RETURN_IF_ERROR(CheckTarget(target));
  gradients_kept_ = false;
  if (wire_ != nullptr) Send(delivery_order_, target.wire_set);
  step_sent_ = wire_ != nullptr;
  return HandOver(All(), target, on_gradient_ready);
}

absl::Status Model::CheckHasPairs() const {
  const LossKind kind = spec_.main_loss().kind;
  if (kind == LossKind::kInBatchSoftmax) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("queries and items: expected a model with the loss IN_BATCH_SOFTMAX, found ",
                   LossKindName(kind)));
}

absl::StatusOr<EvaluationSums> Model::Evaluate(const Batch& batch,
                                               absl::Span<const MetricSpec> metrics,
                                               std::vector<float>* scores, PairVectors* pairs) {
  RETURN_IF_ERROR(CheckBatch(spec_, batch));
  RETURN_IF_ERROR(CheckRowsAreSet(batch));
  if (pairs != nullptr) RETURN_IF_ERROR(CheckHasPairs());
  gradients_kept_ = false;
  std::vector<float> own_scores;
  EvaluationPass pass(&spec_, replicas_.get(), loss_.get());
  ASSIGN_OR_RETURN(EvaluationSums sums,
                   pass.Evaluate(batch, metrics, scores == nullptr ? &own_scores : scores));
  if (pairs != nullptr) RETURN_IF_ERROR(pass.DownloadPairs(batch, pairs));
  return sums;
}

absl::Status Model::Predict(const Batch& batch, std::vector<float>* scores) {
  RETURN_IF_ERROR(CheckFeatures(spec_, batch));
  RETURN_IF_ERROR(CheckRowsAreSet(batch));
  gradients_kept_ = false;
  return EvaluationPass(&spec_, replicas_.get(), loss_.get()).Predict(batch, scores);
}

absl::Status Model::PredictPairs(const Batch& batch, PairVectors* pairs) {
  RETURN_IF_ERROR(CheckFeatures(spec_, batch));
  RETURN_IF_ERROR(CheckRowsAreSet(batch));
  RETURN_IF_ERROR(CheckHasPairs());
  gradients_kept_ = false;
  EvaluationPass pass(&spec_, replicas_.get(), loss_.get());
  std::vector<float> scores;
  RETURN_IF_ERROR(pass.Predict(batch, &scores));
  return pass.DownloadPairs(batch, pairs);
}

absl::Status Model::StartTrace(const Clock* clock) {
  ++generation_;
  step_traced_ = false;
  ASSIGN_OR_RETURN(trace_, StepTrace::Create(first().device(), spec_.variables.size(), clock));
  return absl::OkStatus();
}

absl::StatusOr<StepTimes> Model::ReadTrace() const {
  if (!step_traced_) {
    return absl::FailedPreconditionError("trace: expected a step with gradients, found none");
  }
  std::vector<const DeviceEvent*> uploaded;
  std::vector<const DeviceEvent*> downloaded;
  for (size_t i = 0; i < spec_.variables.size(); ++i) {
    uploaded.push_back(first().uploaded(i));
    if (step_sent_) downloaded.push_back(&wire_->downloaded(i));
  }
  return trace_->Read(uploaded, downloaded, delivery_order_);
}

void Model::LoadBatch(const Batch& batch, uint64_t dropout_seed) {
  if (trace_ != nullptr) {
    trace_->StepBegins();
    trace_->BatchBegins();
  }
  replicas_->LoadBatch(batch, dropout_seed);
}

void Model::Forward() {
  if (trace_ != nullptr) trace_->ForwardBegins();
  replicas_->Forward();
  loss_->Download(*first().loss_sum());
  if (trace_ != nullptr) trace_->BackwardBegins();
}

void Model::Backward(const StepShape& shape, absl::FunctionRef<void(const Complete&)> on_sent) {
  const bool clips = shape.clip_global_norm > 0;
  for (size_t stage = first().num_stages(); stage-- > 0;) {
    if (!first().runs_backward(stage)) continue;
    replicas_->Backward(stage);
    if (clips) continue;
    const std::vector<size_t>& variables = first().variables_of(stage);
    if (shape.wire_set) Send(variables, *shape.wire_set);
    on_sent({variables, first().tables_of(stage)});
  }
  if (clips) Clip(shape.clip_global_norm);
  if (trace_ != nullptr) trace_->BackwardEnds();
  if (!clips) return;
  if (shape.wire_set) Send(delivery_order_, *shape.wire_set);
  on_sent(All());
}

void Model::Clip(float max_norm) {
  std::vector<DeviceMemory*> gradients = trained_gradients_;
  for (const size_t table : trained_tables_) gradients.push_back(first().tables().gradient(table));
  first().device()->ClipByGlobalNorm(max_norm, gradients);
  first().NoteFailure("model", "clip_global_norm");
}

void Model::Send(absl::Span<const size_t> variables, size_t wire_set) {
  for (const size_t variable : variables) {
    if (trace_ != nullptr) trace_->DownloadReady(variable);
    wire_->Download(variable, wire_set, *first().loss_sum());
  }
}

absl::Status Model::HandOver(const Complete& complete, const GradientTarget& target,
                             const GradientCallback& on_gradient_ready) {
  for (const size_t table : complete.tables) RETURN_IF_ERROR(HandOverRows(table, target));
  for (const size_t variable : complete.variables) {
    if (wire_ != nullptr) {
      RETURN_IF_ERROR(replicas_->Explain(wire_->Await(variable)));
    } else {
      RETURN_IF_ERROR(replicas_->Explain(
          first().device()->CopyToHost(*first().gradient(variable), target.arrays[variable])));
    }
    if (on_gradient_ready) on_gradient_ready(variable);
  }
  return absl::OkStatus();
}

absl::Status Model::HandOverRows(size_t table, const GradientTarget& target) {
  RETURN_IF_ERROR(replicas_->Explain(
      first().device()->CopyToHost(*first().tables().gradient(table), target.rows[table])));
  if (target.on_rows_ready) target.on_rows_ready(table);
  return absl::OkStatus();
}

absl::StatusOr<double> Model::AwaitLossSum() {
  const absl::StatusOr<float> sum = loss_->Await();
  if (!sum.ok()) return replicas_->Explain(sum.status());
  return *sum;
}

}  // namespace keelson
