#include "core/onnx/graph_builder.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

TEST(OnnxGraphBuilderTest, NamesAreUnique) {
  OnnxGraphBuilder graph("g");
  const std::string x = graph.AddInput("x", onnx::Tensor::FLOAT, {{.name = "records"}}, "");
  EXPECT_EQ(graph.Add("Relu", {x}, "x"), "x_2");
  EXPECT_EQ(graph.Add("Relu", {x}, "x"), "x_3");
  EXPECT_EQ(graph.Float("x_2", 1), "x_2_2");
  EXPECT_EQ(graph.graph().node(1).input(0), "x");
}

TEST(OnnxGraphBuilderTest, ConstantsHaveTheirBytes) {
  OnnxGraphBuilder graph("g");
  graph.Floats("f", {2, 1}, {1.5f, -2});
  graph.Ints("i", {-1, 7});
  graph.Int("scalar", 3);
  const onnx::Tensor& floats = graph.graph().initializer(0);
  EXPECT_EQ(floats.data_type(), onnx::Tensor::FLOAT);
  EXPECT_THAT(floats.dims(), ElementsAre(2, 1));
  float value = 0;
  std::memcpy(&value, floats.raw_data().data() + 4, sizeof(value));
  EXPECT_EQ(value, -2);
  const onnx::Tensor& ints = graph.graph().initializer(1);
  EXPECT_THAT(ints.dims(), ElementsAre(2));
  EXPECT_EQ(ints.raw_data(), std::string("\xff\xff\xff\xff\xff\xff\xff\xff\x07\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(graph.graph().initializer(2).dims_size(), 0);
}

TEST(OnnxGraphBuilderTest, AttributesHaveTheirTypes) {
  EXPECT_EQ(OnnxAttribute::Int("a", 3).proto.type(), onnx::Attribute::INT);
  EXPECT_EQ(OnnxAttribute::Float("a", 0.5f).proto.f(), 0.5f);
  EXPECT_THAT(OnnxAttribute::Ints("a", {1, 2}).proto.ints(), ElementsAre(1, 2));
}

TEST(OnnxGraphBuilderTest, InputsAndOutputsHaveTheirShapes) {
  OnnxGraphBuilder graph("g");
  const std::string x =
      graph.AddInput("x", onnx::Tensor::INT64, {{.name = "records"}, {.size = 3}}, "ids");
  graph.AddOutput("y", x, {{.name = "records"}}, "");
  const onnx::Type::TensorType& type = graph.graph().input(0).type().tensor_type();
  EXPECT_EQ(type.elem_type(), onnx::Tensor::INT64);
  EXPECT_EQ(type.shape().dim(0).dim_param(), "records");
  EXPECT_EQ(type.shape().dim(1).dim_value(), 3);
  EXPECT_EQ(graph.graph().output(0).name(), "y");
  EXPECT_EQ(graph.graph().node(0).op_type(), "Identity");
}

}  // namespace
}  // namespace keelson
