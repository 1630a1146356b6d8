#include "core/onnx/graph_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

void SetType(onnx::Tensor::DataType type, const std::vector<OnnxGraphBuilder::Dimension>& dims,
             onnx::Value* value) {
  onnx::Type::TensorType* const tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  onnx::Type::Shape* const shape = tensor->mutable_shape();
  for (const OnnxGraphBuilder::Dimension& dim : dims) {
    onnx::Type::Dimension* const added = shape->add_dim();
    if (dim.name.empty()) {
      added->set_dim_value(dim.size);
    } else {
      added->set_dim_param(dim.name);
    }
  }
}

// Every machine that Keelson is for is little-endian, as ONNX's raw data are.
template <typename T>
std::string BytesOf(absl::Span<const T> values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

OnnxAttribute OnnxAttribute::Int(std::string name, int64_t value) {
  OnnxAttribute attribute;
  attribute.proto.set_name(std::move(name));
  attribute.proto.set_type(onnx::Attribute::INT);
  attribute.proto.set_i(value);
  return attribute;
}

OnnxAttribute OnnxAttribute::Float(std::string name, float value) {
  OnnxAttribute attribute;
  attribute.proto.set_name(std::move(name));
  attribute.proto.set_type(onnx::Attribute::FLOAT);
  attribute.proto.set_f(value);
  return attribute;
}

OnnxAttribute OnnxAttribute::Ints(std::string name, absl::Span<const int64_t> values) {
  OnnxAttribute attribute;
  attribute.proto.set_name(std::move(name));
  attribute.proto.set_type(onnx::Attribute::INTS);
  attribute.proto.mutable_ints()->Assign(values.begin(), values.end());
  return attribute;
}

OnnxGraphBuilder::OnnxGraphBuilder(std::string name) { graph_.set_name(std::move(name)); }

std::string OnnxGraphBuilder::Unique(absl::string_view name) {
  std::string unique(name);
  for (int number = 2; !names_.insert(unique).second; ++number) {
    unique = absl::StrCat(name, "_", number);
  }
  return unique;
}

std::string OnnxGraphBuilder::Add(absl::string_view op, const std::vector<std::string>& inputs,
                                  absl::string_view output,
                                  const std::vector<OnnxAttribute>& attributes,
                                  absl::string_view domain) {
  std::string name = Unique(output);
  onnx::Node* const node = graph_.add_node();
  node->set_op_type(std::string(op));
  node->set_domain(std::string(domain));
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(name);
  for (const OnnxAttribute& attribute : attributes) *node->add_attribute() = attribute.proto;
  return name;
}

std::string OnnxGraphBuilder::Floats(absl::string_view name, absl::Span<const int64_t> dims,
                                     absl::Span<const float> values) {
  std::string unique = Unique(name);
  onnx::Tensor* const tensor = graph_.add_initializer();
  tensor->set_name(unique);
  tensor->set_data_type(onnx::Tensor::FLOAT);
  tensor->mutable_dims()->Assign(dims.begin(), dims.end());
  tensor->set_raw_data(BytesOf(values));
  return unique;
}

std::string OnnxGraphBuilder::Ints(absl::string_view name, absl::Span<const int64_t> values) {
  std::string unique = Unique(name);
  onnx::Tensor* const tensor = graph_.add_initializer();
  tensor->set_name(unique);
  tensor->set_data_type(onnx::Tensor::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  tensor->set_raw_data(BytesOf(values));
  return unique;
}

std::string OnnxGraphBuilder::Int(absl::string_view name, int64_t value) {
  std::string unique = Ints(name, {&value, 1});
  graph_.mutable_initializer()->rbegin()->clear_dims();
  return unique;
}

std::string OnnxGraphBuilder::AddInput(absl::string_view name, onnx::Tensor::DataType type,
                                       const std::vector<Dimension>& dims, absl::string_view text) {
  std::string unique = Unique(name);
  onnx::Value* const input = graph_.add_input();
  input->set_name(unique);
  input->set_doc_string(std::string(text));
  SetType(type, dims, input);
  return unique;
}

void OnnxGraphBuilder::AddOutput(absl::string_view name, const std::string& value,
                                 const std::vector<Dimension>& dims, absl::string_view text) {
  onnx::Value* const output = graph_.add_output();
  output->set_name(Add("Identity", {value}, name));
  output->set_doc_string(std::string(text));
  SetType(onnx::Tensor::FLOAT, dims, output);
}

}  // namespace keelson
