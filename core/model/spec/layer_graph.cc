#include "core/model/spec/layer_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

std::string PathOf(int position) { return absl::StrCat("model.layers[", position, "]"); }

// Layers are called by their positions in the list here, and features by the numbers below 0: the
// first one is -1.
class Orderer {
 public:
  Orderer(const v1::ModelConfig& config, const std::vector<std::string>& features)
      : config_(config), features_(features) {}

  absl::StatusOr<LayerGraph> Order() {
    if (config_.layers().empty()) {
      return FieldError("model.layers", "expected at least one, found none");
    }
    RETURN_IF_ERROR(NameLayers());
    RETURN_IF_ERROR(FindInputs());
    RETURN_IF_ERROR(FindInputsOfLosses());
    RETURN_IF_ERROR(CheckOutputs());
    ASSIGN_OR_RETURN(LayerGraph graph, Sort());
    RETURN_IF_ERROR(CheckFeatures());
    return graph;
  }

 private:
  int size() const { return config_.layers_size(); }
  static bool IsFeature(int input) { return input < 0; }
  static int NumberOf(size_t feature) { return -1 - static_cast<int>(feature); }
  static size_t FeatureOf(int input) { return static_cast<size_t>(-1 - input); }

  absl::Status NameLayers() {
    std::map<LayerKind, int> count;
    for (int i = 0; i < size(); ++i) {
      const v1::LayerConfig& layer = config_.layers(i);
      LayerNode node;
      node.position = i;
      ASSIGN_OR_RETURN(node.kind, LayerKindOf(layer, PathOf(i)));
      const int number = ++count[node.kind];
      node.name =
          layer.name().empty() ? absl::StrCat(LayerKindName(node.kind), "_", number) : layer.name();
      RETURN_IF_ERROR(CheckNode(node));
      by_name_[node.name] = i;
      nodes_.push_back(std::move(node));
    }
    return absl::OkStatus();
  }

  absl::Status CheckNode(const LayerNode& node) const {
    const std::string path = absl::StrCat(PathOf(node.position), ".name");
    RETURN_IF_ERROR(CheckName(path, node.name));
    if (by_name_.count(node.name) > 0) {
      return FieldError(path, absl::StrCat("another layer is already called \"", node.name, "\""));
    }
    return absl::OkStatus();
  }

  absl::Status FindInputs() {
    inputs_.resize(nodes_.size());
    takers_.resize(nodes_.size());
    taken_features_.resize(features_.size(), false);
    for (int i = 0; i < size(); ++i) {
      const auto& names = config_.layers(i).inputs();
      if (names.empty() && i == 0 && features_.size() > 1) return NoFirstInput();
      // The layer before it, or the only feature, whose number it is.
      if (names.empty()) AddInput(i, i - 1);
      for (int k = 0; k < names.size(); ++k) {
        ASSIGN_OR_RETURN(const int input,
                         Find(names[k], absl::StrCat(PathOf(i), ".inputs[", k, "]")));
        AddInput(i, input);
      }
    }
    return absl::OkStatus();
  }

  absl::Status NoFirstInput() const {
    return FieldError(absl::StrCat(PathOf(0), ".inputs"),
                      absl::StrCat("expected one or more, for the model has ", features_.size(),
                                   " features, found none"));
  }

  absl::StatusOr<int> Find(const std::string& name, const std::string& path) const {
    const auto layer = by_name_.find(name);
    const auto feature = std::find(features_.begin(), features_.end(), name);
    if (layer != by_name_.end() && feature != features_.end()) {
      return FieldError(path, absl::StrCat("a feature and a layer are both called \"", name, "\""));
    }
    if (layer != by_name_.end()) return layer->second;
    if (feature != features_.end()) return NumberOf(feature - features_.begin());
    return FieldError(path,
                      absl::StrCat("expected the name of a layer or of a feature (",
                                   absl::StrJoin(features_, ", "), "), found \"", name, "\""));
  }

  void AddInput(int layer, int input) {
    inputs_[layer].push_back(input);
    if (IsFeature(input)) {
      taken_features_[FeatureOf(input)] = true;
    } else {
      takers_[input].push_back(layer);
    }
  }

  absl::Status FindInputsOfLosses() {
    if (config_.losses().empty()) return FindInputsOf(config_.loss(), 0);
    for (int i = 0; i < config_.losses_size(); ++i) {
      RETURN_IF_ERROR(FindInputsOf(config_.losses(i), i));
    }
    return absl::OkStatus();
  }

  absl::Status FindInputsOf(const v1::LossConfig& loss, int number) {
    const std::string path = PathOfLoss(config_, number);
    std::vector<int>& inputs = of_losses_.emplace_back();
    if (loss.kind() == v1::LossConfig::IN_BATCH_SOFTMAX) {
      if (!loss.scores().empty()) {
        return FieldError(path + ".scores", absl::StrCat("expected none of IN_BATCH_SOFTMAX, which "
                                                         "takes queries and items, found \"",
                                                         loss.scores(), "\""));
      }
      RETURN_IF_ERROR(AddInputOf(loss.queries(), path + ".queries", &inputs));
      return AddInputOf(loss.items(), path + ".items", &inputs);
    }
    if (!loss.scores().empty()) return AddInputOf(loss.scores(), path + ".scores", &inputs);
    inputs.push_back(size() - 1);
    return absl::OkStatus();
  }

