// Builds an ONNX graph node by node.
#ifndef KEELSON_CORE_ONNX_GRAPH_BUILDER_H_
#define KEELSON_CORE_ONNX_GRAPH_BUILDER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "onnx/model.pb.h"

namespace keelson {

// An attribute of a node.
struct OnnxAttribute {
  static OnnxAttribute Int(std::string name, int64_t value);
  static OnnxAttribute Float(std::string name, float value);
  static OnnxAttribute Ints(std::string name, absl::Span<const int64_t> values);

  onnx::Attribute proto;
};

// Values are known by their names, which are unique. Not thread-safe.
class OnnxGraphBuilder {
 public:
  explicit OnnxGraphBuilder(std::string name);

  // A node of one output, which gets the name `output`, or of `output` and a number where that is
  // taken. Returns it.
  std::string Add(absl::string_view op, const std::vector<std::string>& inputs,
                  absl::string_view output, const std::vector<OnnxAttribute>& attributes = {},
                  absl::string_view domain = "");

  // Constants. `dims` empty: a scalar.
  std::string Floats(absl::string_view name, absl::Span<const int64_t> dims,
                     absl::Span<const float> values);
  std::string Ints(absl::string_view name, absl::Span<const int64_t> values);
  std::string Int(absl::string_view name, int64_t value);
  std::string Float(absl::string_view name, float value) { return Floats(name, {}, {&value, 1}); }

  // An extent of an input or output of the graph.
  struct Dimension {
    int64_t size = 0;
    std::string name = {};  // of one that differs from call to call, which has no size
  };
  std::string AddInput(absl::string_view name, onnx::Tensor::DataType type,
                       const std::vector<Dimension>& dims, absl::string_view text);
  // Gives `value` the name `name` as an output.
  void AddOutput(absl::string_view name, const std::string& value,
                 const std::vector<Dimension>& dims, absl::string_view text);

  const onnx::Graph& graph() const { return graph_; }
  onnx::Graph Take() { return std::move(graph_); }

 private:
  std::string Unique(absl::string_view name);

  onnx::Graph graph_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_ONNX_GRAPH_BUILDER_H_
