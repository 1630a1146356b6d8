// Configurations that are nearly right: each is refused with one line, or computes a step.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/model/model_testing.h"

namespace keelson {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMutations = 10000;
// A model that is larger is not made.
constexpr int64_t kMostFloats = 20000;

constexpr const char* kModels[] = {
    R"pb(features {
           name: "x"
           id {}
         }
         features {
           name: "y"
           bag { weighted: true }
         }
         features {
           name: "features"
           dense { shape: 3 }
         }
         layers {
           name: "a"
           embedding { rows: 7 dim: 3 }
           inputs: "x"
         }
         layers {
           name: "b"
           embedding_bag { rows: 7 dim: 3 combiner: SQRTN }
           inputs: "y"
           variables_of: "a"
         }
         layers {
           name: "c"
           embedding_bag { rows: 4 dim: 3 combiner: SUM }
           inputs: "y"
         }
         layers {
           name: "d"
           add {}
           inputs: "a"
           inputs: "b"
           inputs: "c"
           inputs: "features"
         }
         layers {
           name: "e"
           dense { units: 2 }
         }
         loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
    R"pb(input_shape: [ 6, 6, 1 ]
         layers { conv2d { filters: 3 kernel_size: 3 padding: SAME } }
         layers { relu {} }
         layers { max_pool { size: 2 } }
         layers { avg_pool { size: 2 stride: 1 } }
         layers { flatten {} }
         layers { dense { units: 5 kernel_initializer: HE_NORMAL } }
         layers { batch_norm { momentum: 0.9 } }
         layers { dropout { rate: 0.5 } }
         layers { dense { units: 3 } }
         loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
    R"pb(features {
           name: "x"
           dense { shape: 3 }
         }
         features {
           name: "y"
           dense { shape: [ 2, 3, 1 ] }
         }
         layers {
           name: "f"
           flatten {}
           inputs: "y"
         }
         layers {
           name: "c"
           concat {}
           inputs: "x"
           inputs: "f"
         }
         layers {
           name: "d"
           dense { units: 3 }
         }
         layers {
           name: "e"
           dense { units: 1 }
         }
         losses { kind: SOFTMAX_CROSS_ENTROPY scores: "d" label: "l" }
         losses { kind: MEAN_SQUARED_ERROR scores: "e" weight: 0.5 weight_label: "w" })pb",
    R"pb(input_shape: 4
         layers {
           name: "a"
           dense { units: 4 }
         }
         layers {
           name: "b"
           tanh {}
         }
         layers {
           name: "c"
           dense { units: 4 }
           variables_of: "a"
         }
         layers {
           name: "d"
           add {}
           inputs: "c"
           inputs: "a"
           inputs: "features"
         }
         layers {
           name: "e"
           slice { begin: 1 size: 2 }
           inputs: "d"
         }
         layers {
           name: "f"
           concat {}
           inputs: "e"
           inputs: "b"
         }
         layers {
           name: "g"
           scale { factor: 2 }
         }
         layers {
           name: "h"
           multiply {}
           inputs: "f"
           inputs: "g"
         }
         layers {
           name: "i"
           dense { units: 1 }
         }
         loss { kind: SIGMOID_CROSS_ENTROPY })pb",
    R"pb(input_shape: 6
         layers {
           name: "a"
           reshape { shape: [ 2, -1 ] }
         }
         layers {
           name: "b"
           layer_norm { epsilon: 0.1 }
         }
         layers {
           name: "c"
           softmax {}
         }
         layers {
           name: "d"
           global_average_pool {}
         }
         layers {
           name: "e"
           cross { rank: 2 }
           inputs: "d"
           inputs: "d"
         }
         layers {
           name: "f"
           gelu {}
         }
         layers {
           name: "g"
           cross {}
           inputs: "d"
           inputs: "f"
         }
         layers {
           name: "h"
           silu {}
         }
         layers {
           name: "i"
           dense { units: 2 }
         }
         loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
    R"pb(input_shape: 3
         layers {
           name: "a"
           dense { units: 3 }
         }
         layers {
           name: "b"
           dot {}
           inputs: "a"
           inputs: "features"
         }
         layers {
           name: "c"
           cosine { epsilon: 0.5 }
           inputs: "features"
           inputs: "a"
         }
         layers {
           name: "d"
           factorization_machine {}
           inputs: "a"
           inputs: "features"
           inputs: "a"
         }
         layers {
           name: "e"
           concat {}
           inputs: "b"
           inputs: "c"
           inputs: "d"
         }
         loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
    R"pb(input_shape: 3
         layers {
           name: "a"
           dense { units: 2 }
         }
         layers {
           name: "b"
           inputs: "features"
           dense { units: 2 }
         }
         losses {
           kind: IN_BATCH_SOFTMAX
           queries: "a"
           items: "b"
           temperature: 0.5
           log_probability_label: "p"
           weight_label: "w"
         }
         losses { kind: SOFTMAX_CROSS_ENTROPY scores: "b" label: "l" })pb",
    R"pb(input_shape: [ 2, 3, 1 ]
         layers { transpose { axes: [ 2, 1, 0 ] } }
         layers {
           name: "x"
           flatten {}
         }
         layers {
           name: "a"
           dense { units: 6 }
         }
         layers {
           dot_interaction { diagonal: true }
           inputs: "a"
           inputs: "x"
           inputs: "a"
         }
         loss { kind: SOFTMAX_CROSS_ENTROPY })pb",
};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  // Changes one thing in the message, or in one of those in it.
  void Mutate(Message* message) {
    const Reflection& reflection = *message->GetReflection();
    const int count = message->GetDescriptor()->field_count();
    if (count == 0) return;
    const FieldDescriptor* const field = message->GetDescriptor()->field(Draw(count));
    if (field->is_repeated()) {
      MutateRepeated(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // An absent one is set: a layer becomes another kind.
      Message* const inner = reflection.MutableMessage(message, field);
      if (Draw(3) == 0) {
        reflection.ClearField(message, field);
      } else {
        Mutate(inner);
      }
    } else {
      SetScalar(message, field);
    }
  }

 private:
  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }

  int64_t Integer() {
    constexpr int64_t kSome[] = {-1,
                                 0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 7,
                                 1 << 20,
                                 int64_t{1} << 40,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
    return kSome[Draw(std::size(kSome))];
  }
  float Float() {
    constexpr float kSome[] = {-1,
                               0,
                               0.5f,
                               1,
                               2,
                               1e30f,
                               std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
    return kSome[Draw(std::size(kSome))];
  }
  std::string Name() {
    constexpr const char* kSome[] = {"",  "features", "a", "b", "c", "d",   "e",
                                     "f", "g",        "h", "i", "x", "a/b", "dense_1"};
    return kSome[Draw(std::size(kSome))];
  }

  void SetScalar(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return reflection.SetInt64(message, field, Integer());
      case FieldDescriptor::CPPTYPE_FLOAT:
        return reflection.SetFloat(message, field, Float());
      case FieldDescriptor::CPPTYPE_BOOL:
        return reflection.SetBool(message, field, Draw(2) == 0);
      case FieldDescriptor::CPPTYPE_ENUM:
        return reflection.SetEnumValue(message, field, Draw(6));
      case FieldDescriptor::CPPTYPE_STRING:
        return reflection.SetString(message, field, Name());
      default:
        FAIL() << field->full_name();
    }
  }

  void MutateRepeated(Message* message, const FieldDescriptor* field) {
    const Reflection& reflection = *message->GetReflection();
    const int size = reflection.FieldSize(*message, field);
    const int what = Draw(4);
    if (size > 1 && what == 0) {
      reflection.SwapElements(message, field, Draw(size), Draw(size));
    } else if (size > 0 && what == 1) {
      reflection.SwapElements(message, field, Draw(size), size - 1);
      reflection.RemoveLast(message, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (size > 0) Mutate(reflection.MutableRepeatedMessage(message, field, Draw(size)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.AddString(message, field, Name());
    } else {
      reflection.AddInt64(message, field, Integer());
    }
  }

  std::mt19937 random_;
};

int64_t FloatsOf(const ModelSpec& spec) {
  int64_t floats = 0;
  for (const FeatureSpec& feature : spec.records.features) floats += feature.shape.num_elements();
  for (const VariableSpec& variable : spec.variables) floats += variable.shape.num_elements();
  for (const LayerSpec& layer : spec.layers) floats += layer.output.num_elements();
  return floats;
}

void ExpectOneLine(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), "model.")) << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
}

