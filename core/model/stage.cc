#include "core/model/stage.h"

#include <algorithm>
#include <utility>

#include "core/model/layers/layer.h"

namespace keelson {
namespace {

// How many layers and losses take each value.
std::vector<int> CountTakers(const ModelSpec& spec) {
  std::vector<int> takers(spec.values().OutputOf(spec.layers.size()), 0);
  for (const LayerSpec& layer : spec.layers) {
    for (const ValueId input : layer.inputs) ++takers[input];
  }
  for (const LossSpec& loss : spec.losses) {
    for (const ValueId input : loss.inputs) ++takers[input];
  }
  return takers;
}

// The activation that alone takes the output of layer `layer`, which can compute it too; -1: there
// is none.
std::vector<int> FindActivations(const ModelSpec& spec) {
  const std::vector<int> takers = CountTakers(spec);
  const GraphValues values = spec.values();
  std::vector<int> activations(spec.layers.size(), -1);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const ValueId input = spec.layers[i].inputs.front();
    if (!ActivationOf(spec.layers[i].kind) || values.IsFeature(input)) continue;
    const size_t before = values.LayerOf(input);
    if (takers[input] == 1 && TakesActivation(spec.layers[before].kind)) {
      activations[before] = static_cast<int>(i);
    }
  }
  return activations;
}

bool DependsOnVariables(const StageGraph& graph, ValueId value) {
  const GraphValues values = graph.values();
  return !values.IsFeature(value) && graph.stages[values.LayerOf(value)].backward;
}

}  // namespace

StageGraph MakeStages(const ModelSpec& spec) {
  const std::vector<int> activations = FindActivations(spec);
  const GraphValues values = spec.values();  // of both graphs: they have the same features
  StageGraph graph;
  // By value of the graph of layers.
  std::vector<ValueId> value_of;
  for (const FeatureSpec& feature : spec.records.features) {
    value_of.push_back(value_of.size());
    const bool numbers = feature.kind == FeatureKind::kNumbers;
    graph.feature_floats.push_back(numbers ? feature.shape.num_elements() : 0);
  }
  value_of.resize(values.OutputOf(spec.layers.size()));
  std::vector<bool> computed(spec.layers.size(), false);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    if (computed[i]) continue;  // an activation
    if (KeepsElements(layer.kind)) {
      value_of[values.OutputOf(i)] = value_of[layer.inputs.front()];
      continue;
    }
    const ValueId output = values.OutputOf(graph.stages.size());
    Stage stage;
    stage.layer = i;
    stage.output_floats = layer.output.num_elements();
    for (const ValueId input : layer.inputs) {
      stage.inputs.push_back(value_of[input]);
      stage.input_gradients.push_back(DependsOnVariables(graph, stage.inputs.back()));
      stage.backward |= stage.input_gradients.back();
    }
    stage.backward |= layer.has_parameters();
    if (activations[i] >= 0) {
      stage.activation = ActivationOf(spec.layers[activations[i]].kind);
      computed[activations[i]] = true;
      value_of[values.OutputOf(activations[i])] = output;
    }
    stage.kept_floats = KeptFloats(layer);
    stage.reads_inputs = ReadsInputsBackward(layer.kind);
    stage.reads_output = stage.activation.has_value() || ReadsOutputBackward(layer.kind);
    value_of[values.OutputOf(i)] = output;
    graph.stages.push_back(std::move(stage));
  }
  for (const LossSpec& loss : spec.losses) {
    LossStage& stage = graph.losses.emplace_back();
    for (const ValueId input : loss.inputs) stage.inputs.push_back(value_of[input]);
    stage.scores_pairs = loss.kind == LossKind::kInBatchSoftmax;
  }
  return graph;
}

namespace {

class PassPlanner {
 public:
  PassPlanner(const StageGraph& graph, int64_t rows, bool training)
      : graph_(graph), values_(graph.values()), rows_(rows), training_(training) {}

  PassMemory Plan() {
    for (const int64_t floats : graph_.feature_floats) Add(floats, 0, 0);
    for (size_t i = 0; i < stages_.size(); ++i) {
      Add(stages_[i].output_floats, Forward(i), Forward(i));
    }
    for (ValueId value = 0; value < num_values(); ++value) memory_.values.push_back(value);
    for (const LossStage& stage : graph_.losses) {
      for (const ValueId input : stage.inputs) Use(input, loss());
    }
    for (size_t i = 0; i < stages_.size(); ++i) UseValues(i);
    PlanKept();
    PlanPairScores();
    if (training_) PlanGradients();
    const MemoryPlan plan = PlanMemory(memory_.lifetimes);
    memory_.floats = plan.floats;
    for (size_t part = 0; part < plan.begin.size(); ++part) {
      memory_.parts.push_back({plan.begin[part], memory_.lifetimes[part].floats});
    }
    return std::move(memory_);
  }

