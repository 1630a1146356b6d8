// Values and gradients of a model by wire memory, compared with the same model by arrays and
// core/wire/value_codec.h. With "delayed" in every order that a device may choose.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model/model_devices_testing.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

using testing::ElementsAre;

constexpr char kWireNetwork[] = R"pb(
  input_shape: [ 6, 6, 1 ]
  layers { conv2d { filters: 3 kernel_size: 3 } }
  layers { relu {} }
  layers { flatten {} }
  layers { dense { units: 9 } }
  layers { tanh {} }
  layers { dropout { rate: 0.25 } }
  layers { dense { units: 3 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY })pb";

constexpr WireFormat kFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                   WireFormat::kBfloat16, WireFormat::kInt8, WireFormat::kTopK};

// Blocks of 50 elements.
WireLayout Blocks(WireFormat format, int64_t elements) {
  WireLayout layout{format, {}, elements, 0};
  for (int64_t first = 0; first < elements; first += 50) {
    const int64_t n = std::min<int64_t>(50, elements - first);
    const int64_t kept = format == WireFormat::kTopK ? (n + 3) / 4 : 0;
    layout.blocks.push_back({first, n, layout.bytes, kept});
    const size_t bytes = kept > 0 ? TopKBytes(kept) : EncodedBytes(format, n);
    layout.bytes += (bytes + 3) / 4 * 4;
  }
  return layout;
}

std::vector<VariableWire> WireOf(const Model& model, WireFormat gradients,
                                 WireFormat values = WireFormat::kFloat32) {
  std::vector<VariableWire> wire;
  for (const VariableSpec& variable : model.variables()) {
    wire.push_back({Blocks(gradients, variable.shape.num_elements()), values});
  }
  return wire;
}

// Encodes a model's gradients as its wire memory is expected to have them.
class Codec {
 public:
  explicit Codec(const std::vector<VariableWire>& wire) : wire_(wire) {
    for (const VariableWire& variable : wire) {
      residuals_.emplace_back(variable.gradient.num_elements);
    }
  }

  // The bytes of a variable's blocks, without what is between them.
  std::vector<std::string> Encode(size_t variable, absl::Span<const float> gradient) {
    std::vector<std::string> blocks;
    const WireLayout& layout = wire_[variable].gradient;
    for (const WireBlock& block : layout.blocks) {
      const size_t first = block.first_element;
      const size_t n = block.num_elements;
      const absl::Span<float> residual = absl::MakeSpan(residuals_[variable]).subspan(first, n);
      std::string& bytes = blocks.emplace_back();
      if (layout.format == WireFormat::kTopK) {
        EncodeTopK(gradient.subspan(first, n), block.top_k_count, residual, &bytes);
        continue;
      }
      bytes.resize(EncodedBytes(layout.format, block.num_elements));
      auto* const to = reinterpret_cast<uint8_t*>(bytes.data());
      if (layout.format == WireFormat::kInt8) {
        EncodeInt8(gradient.subspan(first, n), residual, to);
      } else {
        EncodeElements(layout.format, gradient.subspan(first, n), to);
      }
    }
    return blocks;
  }

  // The same blocks of wire memory.
  std::vector<std::string> Found(size_t variable, absl::Span<const uint8_t> bytes) const {
    const WireLayout& layout = wire_[variable].gradient;
    std::vector<std::string> blocks;
    for (const WireBlock& block : layout.blocks) {
      const size_t size = layout.format == WireFormat::kTopK
                              ? TopKBytes(block.top_k_count)
                              : EncodedBytes(layout.format, block.num_elements);
      const absl::Span<const uint8_t> found = bytes.subspan(block.offset, size);
      blocks.emplace_back(found.begin(), found.end());
    }
    return blocks;
  }

 private:
  std::vector<VariableWire> wire_;
  std::vector<std::vector<float>> residuals_;
};

