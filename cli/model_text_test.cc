#include "cli/model_text.h"

#include <gmock/gmock.h>

#include "core/model/spec/model_config_testing.h"

namespace keelson {
namespace {

ModelSpec Siamese() {
  const auto spec = InferModelSpec(ParseModel(
      R"pb(input_shape: 6
           layers {
             name: "left"
             slice { size: 3 }
           }
           layers {
             name: "right"
             slice { begin: 3 size: 3 }
             inputs: "features"
           }
           layers {
             name: "a"
             dense { units: 4 }
             inputs: "left"
           }
           layers {
             name: "b"
             dense { units: 4 }
             inputs: "right"
             variables_of: "a"
           }
           layers {
             name: "both"
             multiply {}
             inputs: "a"
             inputs: "b"
           }
           layers { dense { units: 1 no_bias: true } }
           loss { kind: SIGMOID_CROSS_ENTROPY })pb"));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.value_or(ModelSpec());
}

TEST(ModelTextTest, ATableHasARowForEachLayer) {
  EXPECT_EQ(ModelTable(Siamese()),
            "layer     kind      inputs    output  parameters  operations\n"
            "features                      [6]\n"
            "left      slice     features  [3]     0           0\n"
            "right     slice     features  [3]     0           0\n"
            "a         dense     left      [4]     16          28\n"
            "b         dense     right     [4]     0           28\n"
            "both      multiply  a, b      [4]     0           4\n"
            "dense_3   dense     both      [1]     4           8\n"
            "\n"
            "20 parameters, 68 operations forward for an example, loss SIGMOID_CROSS_ENTROPY\n");
}

TEST(ModelTextTest, FeaturesOfIdsSayHowManyIdsThereAre) {
  const auto spec = InferModelSpec(ParseModel(
      R"pb(features {
             name: "item"
             id {}
           }
           features {
             name: "seen"
             bag { weighted: true }
           }
           layers {
             name: "a"
             inputs: "item"
             embedding { rows: 1000 dim: 4 }
           }
           layers {
             name: "b"
             inputs: "seen"
             embedding_bag { rows: 1000 dim: 4 }
             variables_of: "a"
           }
           layers {
             name: "both"
             multiply {}
             inputs: "a"
             inputs: "b"
           }
           layers { dense { units: 1 no_bias: true } }
           loss { kind: SIGMOID_CROSS_ENTROPY })pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(ModelTable(*spec),
            "layer    kind           inputs  output                    parameters  operations\n"
            "item                            id of 1000\n"
            "seen                            weighted bag of 1000 ids\n"
            "a        embedding      item    [4]                       4000        0\n"
            "b        embedding_bag  seen    [4]                       0           8\n"
            "both     multiply       a, b    [4]                       0           4\n"
            "dense_1  dense          both    [1]                       4           8\n"
            "\n"
            "4004 parameters, 20 operations forward for an example, loss SIGMOID_CROSS_ENTROPY\n");
  const std::string dot = ModelDot(*spec);
  EXPECT_THAT(dot, testing::HasSubstr(
                       "\"seen\" [label=\"seen\\nweighted bag of 1000 ids\", style=rounded]"));
  EXPECT_THAT(dot, testing::HasSubstr("\"a\" -> \"b\" [style=dashed"));
}

TEST(ModelTextTest, TablesHaveAnyRows) {
  const auto spec = InferModelSpec(ParseModel(
      R"pb(features {
             name: "item"
             id {}
           }
           features {
             name: "seen"
             bag {}
           }
           tables { name: "items" dim: 4 }
           layers {
             name: "a"
             inputs: "item"
             embedding { table: "items" }
           }
           layers {
             name: "b"
             inputs: "seen"
             embedding_bag { table: "items" }
           }
           layers {
             name: "both"
             dot {}
             inputs: "a"
             inputs: "b"
           }
           loss { kind: SIGMOID_CROSS_ENTROPY })pb"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(ModelTable(*spec),
            "layer  kind           inputs  output          parameters  operations\n"
            "item                          any id\n"
            "seen                          bag of any ids\n"
            "a      embedding      item    [4]             0           0\n"
            "b      embedding_bag  seen    [4]             0           8\n"
            "both   dot            a, b    [1]             0           8\n"
            "\n"
            "table  rows  dim  layers\n"
            "items  any   4    a, b\n"
            "\n"
            "0 parameters, 16 operations forward for an example, loss SIGMOID_CROSS_ENTROPY\n");
  const std::string dot = ModelDot(*spec);
  EXPECT_THAT(
      dot, testing::HasSubstr("\"table items\" [label=\"items\\nany rows [4]\", shape=cylinder]"));
  EXPECT_THAT(dot, testing::HasSubstr("\"table items\" -> \"b\" [style=dashed, dir=none]"));
}

TEST(ModelTextTest, APictureHasANodeForEachLayerAndAnEdgeForEachInput) {
  EXPECT_EQ(ModelDot(Siamese()),
            "digraph model {\n"
            "  node [shape=box];\n"
            "  \"features\" [label=\"features\\n[6]\", style=rounded];\n"
            "  \"left\" [label=\"left\\nslice [3]\"];\n"
            "  \"right\" [label=\"right\\nslice [3]\"];\n"
            "  \"a\" [label=\"a\\ndense [4]\"];\n"
            "  \"b\" [label=\"b\\ndense [4]\"];\n"
            "  \"both\" [label=\"both\\nmultiply [4]\"];\n"
            "  \"dense_3\" [label=\"dense_3\\ndense [1]\"];\n"
            "  \"features\" -> \"left\";\n"
            "  \"features\" -> \"right\";\n"
            "  \"left\" -> \"a\";\n"
            "  \"right\" -> \"b\";\n"
            "  \"a\" -> \"both\";\n"
            "  \"b\" -> \"both\";\n"
            "  \"both\" -> \"dense_3\";\n"
            "  \"a\" -> \"b\" [style=dashed, dir=none, constraint=false];\n"
            "}\n");
}

}  // namespace
}  // namespace keelson