 private:
  size_t num_values() const { return values_.OutputOf(stages_.size()); }
  int Forward(size_t stage) const { return static_cast<int>(stage) + 1; }
  int loss() const { return static_cast<int>(stages_.size()) + 1; }
  int Backward(size_t stage) const { return 2 * loss() - 1 - static_cast<int>(stage); }

  // Adds a part of so many floats per example; returns its position.
  size_t Add(int64_t floats, int first, int last) {
    memory_.lifetimes.push_back({rows_ * floats, first, last});
    return memory_.lifetimes.size() - 1;
  }

  // The value's part is at the value's position.
  void Use(ValueId value, int moment) {
    int& last = memory_.lifetimes[value].last;
    last = std::max(last, moment);
  }

  void UseValues(size_t i) {
    const Stage& stage = stages_[i];
    const bool again = training_ && stage.backward;
    for (const ValueId input : stage.inputs) {
      Use(input, Forward(i));
      if (again && stage.reads_inputs) Use(input, Backward(i));
    }
    if (again && stage.reads_output) Use(values_.OutputOf(i), Backward(i));
  }

  void PlanKept() {
    memory_.kept.resize(stages_.size());
    for (size_t i = 0; i < stages_.size(); ++i) {
      const bool again = training_ && stages_[i].backward;
      for (const int64_t floats : stages_[i].kept_floats) {
        memory_.kept[i].push_back(Add(floats, Forward(i), again ? Backward(i) : Forward(i)));
      }
    }
  }

  void PlanPairScores() {
    for (const LossStage& stage : graph_.losses) {
      std::optional<PassMemory::PairScores>& pairs = memory_.pair_scores.emplace_back();
      if (!stage.scores_pairs) continue;
      // A score of each example for each.
      pairs = {Add(rows_, loss(), loss()), 0};
      if (training_) pairs->gradient = Add(rows_, loss(), loss());
    }
  }

  // The losses come first, then the stages from the last one to the first. The first one that has a
  // gradient for a value writes it; those of later ones are added.
  void PlanGradients() {
    std::vector<std::optional<size_t>> of_value(num_values());
    for (const LossStage& stage : graph_.losses) {
      std::vector<PassMemory::Gradient>& gradients = memory_.loss_gradients.emplace_back();
      for (const ValueId input : stage.inputs) {
        gradients.push_back(PlanGradient(loss(), &of_value[input], input));
      }
    }
    memory_.output_gradients.resize(stages_.size());
    memory_.input_gradients.resize(stages_.size());
    for (size_t i = stages_.size(); i-- > 0;) {
      const Stage& stage = stages_[i];
      memory_.input_gradients[i].resize(stage.inputs.size());
      if (!stage.backward) continue;
      memory_.output_gradients[i] = *of_value[values_.OutputOf(i)];
      for (size_t k = 0; k < stage.inputs.size(); ++k) {
        if (!stage.input_gradients[k]) continue;
        memory_.input_gradients[i][k] =
            PlanGradient(Backward(i), &of_value[stage.inputs[k]], stage.inputs[k]);
      }
    }
  }

  // Of a value whose taker runs backward at `moment`. `gradient`: the part that has the value's,
  // once there is one.
  PassMemory::Gradient PlanGradient(int moment, std::optional<size_t>* gradient, ValueId value) {
    const size_t writer = values_.LayerOf(value);
    const int64_t floats = stages_[writer].output_floats;
    if (gradient->has_value()) return {Add(floats, moment, moment), *gradient};
    *gradient = Add(floats, moment, Backward(writer));
    return {**gradient, std::nullopt};
  }

  const StageGraph& graph_;
  const std::vector<Stage>& stages_ = graph_.stages;
  const GraphValues values_;
  const int64_t rows_;
  const bool training_;
  PassMemory memory_;
};

}  // namespace

PassMemory PlanPass(const StageGraph& graph, int64_t rows, bool training) {
  return PassPlanner(graph, rows, training).Plan();
}

}  // namespace keelson