// A model by wire memory, another by arrays that is given the same.
struct Pair {
  Pair(std::unique_ptr<Device> device, std::unique_ptr<Device> other, WireFormat gradients,
       WireFormat value_format = WireFormat::kFloat32, size_t sets = 1)
      : wired(kWireNetwork, 1, std::move(device)),
        plain(kWireNetwork, 1, std::move(other)),
        wire(WireOf(*wired.model, gradients, value_format)),
        codec(wire),
        memory(*wired.model->PrepareWire(wire, sets)) {}

  // Values of a pseudorandom step reach both.
  void Load(uint64_t seed, size_t set) {
    for (size_t v = 0; v < plain.values.size(); ++v) {
      FillRandom(seed * 100 + v, 0.5f, plain.values[v].span());
      uint8_t* const bytes = memory.values[set][v].data();
      EncodeElements(wire[v].values, plain.values[v].span(), bytes);
      DecodeElements(wire[v].values, bytes, plain.values[v].span());
      EXPECT_TRUE(wired.model->LoadWire(v, set).ok());
      plain.Load(v);
    }
  }

  // Both compute the step; what leaves the one is what leaves the other.
  void Step(const Batch& batch, const StepOptions& options, size_t set) {
    const auto arrays = SpansOf(&plain.gradients);
    StepOptions delivered = options;
    delivered.deliver = true;
    const auto expected = plain.model->ComputeGradients(batch, delivered, {.arrays = arrays}, {});
    ASSERT_TRUE(expected.ok()) << expected.status();
    std::vector<std::vector<std::string>> found(wire.size());
    const auto result = wired.model->ComputeGradients(
        batch, options, {.wire_set = set},
        [&](size_t variable) { found[variable] = Bytes(variable, set); });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->has_gradients, expected->has_gradients);
    if (!expected->has_gradients) return;
    EXPECT_EQ(result->loss, expected->loss);
    if (options.deliver) ExpectEncoded(found);
  }

  void ExpectEncoded(const std::vector<std::vector<std::string>>& found) {
    for (size_t v = 0; v < wire.size(); ++v) {
      EXPECT_TRUE(found[v] == codec.Encode(v, plain.gradients[v].span()))
          << plain.model->variables()[v].name << " as " << WireFormatName(wire[v].gradient.format);
    }
  }

  std::vector<std::string> Bytes(size_t variable, size_t set) const {
    return codec.Found(variable, memory.gradients[set][variable]);
  }

  TestModel wired;
  TestModel plain;
  std::vector<VariableWire> wire;
  Codec codec;
  WireMemory memory;
};

// By device.
class ModelWireTest : public ModelOnDevicesTest {};

TEST_P(ModelWireTest, GradientsLeaveAsTheCodecEncodesThem) {
  for (const WireFormat format : kFormats) {
    Pair pair(NewDevice(), NewDevice(), format);
    for (uint64_t step = 0; step < 4; ++step) {
      pair.Step(RandomBatch(pair.plain.model->spec(), 7, step), {.dropout_seed = step}, 0);
    }
  }
}

TEST_P(ModelWireTest, ValuesArriveInEveryFormat) {
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32, format, 2);
    const Batch batch = RandomBatch(pair.plain.model->spec(), 5, 1);
    for (int step = 0; step < 4; ++step) {
      pair.Load(static_cast<uint64_t>(step), step % 2);
      EXPECT_EQ(pair.wired.model->Evaluate(batch, {})->loss,
                pair.plain.model->Evaluate(batch, {})->loss)
          << WireFormatName(format);
    }
  }
}

