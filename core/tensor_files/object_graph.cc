#include "core/tensor_files/object_graph.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace keelson {
namespace {

using Node = v1::ObjectGraph::Node;

bool HasChild(const Node& node, absl::string_view name) {
  for (const Node::Child& child : node.children()) {
    if (child.local_name() == name) return true;
  }
  return false;
}

// Keras 3 has "_iterations" and "_learning_rate", Keras 2 "iter" and slots.
bool IsOptimizer(const Node& node) {
  return HasChild(node, "_iterations") || HasChild(node, "iter") || node.slot_variables_size() > 0;
}

// Whether what is behind an edge belongs to the model: an optimizer's list of the model's variables
// does, the rest of it does not, and neither do a Keras 2 model's metrics or the saver's counter.
bool LeadsToModel(const Node& from, const Node::Child& child) {
  if (IsOptimizer(from)) return child.local_name() == "_trainable_variables";
  return child.local_name() != "keras_api" && child.local_name() != "save_counter";
}

// The numbers of the nodes that the model consists of.
std::set<int> NodesOfModel(const v1::ObjectGraph& graph) {
  std::set<int> found;
  std::vector<int> pending = {0};
  while (!pending.empty()) {
    const int id = pending.back();
    pending.pop_back();
    if (id < 0 || id >= graph.nodes_size() || !found.insert(id).second) continue;
    const Node& node = graph.nodes(id);
    for (const Node::Child& child : node.children()) {
      if (LeadsToModel(node, child)) pending.push_back(child.node_id());
    }
  }
  return found;
}

}  // namespace

std::map<std::string, TrackedTensor> TrackedTensors(const v1::ObjectGraph& graph) {
  const std::set<int> model = NodesOfModel(graph);
  std::map<std::string, TrackedTensor> tensors;
  for (int id = 0; id < graph.nodes_size(); ++id) {
    for (const Node::Attribute& attribute : graph.nodes(id).attributes()) {
      const bool made_up = absl::StartsWith(attribute.full_name(), "Variable");
      tensors[attribute.checkpoint_key()] = {made_up ? "" : attribute.full_name(),
                                             model.count(id) == 0};
    }
  }
  return tensors;
}

absl::string_view PathOfKey(absl::string_view checkpoint_key) {
  return absl::StripSuffix(checkpoint_key, "/.ATTRIBUTES/VARIABLE_VALUE");
}

}  // namespace keelson
