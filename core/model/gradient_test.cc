// Every layer's gradients against finite differences of the loss. A layer's gradient with respect
// to its input is seen in the variables of the layer before it.
#include <cmath>

#include "core/model/model_testing.h"

namespace keelson {
namespace {

struct Case {
  const char* name;
  const char* model;
};

class GradientTest : public testing::TestWithParam<Case> {};

// Loss with one element of a variable moved by `by`.
double LossAt(TestModel* test, const Batch& batch, size_t variable, int64_t element, float by) {
  float& value = test->values[variable].data()[element];
  const float kept = value;
  value += by;
  test->Load(variable);
  const double loss = test->Step(batch, 5);
  value = kept;
  test->Load(variable);
  return loss;
}

TEST_P(GradientTest, EqualsFiniteDifferences) {
  TestModel test(GetParam().model);
  const Batch batch = RandomBatch(test.model->spec(), 6, 77);
  const double loss = test.Step(batch, 5);
  std::vector<std::vector<float>> analytic;
  for (const Tensor& g : test.gradients) analytic.emplace_back(g.data(), g.data() + g.size());

  constexpr float kStep = 4e-3f;
  int smooth = 0, kinks = 0;
  for (size_t v = 0; v < analytic.size(); ++v) {
    if (!test.model->variables()[v].trained()) continue;  // gets samples, not gradients
    for (size_t i = 0; i < analytic[v].size(); ++i) {
      const double above = LossAt(&test, batch, v, static_cast<int64_t>(i), kStep);
      const double below = LossAt(&test, batch, v, static_cast<int64_t>(i), -kStep);
      // Where a maximum or a ReLU changes sides in between, the central difference is off by no
      // more than this.
      const double kink = std::abs(above + below - 2 * loss) / (2 * kStep);
      (kink < 5e-3 ? smooth : kinks) += 1;
      EXPECT_NEAR(analytic[v][i], (above - below) / (2 * kStep), 2e-4 + kink)
          << test.model->variables()[v].name << "[" << i << "]";
    }
  }
  EXPECT_GT(smooth, 9 * kinks);
}

INSTANTIATE_TEST_SUITE_P(
    Layers, GradientTest,
    testing::Values(
        Case{"Dense",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"DenseWithoutBias",
             R"pb(input_shape: 7
                  layers { dense { units: 5 no_bias: true } }
                  layers { dense { units: 3 no_bias: true } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Relu",
             R"pb(input_shape: 7
                  layers { dense { units: 9 } }
                  layers { relu {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Tanh",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { tanh {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Sigmoid",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { sigmoid {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Dropout",
             R"pb(input_shape: 7
                  layers { dropout { rate: 0.2 } }
                  layers { dense { units: 15 } }
                  layers { dropout { rate: 0.5 } }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Conv2D",
             R"pb(input_shape: [ 7, 6, 2 ]
                  layers { conv2d { filters: 3 kernel_size: 3 } }
                  layers { conv2d { filters: 2 kernel_size: 2 } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Conv2DSameWithStride",
             R"pb(input_shape: [ 6, 5, 2 ]
                  layers { conv2d { filters: 3 kernel_size: 3 stride: 2 padding: SAME } }
                  layers { conv2d { filters: 2 kernel_size: 4 padding: SAME no_bias: true } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"MaxPool",
             R"pb(input_shape: [ 6, 7, 1 ]
                  layers { conv2d { filters: 3 kernel_size: 3 } }
                  layers { max_pool { size: 2 } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"MaxPoolSameOverlapping",
             R"pb(input_shape: [ 6, 7, 1 ]
                  layers { conv2d { filters: 3 kernel_size: 3 } }
                  layers { max_pool { size: 3 stride: 2 padding: SAME } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"AvgPool",
             R"pb(input_shape: [ 6, 7, 1 ]
                  layers { conv2d { filters: 3 kernel_size: 3 } }
                  layers { avg_pool { size: 3 stride: 2 padding: SAME } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Embedding",
             R"pb(features {
                    name: "user"
                    id {}
                  }
                  layers { embedding { rows: 5 dim: 4 } }
                  layers { tanh {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"EmbeddingBagsThatShareAVariable",
             R"pb(features {
                    name: "tags"
                    bag {}
                  }
                  features {
                    name: "seen"
                    bag { weighted: true }
                  }
                  layers {
                    name: "a"
                    inputs: "tags"
                    embedding_bag { rows: 5 dim: 4 combiner: SUM }
                  }
                  layers {
                    name: "b"
                    inputs: "seen"
                    embedding_bag { rows: 5 dim: 4 combiner: SQRTN }
                    variables_of: "a"
                  }
                  layers {
                    name: "c"
                    inputs: "seen"
                    embedding_bag { rows: 6 dim: 4 }
                  }
                  layers {
                    concat {}
                    inputs: "a"
                    inputs: "b"
                    inputs: "c"
                  }
                  layers { tanh {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"BatchNorm",
             R"pb(input_shape: 7
                  layers { dense { units: 5 no_bias: true } }
                  layers { batch_norm {} }
                  layers { tanh {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"BatchNormWithoutScale",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { batch_norm { no_scale: true epsilon: 0.1 } }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"AddOfTheFeaturesAndALayer",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 4 }
                  }
                  layers {
                    name: "sum"
                    add {}
                    inputs: "a"
                    inputs: "features"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Residual",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 5 }
                  }
                  layers {
                    name: "b"
                    dense { units: 5 }
                  }
                  layers { tanh {} }
                  layers {
                    name: "c"
                    dense { units: 5 }
                  }
                  layers {
                    add {}
                    inputs: "c"
                    inputs: "a"
                    inputs: "tanh_1"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"AddOfTheSameTwice",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 3 }
                  }
                  layers {
                    add {}
                    inputs: "a"
                    inputs: "a"
                  }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"MultiplyOfTheSameTwice",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 3 }
                  }
                  layers {
                    multiply {}
                    inputs: "a"
                    inputs: "a"
                  }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"GateOfTwoBranches",
             R"pb(input_shape: 4
                  layers {
                    name: "value"
                    dense { units: 5 }
                  }
                  layers {
                    name: "gate"
                    dense { units: 5 }
                    inputs: "features"
                  }
                  layers {
                    name: "open"
                    sigmoid {}
                    inputs: "gate"
                  }
                  layers {
                    multiply {}
                    inputs: "value"
                    inputs: "open"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"ConcatAndSlice",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 5 }
                  }
                  layers {
                    name: "b"
                    dense { units: 2 }
                    inputs: "features"
                  }
                  layers {
                    name: "both"
                    concat {}
                    inputs: "a"
                    inputs: "b"
                    inputs: "features"
                  }
                  layers {
                    name: "middle"
                    slice { begin: 3 size: 5 }
                    inputs: "both"
                  }
                  layers {
                    name: "all"
                    slice { size: 11 }
                    inputs: "both"
                  }
                  layers {
                    concat {}
                    inputs: "middle"
                    inputs: "all"
                  }
                  layers { scale { factor: -1.5 } }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"ConcatAndSliceOfChannels",
             R"pb(input_shape: [ 4, 4, 2 ]
                  layers {
                    name: "a"
                    conv2d { filters: 3 kernel_size: 3 padding: SAME }
                  }
                  layers {
                    concat {}
                    inputs: "features"
                    inputs: "a"
                  }
                  layers { slice { begin: 1 size: 3 } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"SeveralLosses",
             R"pb(input_shape: 4
                  layers {
                    name: "body"
                    dense { units: 5 }
                  }
                  layers {
                    name: "tanh"
                    tanh {}
                  }
                  layers {
                    name: "click"
                    dense { units: 1 }
                  }
                  layers {
                    name: "price"
                    inputs: "tanh"
                    dense { units: 1 }
                  }
                  layers {
                    name: "more"
                    inputs: "tanh"
                    inputs: "click"
                    concat {}
                  }
                  layers {
                    name: "kind"
                    dense { units: 3 }
                  }
                  layers {
                    name: "last"
                    relu {}
                  }
                  losses { kind: SIGMOID_CROSS_ENTROPY scores: "click" label: "clicked" }
                  losses { kind: MEAN_SQUARED_ERROR scores: "price" label: "paid" weight: 0.5 }
                  losses { kind: MEAN_SQUARED_ERROR scores: "click" label: "again" weight: 2 }
                  losses { kind: SOFTMAX_CROSS_ENTROPY scores: "kind" label: "a" }
                  losses { kind: SOFTMAX_CROSS_ENTROPY label: "b" weight: 0.7 })pb"},
        Case{"OneLossWithAWeight",
             R"pb(input_shape: 4
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY weight: 0.3 })pb"},
        Case{"SeveralFeatures",
             R"pb(features {
                    name: "numbers"
                    dense { shape: 3 }
                  }
                  features {
                    name: "image"
                    dense { shape: [ 4, 4, 1 ] }
                  }
                  features {
                    name: "more"
                    dense { shape: 2 }
                  }
                  layers {
                    inputs: "image"
                    conv2d { filters: 2 kernel_size: 3 }
                  }
                  layers { tanh {} }
                  layers {
                    name: "flat"
                    flatten {}
                  }
                  layers {
                    name: "tower"
                    inputs: "more"
                    dense { units: 3 }
                  }
                  layers {
                    name: "product"
                    inputs: "tower"
                    inputs: "numbers"
                    multiply {}
                  }
                  layers {
                    inputs: "numbers"
                    inputs: "flat"
                    inputs: "product"
                    concat {}
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"AnActivationWhoseInputIsTakenTwice",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 5 }
                  }
                  layers {
                    name: "t"
                    tanh {}
                  }
                  layers {
                    add {}
                    inputs: "t"
                    inputs: "a"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"SharedVariables",
             R"pb(input_shape: 4
                  layers {
                    name: "a"
                    dense { units: 4 }
                  }
                  layers { tanh {} }
                  layers {
                    dense { units: 4 }
                    variables_of: "a"
                  }
                  layers { tanh {} }
                  layers {
                    dense { units: 4 }
                    variables_of: "a"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"TowersThatShareVariables",
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
                    multiply {}
                    inputs: "a"
                    inputs: "b"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"LayersInAnyOrder",
             R"pb(input_shape: 4
                  layers {
                    name: "late"
                    dense { units: 5 }
                    inputs: "early"
                  }
                  layers {
                    name: "early"
                    dense { units: 5 }
                    inputs: "features"
                  }
                  layers {
                    add {}
                    inputs: "late"
                    inputs: "early"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"BatchNormOfTheFirstAndLastLayer",
             R"pb(input_shape: 4
                  layers { batch_norm {} }
                  layers { dense { units: 3 } }
                  layers { batch_norm { no_center: true } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"BatchNormOfImages",
             R"pb(input_shape: [ 7, 6, 2 ]
                  layers { conv2d { filters: 3 kernel_size: 3 } }
                  layers { batch_norm {} }
                  layers { conv2d { filters: 2 kernel_size: 2 } }
                  layers { batch_norm { no_center: true } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Gelu",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { gelu {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"Silu",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { silu {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"SoftmaxOfRows",
             R"pb(input_shape: 7
                  layers { dense { units: 6 } }
                  layers { reshape { shape: [ 2, 3 ] } }
                  layers { softmax {} }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"LayerNorm",
             R"pb(input_shape: 7
                  layers { dense { units: 5 } }
                  layers { layer_norm {} }
                  layers { dense { units: 3 } }
                  layers { layer_norm { epsilon: 0.1 no_center: true } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"LayerNormOfRowsOfTheFeatures",
             R"pb(input_shape: 6
                  layers { reshape { shape: [ 2, 3 ] } }
                  layers { layer_norm { no_scale: true } }
                  layers { flatten {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"GlobalAveragePool",
             R"pb(input_shape: [ 5, 4, 2 ]
                  layers { conv2d { filters: 4 kernel_size: 3 } }
                  layers { tanh {} }
                  layers { global_average_pool {} }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"CrossNetwork",
             R"pb(input_shape: 4
                  layers {
                    name: "x0"
                    dense { units: 5 }
                  }
                  layers {
                    name: "x1"
                    cross {}
                    inputs: "x0"
                    inputs: "x0"
                  }
                  layers {
                    name: "x2"
                    cross { no_bias: true }
                    inputs: "x0"
                    inputs: "x1"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"CrossNetworkOfLowRank",
             R"pb(input_shape: 4
                  layers {
                    name: "x0"
                    dense { units: 5 }
                  }
                  layers {
                    name: "x1"
                    cross { rank: 2 }
                    inputs: "x0"
                    inputs: "x0"
                  }
                  layers {
                    name: "x2"
                    cross { rank: 3 no_bias: true }
                    inputs: "x0"
                    inputs: "x1"
                  }
                  layers { dense { units: 3 } }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
        Case{"CrossOfTheFeatures",
             R"pb(input_shape: 3
                  layers {
                    name: "x1"
                    cross {}
                    inputs: "features"
                    inputs: "features"
                  }
                  layers {
                    name: "x2"
                    cross { rank: 1 }
                    inputs: "features"
                    inputs: "x1"
                  }
                  loss { kind: SOFTMAX_CROSS_ENTROPY })pb"}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Interactions, GradientTest,
                         testing::Values(Case{"Dot",
                                              R"pb(input_shape: 5
                                                   layers {
                                                     name: "a"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "b"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "c"
                                                     slice { size: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "y"
                                                     dot {}
                                                     inputs: "a"
                                                     inputs: "b"
                                                   }
                                                   layers {
                                                     name: "scores"
                                                     concat {}
                                                     inputs: "y"
                                                     inputs: "c"
                                                   }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
                                         Case{"Cosine",
                                              R"pb(input_shape: 5
                                                   layers {
                                                     name: "a"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "b"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "c"
                                                     slice { size: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "y"
                                                     cosine { epsilon: 0.1 }
                                                     inputs: "b"
                                                     inputs: "a"
                                                   }
                                                   layers {
                                                     name: "scores"
                                                     concat {}
                                                     inputs: "y"
                                                     inputs: "c"
                                                   }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
                                         Case{"FactorizationMachine",
                                              R"pb(input_shape: 5
                                                   layers {
                                                     name: "a"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "b"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "c"
                                                     slice { size: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "y"
                                                     factorization_machine {}
                                                     inputs: "a"
                                                     inputs: "c"
                                                     inputs: "b"
                                                     inputs: "a"
                                                   }
                                                   layers {
                                                     name: "scores"
                                                     concat {}
                                                     inputs: "y"
                                                     inputs: "a"
                                                   }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
                                         Case{"DotInteraction",
                                              R"pb(input_shape: 5
                                                   layers {
                                                     name: "a"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "b"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "c"
                                                     slice { size: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "y"
                                                     dot_interaction {}
                                                     inputs: "a"
                                                     inputs: "c"
                                                     inputs: "b"
                                                     inputs: "a"
                                                   }
                                                   layers { dense { units: 3 } }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
                                         Case{"DotInteractionWithDiagonal",
                                              R"pb(input_shape: 5
                                                   layers {
                                                     name: "a"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "b"
                                                     dense { units: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "c"
                                                     slice { size: 4 }
                                                     inputs: "features"
                                                   }
                                                   layers {
                                                     name: "y"
                                                     dot_interaction { diagonal: true }
                                                     inputs: "a"
                                                     inputs: "c"
                                                     inputs: "b"
                                                     inputs: "a"
                                                   }
                                                   layers { dense { units: 3 } }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Axes, GradientTest,
                         testing::Values(Case{"Transpose",
                                              R"pb(input_shape: [ 2, 3, 2 ]
                                                   layers { conv2d { filters: 3 kernel_size: 1 } }
                                                   layers { transpose { axes: [ 2, 0, 1 ] } }
                                                   layers { tanh {} }
                                                   layers { conv2d { filters: 2 kernel_size: 2 } }
                                                   layers { flatten {} }
                                                   layers { dense { units: 3 } }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"},
                                         Case{"TransposeOfTwoAxes",
                                              R"pb(input_shape: 6
                                                   layers { dense { units: 6 } }
                                                   layers { reshape { shape: [ 2, 3 ] } }
                                                   layers { transpose { axes: [ 1, 0 ] } }
                                                   layers { layer_norm {} }
                                                   layers { flatten {} }
                                                   layers { dense { units: 3 } }
                                                   loss { kind: SOFTMAX_CROSS_ENTROPY })pb"}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Losses, GradientTest,
    testing::Values(Case{"SigmoidCrossEntropy",
                         R"pb(input_shape: 4
                              layers { dense { units: 5 } }
                              layers { tanh {} }
                              layers { dense { units: 1 } }
                              loss { kind: SIGMOID_CROSS_ENTROPY })pb"},
                    Case{"MeanSquaredError",
                         R"pb(input_shape: 4
                              layers { dense { units: 5 } }
                              layers { tanh {} }
                              layers { dense { units: 1 } }
                              loss { kind: MEAN_SQUARED_ERROR })pb"},
                    Case{"Huber",
                         R"pb(input_shape: 4
                              layers { dense { units: 5 } }
                              layers { tanh {} }
                              layers { dense { units: 1 } }
                              loss { kind: HUBER delta: 0.3 })pb"},
                    Case{
                        "WeightsOfRecords",
                        R"pb(input_shape: 4
                             layers {
                               name: "body"
                               dense { units: 5 }
                             }
                             layers {
                               name: "click"
                               dense { units: 1 }
                             }
                             layers {
                               name: "kind"
                               inputs: "body"
                               dense { units: 3 }
                             }
                             losses { kind: SOFTMAX_CROSS_ENTROPY weight_label: "trust" }
                             losses { kind: HUBER scores: "click" label: "a" weight_label: "trust" }
                             losses {
                               kind: SIGMOID_CROSS_ENTROPY
                               scores: "click"
                               label: "b"
                               weight: 0.5
                               weight_label: "more"
                             }
                             losses {
                               kind: MEAN_SQUARED_ERROR
                               scores: "click"
                               label: "c"
                               weight_label: "b"
                             })pb"},
                    Case{"InBatchSoftmax",
                         R"pb(input_shape: 4
                              layers {
                                name: "query"
                                dense { units: 3 }
                              }
                              layers {
                                name: "item"
                                inputs: "features"
                                dense { units: 3 }
                              }
                              loss { kind: IN_BATCH_SOFTMAX queries: "query" items: "item" })pb"},
                    Case{
                        "InBatchSoftmaxOfSharedTowers",
                        R"pb(input_shape: 6
                             layers {
                               name: "left"
                               slice { size: 3 }
                             }
                             layers {
                               name: "right"
                               inputs: "features"
                               slice { begin: 3 size: 3 }
                             }
                             layers {
                               name: "query"
                               inputs: "left"
                               dense { units: 3 }
                             }
                             layers {
                               name: "item"
                               inputs: "right"
                               dense { units: 3 }
                               variables_of: "query"
                             }
                             layers {
                               name: "click"
                               inputs: "query"
                               inputs: "item"
                               dot {}
                             }
                             losses {
                               kind: IN_BATCH_SOFTMAX
                               queries: "query"
                               items: "item"
                               temperature: 0.5
                               log_probability_label: "rate"
                               weight_label: "trust"
                               weight: 0.7
                             }
                             losses { kind: SIGMOID_CROSS_ENTROPY scores: "click" label: "clicked" }
                             losses {
                               kind: IN_BATCH_SOFTMAX
                               queries: "item"
                               items: "query"
                               label: "back"
                             })pb"}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

}  // namespace
}  // namespace keelson