// What is missing to keep copies and operations apart shows in some order.
TEST_P(ModelWireTest, StepsOfAnyKindFollowEachOther) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    Pair pair(NewDevice(), NewDevice(), WireFormat::kInt8, WireFormat::kBfloat16, 2);
    const ModelSpec& spec = pair.plain.model->spec();
    Batch not_finite = RandomBatch(spec, 6, 5);
    not_finite.features[0].numbers.data()[7] = std::numeric_limits<float>::quiet_NaN();
    for (uint64_t step = 0; step < 10; ++step) {
      const size_t set = step % 2;
      pair.Load(step, set);
      const StepOptions options = {.dropout_seed = step,
                                   .clip_global_norm = step % 5 == 3 ? 0.01f : 0.0f};
      if (step == 4 || step == 7) pair.Step(not_finite, options, set);
      if (step == 6) {
        const Batch batch = RandomBatch(spec, 9, 6);
        EXPECT_EQ(pair.wired.model->Evaluate(batch, {})->loss,
                  pair.plain.model->Evaluate(batch, {})->loss);
      }
      const int64_t rows = step == 5 ? 4 : 6;
      pair.Step(RandomBatch(spec, rows, step), options, set);
      if (testing::Test::HasFailure()) FAIL() << "order " << order << ", step " << step;
    }
  }
}

TEST_P(ModelWireTest, SetVariableAndLoadWireTakeEffectInTurn) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32);
    const Batch batch = RandomBatch(pair.plain.model->spec(), 5, 1);
    pair.Load(1, 0);
    for (size_t v = 0; v < pair.wire.size(); ++v) {
      FillRandom(200 + v, 0.5f, pair.plain.values[v].span());
      pair.plain.Load(v);
      ASSERT_TRUE(pair.wired.model->SetVariable(v, pair.plain.values[v].span()).ok());
    }
    pair.Step(batch, {}, 0);
    for (size_t v = 0; v < pair.wire.size(); ++v) {
      ASSERT_TRUE(pair.wired.model->SetVariable(v, pair.wired.values[v].span()).ok());
    }
    pair.Load(3, 0);
    pair.Step(batch, {}, 0);
  }
}

// As by the values that answer a push.
TEST_P(ModelWireTest, AVariableMayBeLoadedWhenItsGradientIsThere) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32, WireFormat::kFloat32, 2);
    const Batch batch = RandomBatch(pair.plain.model->spec(), 5, 1);
    for (const absl::Span<uint8_t> array : pair.memory.values[1]) {
      std::fill(array.begin(), array.end(), uint8_t{0xff});  // not numbers
    }
    for (uint64_t step = 0; step < 3; ++step) {
      pair.Load(step, 0);
      pair.plain.Step(batch);
      std::vector<std::vector<std::string>> found(pair.wire.size());
      const auto result = pair.wired.model->ComputeGradients(batch, {}, {}, [&](size_t variable) {
        found[variable] = pair.Bytes(variable, 0);
        EXPECT_TRUE(pair.wired.model->LoadWire(variable, 1).ok());
      });
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(result->has_gradients);
      pair.ExpectEncoded(found);
    }
  }
}

TEST_P(ModelWireTest, TellsOfGradientsFromTheLastLayer) {
  for (const float max_norm : {0.0f, 0.01f}) {
    Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32);
    std::vector<size_t> order;
    const auto result = pair.wired.model->ComputeGradients(
        RandomBatch(pair.plain.model->spec(), 7, 1), {.clip_global_norm = max_norm}, {},
        [&](size_t variable) { order.push_back(variable); });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(order, ElementsAre(5, 4, 3, 2, 1, 0));
  }
}

TEST_P(ModelWireTest, ALossThatIsNotFiniteLeavesErrorFeedbackAsItIs) {
  for (const WireFormat format : {WireFormat::kInt8, WireFormat::kTopK}) {
    Pair pair(NewDevice(), NewDevice(), format);
    const Batch batch = RandomBatch(pair.plain.model->spec(), 7, 1);
    pair.Step(batch, {}, 0);
    Batch bad = RandomBatch(pair.plain.model->spec(), 7, 1);
    bad.features[0].numbers.data()[3] = std::numeric_limits<float>::infinity();
    const auto result =
        pair.wired.model->ComputeGradients(bad, {}, {}, [](int) { ADD_FAILURE() << "told"; });
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->has_gradients);
    pair.Step(batch, {}, 0);
  }
}