  absl::Status AddInputOf(const std::string& name, const std::string& path,
                          std::vector<int>* inputs) const {
    const auto layer = by_name_.find(name);
    if (layer == by_name_.end()) {
      return FieldError(path, absl::StrCat("expected the name of a layer, found \"", name, "\""));
    }
    inputs->push_back(layer->second);
    return absl::OkStatus();
  }

  bool IsTakenByLoss(int layer) const {
    return std::any_of(of_losses_.begin(), of_losses_.end(), [&](const std::vector<int>& inputs) {
      return std::find(inputs.begin(), inputs.end(), layer) != inputs.end();
    });
  }

  absl::Status CheckOutputs() const {
    for (int i = 0; i < size(); ++i) {
      if (IsTakenByLoss(i) || !takers_[i].empty()) continue;
      return FieldError(PathOf(i),
                        absl::StrCat("expected a layer or a loss that takes the output of \"",
                                     nodes_[i].name, "\", found none; the loss takes that of \"",
                                     nodes_[of_losses_.front().front()].name, "\""));
    }
    return absl::OkStatus();
  }

  absl::Status CheckFeatures() const {
    for (size_t i = 0; i < features_.size(); ++i) {
      if (taken_features_[i]) continue;
      return FieldError(
          absl::StrCat("model.features[", i, "]"),
          absl::StrCat("expected a layer that takes \"", features_[i], "\", found none"));
    }
    return absl::OkStatus();
  }

  // Of the layers whose inputs are there the first in the list comes next (Kahn, CACM 5 (1962)).
  absl::StatusOr<LayerGraph> Sort() {
    std::vector<size_t> missing(nodes_.size(), 0);
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < size(); ++i) {
      for (const int input : inputs_[i]) missing[i] += IsFeature(input) ? 0 : 1;
      if (missing[i] == 0) ready.push(i);
    }
    std::vector<int> order;
    while (!ready.empty()) {
      const int next = ready.top();
      ready.pop();
      order.push_back(next);
      for (const int taker : takers_[next]) {
        if (--missing[taker] == 0) ready.push(taker);
      }
    }
    if (order.size() < nodes_.size()) return CycleError(missing);
    return InOrder(order);
  }

  // `missing`: how many inputs each layer still lacks.
  absl::Status CycleError(const std::vector<size_t>& missing) const {
    // From a layer that waits back to one for which it waits, until a layer comes again.
    std::vector<int> way = {static_cast<int>(
        std::find_if(missing.begin(), missing.end(), [](size_t n) { return n > 0; }) -
        missing.begin())};
    std::vector<int>::iterator begin;
    do {
      const std::vector<int>& inputs = inputs_[way.back()];
      const int next = *std::find_if(inputs.begin(), inputs.end(), [&](int input) {
        return !IsFeature(input) && missing[input] > 0;
      });
      way.push_back(next);
      begin = std::find(way.begin(), way.end() - 1, next);
    } while (begin == way.end() - 1);
    std::vector<std::string> names;
    for (auto layer = way.end(); layer != begin;) names.push_back(nodes_[*--layer].name);
    return FieldError(absl::StrCat(PathOf(*begin), ".inputs"),
                      absl::StrCat("expected no cycle, found ", absl::StrJoin(names, " -> ")));
  }

  LayerGraph InOrder(const std::vector<int>& order) {
    std::vector<size_t> rank(nodes_.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
    const GraphValues values(features_.size());
    LayerGraph graph;
    for (const int layer : order) {
      LayerNode node = std::move(nodes_[layer]);
      for (const int input : inputs_[layer]) {
        node.inputs.push_back(IsFeature(input) ? FeatureOf(input) : values.OutputOf(rank[input]));
      }
      graph.layers.push_back(std::move(node));
    }
    for (const std::vector<int>& inputs : of_losses_) {
      std::vector<ValueId>& of_loss = graph.of_losses.emplace_back();
      for (const int layer : inputs) of_loss.push_back(values.OutputOf(rank[layer]));
    }
    return graph;
  }

  const v1::ModelConfig& config_;
  const std::vector<std::string>& features_;
  std::vector<bool> taken_features_;
  std::vector<LayerNode> nodes_;
  std::map<std::string, int> by_name_;
  std::vector<std::vector<int>> inputs_;
  std::vector<std::vector<int>> takers_;
  std::vector<std::vector<int>> of_losses_;  // the layers whose outputs each takes
};

}  // namespace

std::string PathOfLoss(const v1::ModelConfig& config, int loss) {
  return config.losses().empty() ? "model.loss" : absl::StrCat("model.losses[", loss, "]");
}

absl::StatusOr<LayerGraph> OrderLayers(const v1::ModelConfig& config,
                                       const std::vector<std::string>& features) {
  return Orderer(config, features).Order();
}

}  // namespace keelson
