// What TensorFlow 2's object graph says about the tensors of a checkpoint: such a checkpoint names
// them by the path from its root ("optimizer/_trainable_variables/0"), and the graph knows what the
// variables were called ("sequential/dense/kernel").
// Format: proto/keelson/v1/checkpoint.proto, ObjectGraph.
#ifndef KEELSON_CORE_TENSOR_FILES_OBJECT_GRAPH_H_
#define KEELSON_CORE_TENSOR_FILES_OBJECT_GRAPH_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {

inline constexpr char kObjectGraphTensor[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

struct TrackedTensor {
  // As the variable was called; empty: the graph gives none, or one that Python made up
  // ("Variable_3").
  std::string name;
  // An optimizer keeps it (moments, its step, its learning rate), or the saver itself does.
  bool is_state = false;
};

// The tensors that the graph knows, by their names in the bundle.
std::map<std::string, TrackedTensor> TrackedTensors(const v1::ObjectGraph& graph);

// "net/kernel" of "net/kernel/.ATTRIBUTES/VARIABLE_VALUE"; any other name as it is.
absl::string_view PathOfKey(absl::string_view checkpoint_key);

}  // namespace keelson

#endif  // KEELSON_CORE_TENSOR_FILES_OBJECT_GRAPH_H_