TEST_P(ModelWireTest, KeptGradientsAreDeliveredOrDropped) {
  Pair pair(NewDevice(), NewDevice(), WireFormat::kInt8);
  Model& model = *pair.wired.model;
  const ModelSpec& spec = pair.plain.model->spec();
  pair.Step(RandomBatch(spec, 7, 1), {}, 0);
  // Not wanted by anyone.
  pair.Step(RandomBatch(spec, 7, 2), {.deliver = false}, 0);
  pair.Step(RandomBatch(spec, 7, 3), {.deliver = false}, 0);
  std::vector<std::vector<std::string>> found(pair.wire.size());
  const absl::Status delivered = model.DeliverGradients(
      {}, [&](size_t variable) { found[variable] = pair.Bytes(variable, 0); });
  ASSERT_TRUE(delivered.ok()) << delivered;
  pair.ExpectEncoded(found);
  const absl::Status none = absl::FailedPreconditionError(
      "gradients: expected a step that kept them, found none since the last delivery");
  EXPECT_EQ(model.DeliverGradients({}, nullptr), none);
  pair.Step(RandomBatch(spec, 7, 4), {}, 0);
  EXPECT_EQ(model.DeliverGradients({}, nullptr), none);
}

TEST_P(ModelWireTest, KeptGradientsAreOfTheValuesThatWereThere) {
  for (const uint64_t order : Orders()) {
    SetOrder(order);
    Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32);
    const Batch batch = RandomBatch(pair.plain.model->spec(), 7, 1);
    for (uint64_t step = 0; step < 3; ++step) {
      pair.Load(step, 0);
      pair.Step(batch, {.deliver = false}, 0);
      for (size_t v = 0; v < pair.wire.size(); ++v) {
        const absl::Span<uint8_t> array = pair.memory.values[0][v];
        std::fill(array.begin(), array.end(), uint8_t{0xff});  // not numbers
        ASSERT_TRUE(pair.wired.model->LoadWire(v, 0).ok());
      }
      std::vector<std::vector<std::string>> found(pair.wire.size());
      const absl::Status delivered = pair.wired.model->DeliverGradients(
          {}, [&](size_t variable) { found[variable] = pair.Bytes(variable, 0); });
      ASSERT_TRUE(delivered.ok()) << delivered;
      pair.ExpectEncoded(found);
    }
  }
}

TEST_P(ModelWireTest, KeptGradientsGoToArraysToo) {
  TestModel test(kWireNetwork, 1, NewDevice());
  const Batch batch = RandomBatch(test.model->spec(), 7, 1);
  const double loss = test.Step(batch);
  std::vector<std::vector<float>> expected;
  for (Tensor& g : test.gradients) {
    expected.emplace_back(g.data(), g.data() + g.size());
    std::fill_n(g.data(), g.size(), 0.0f);
  }
  const auto result = test.model->ComputeGradients(batch, {.deliver = false}, {}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->loss, loss);
  const auto arrays = SpansOf(&test.gradients);
  EXPECT_EQ(test.model->DeliverGradients({}, nullptr),
            absl::InvalidArgumentError("gradients: expected 6 arrays, found 0"));
  std::vector<size_t> told;
  const absl::Status delivered = test.model->DeliverGradients(
      {.arrays = arrays}, [&](size_t variable) { told.push_back(variable); });
  ASSERT_TRUE(delivered.ok()) << delivered;
  EXPECT_THAT(told, ElementsAre(5, 4, 3, 2, 1, 0));
  for (size_t v = 0; v < expected.size(); ++v) {
    EXPECT_EQ(absl::MakeConstSpan(expected[v]), absl::MakeConstSpan(arrays[v])) << v;
  }
}

TEST_P(ModelWireTest, PreparingAgainForgetsWhatWasLost) {
  Pair pair(NewDevice(), NewDevice(), WireFormat::kInt8);
  const Batch batch = RandomBatch(pair.plain.model->spec(), 7, 1);
  for (int step = 0; step < 3; ++step) pair.Step(batch, {}, 0);
  pair.codec = Codec(pair.wire);
  pair.memory = *pair.wired.model->PrepareWire(pair.wire, 2);
  for (int step = 0; step < 3; ++step) pair.Step(batch, {}, step % 2);
}