void ComputeAStep(const v1::ModelConfig& config, Device* device) {
  const auto model = Model::Create(config, device);
  ASSERT_TRUE(model.ok()) << model.status();
  const ModelSpec& spec = (*model)->spec();
  std::vector<Tensor> gradients;
  for (const VariableSpec& variable : spec.variables) {
    Tensor value(variable.shape);
    FillRandom(1, 0.5f, value.span());
    ASSERT_EQ((*model)->SetVariable(gradients.size(), value.span()), absl::OkStatus());
    gradients.emplace_back(variable.shape);
  }
  const Batch batch = RandomBatch(spec, 2, 5);
  const auto step = (*model)->ComputeGradients(batch, {}, {.arrays = SpansOf(&gradients)}, nullptr);
  EXPECT_TRUE(step.ok()) << step.status();
}

TEST(ModelMutationTest, IsRefusedWithOneLineOrComputesAStep) {
  const std::unique_ptr<Device> device = MakeTestDevice("cpu");
  int refused = 0, computed = 0;
  for (int i = 0; i < kMutations; ++i) {
    v1::ModelConfig config = ParseModel(kModels[i % std::size(kModels)]);
    Mutator mutator(static_cast<uint32_t>(i));
    for (int k = 0; k <= i % 3; ++k) mutator.Mutate(&config);
    SCOPED_TRACE(absl::StrCat(i, ": ", config.ShortDebugString()));
    const auto spec = InferModelSpec(config);
    if (!spec.ok()) {
      ++refused;
      ExpectOneLine(spec.status());
    } else if (FloatsOf(*spec) <= kMostFloats) {
      ++computed;
      ComputeAStep(config, device.get());
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(refused, kMutations / 10);
  EXPECT_GT(computed, kMutations / 10);
}

}  // namespace
}  // namespace keelson