TEST_P(ModelWireTest, RefusesWireMemoryThatIsNotTheModels) {
  TestModel test(kWireNetwork, 1, NewDevice());
  std::vector<VariableWire> wire = WireOf(*test.model, WireFormat::kFloat32);
  EXPECT_EQ(test.model->PrepareWire(wire, 0).status(),
            absl::InvalidArgumentError("wire memory: expected 1 set or more, found 0"));
  wire[1].gradient = Blocks(WireFormat::kFloat32, 7);
  EXPECT_EQ(test.model->PrepareWire(wire, 1).status(),
            absl::InvalidArgumentError("wire memory: conv2d_1/bias: expected 3 elements, found 7"));
  wire.pop_back();
  EXPECT_EQ(test.model->PrepareWire(wire, 1).status(),
            absl::InvalidArgumentError("wire memory: expected 6 variables, found 5"));
}

TEST_P(ModelWireTest, RefusesSetsThatAreNotThere) {
  Pair pair(NewDevice(), NewDevice(), WireFormat::kFloat32, WireFormat::kFloat32, 2);
  Model& model = *pair.wired.model;
  const Batch batch = RandomBatch(pair.plain.model->spec(), 7, 1);
  EXPECT_EQ(pair.plain.model->LoadWire(0, 0),
            absl::InvalidArgumentError("wire set: expected wire memory, found none"));
  EXPECT_EQ(model.LoadWire(0, 2), absl::InvalidArgumentError("wire set: expected 0 to 1, found 2"));
  EXPECT_EQ(model.LoadWire(6, 0), absl::InvalidArgumentError("variable: expected 0 to 5, found 6"));
  EXPECT_EQ(model.ComputeGradients(batch, {}, {.wire_set = 3}, nullptr).status(),
            absl::InvalidArgumentError("wire set: expected 0 to 1, found 3"));
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelWireTest, AllTestDevices(), TestDeviceName);

// On a device that repeats.
class RepeatedStepsTest : public testing::Test {
 protected:
  RepeatedStepsTest() : test_(kWireNetwork, 1, MakeTestDevice("delayed")) {}

  int64_t repetitions() const {
    return static_cast<const DelayedDevice*>(test_.device.get())->repetitions();
  }

  TestModel test_;
};

TEST_F(RepeatedStepsTest, AreEnqueuedOnceForEveryBatchSize) {
  const ModelSpec& spec = test_.model->spec();
  test_.Step(RandomBatch(spec, 8, 1), 1);
  EXPECT_EQ(repetitions(), 0);
  test_.Step(RandomBatch(spec, 5, 2), 2);
  EXPECT_EQ(repetitions(), 0) << "another size";
  test_.Step(RandomBatch(spec, 8, 3), 3);
  test_.Step(RandomBatch(spec, 5, 4), 4);
  EXPECT_EQ(repetitions(), 2);
}

TEST_F(RepeatedStepsTest, FollowWireMemoryThatIsPreparedAgain) {
  const std::vector<VariableWire> wire = WireOf(*test_.model, WireFormat::kFloat32);
  const Batch batch = RandomBatch(test_.model->spec(), 8, 1);
  for (int round = 0; round < 3; ++round) {
    const WireMemory memory = *test_.model->PrepareWire(wire, 1);
    std::fill(memory.gradients[0][0].begin(), memory.gradients[0][0].end(), uint8_t{0xff});
    for (int step = 0; step < 2; ++step) {
      ASSERT_TRUE(test_.model->ComputeGradients(batch, {}, {}, nullptr).ok());
    }
    EXPECT_EQ(repetitions(), round + 1);
    EXPECT_THAT(memory.gradients[0][0], testing::Contains(testing::Ne(uint8_t{0xff})));
  }
}

}  // namespace
}  // namespace keelson
