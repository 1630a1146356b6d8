#include "core/model/spec/batch.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/model/spec/model_config_testing.h"

namespace keelson {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A feature of each kind, and no loss.
ModelSpec Spec() {
  ModelSpec spec;
  spec.records.features = {{"x", Shape({2})},
                           {"user", {}, FeatureKind::kId, false, 10},
                           {"tags", {}, FeatureKind::kBag, false, 5},
                           {"seen", {}, FeatureKind::kBag, true, 7}};
  return spec;
}

// Three records, of which the second one has no tags.
Batch GoodBatch() {
  Batch batch;
  batch.features.push_back({Tensor(Shape({3, 2}))});
  batch.features.push_back({.ids = {0, 9, 9}});
  batch.features.push_back({.ids = {4, 0, 4}, .offsets = {0, 2, 2, 3}});
  batch.features.push_back({.ids = {6, 6}, .offsets = {0, 0, 1, 2}, .weights = {0.5f, -1}});
  return batch;
}

TEST(BatchTest, TakesFeaturesOfEachKind) {
  EXPECT_EQ(CheckFeatures(Spec(), GoodBatch()), absl::OkStatus());
  const Batch batch = GoodBatch();
  for (const FeatureValues& values : batch.features) EXPECT_EQ(values.records(), 3);
}

TEST(BatchTest, TakesBagsThatAreAllEmpty) {
  Batch batch = GoodBatch();
  batch.features[2] = {.offsets = {0, 0, 0, 0}};
  batch.features[3] = {.offsets = {0, 0, 0, 0}};
  EXPECT_EQ(CheckFeatures(Spec(), batch), absl::OkStatus());
  EXPECT_EQ(batch.features[2].records(), 3);
}

struct Wrong {
  void (*change)(Batch* batch);
  const char* message;
};

TEST(BatchTest, SaysWhichFeatureRecordAndIdIsWrong) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<Wrong> all = {
      {[](Batch* batch) { batch->features[1].ids[2] = 10; },
       "batch: user of record 2: expected an id from 0 to 9, found 10"},
      {[](Batch* batch) { batch->features[1].ids[0] = std::numeric_limits<uint64_t>::max(); },
       "batch: user of record 0: expected an id from 0 to 9, found 18446744073709551615"},
      {[](Batch* batch) { batch->features[2].ids[2] = 5; },
       "batch: tags of record 2: expected an id from 0 to 4, found 5"},
      {[](Batch* batch) { batch->features[2].ids[1] = 5; },
       "batch: tags of record 0: expected an id from 0 to 4, found 5"},
      {[](Batch* batch) { batch->features[3].weights[0] = kInfinity; },
       "batch: seen of record 1: expected a finite weight, found inf"},
      {[](Batch* batch) { batch->features[1].ids.pop_back(); },
       "batch: user: expected 3 ids, found 2"},
      {[](Batch* batch) {
         batch->features[1].offsets = {0, 1, 2, 3};
       },
       "batch: user: expected 0 offsets, found 4"},
      {[](Batch* batch) {
         batch->features[1].numbers = Tensor(Shape({3, 2}));
       },
       "batch: user: expected 0 numbers, found 6"},
      {[](Batch* batch) {
         batch->features[1].weights = {1, 1, 1};
       },
       "batch: user: expected 0 weights, found 3"},
      {[](Batch* batch) {
         batch->features[2].weights = {1, 1, 1};
       },
       "batch: tags: expected 0 weights, found 3"},
      {[](Batch* batch) { batch->features[3].weights.pop_back(); },
       "batch: seen: expected 2 weights, found 1"},
      {[](Batch* batch) { batch->features[2].offsets.pop_back(); },
       "batch: tags: expected 4 offsets, found 3"},
      {[](Batch* batch) { batch->features[2].offsets.clear(); },
       "batch: tags: expected 4 offsets, found 0"},
      {[](Batch* batch) { batch->features[2].offsets[0] = 1; },
       "batch: tags: offset 0: expected 0 to 0, found 1"},
      {[](Batch* batch) { batch->features[2].offsets[2] = 1; },
       "batch: tags: offset 2: expected 2 to 3, found 1"},
      {[](Batch* batch) { batch->features[2].offsets[3] = 4; },
       "batch: tags: offset 3: expected 2 to 3, found 4"},
      {[](Batch* batch) { batch->features[2].offsets[3] = 2; },
       "batch: tags: expected 2 ids by the offsets, found 3"},
      {[](Batch* batch) { batch->features[0].ids = {1}; }, "batch: x: expected 0 ids, found 1"},
      {[](Batch* batch) {
         batch->features[0].numbers = Tensor(Shape({3, 3}));
       },
       "batch: x: expected the shape [3, 2], found [3, 3]"},
  };
  for (const auto& [change, message] : all) {
    Batch batch = GoodBatch();
    change(&batch);
    EXPECT_EQ(CheckFeatures(Spec(), batch), absl::InvalidArgumentError(message));
  }
}

TEST(BatchTest, LogarithmsOfProbabilitiesAreFinite) {
  const auto spec = InferModelSpec(ParseModel(R"(
      input_shape: 2 layers { name: "q" dense { units: 2 } }
      layers { name: "v" inputs: "features" dense { units: 2 } }
      loss { kind: IN_BATCH_SOFTMAX queries: "q" items: "v" log_probability_label: "p" })"));
  ASSERT_TRUE(spec.ok()) << spec.status();
  Batch batch = MakeBatch(Tensor(Shape({3, 2})), Tensor(Shape({3})));
  EXPECT_EQ(CheckBatch(*spec, batch).message(), "");
  batch.labels[0].data()[1] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(CheckBatch(*spec, batch),
            absl::InvalidArgumentError("batch: p[1]: expected a finite number, found -inf"));
}

TEST(BatchTest, ResizeLeavesNothingOfAnotherKind) {
  const ModelSpec spec = Spec();
  Batch batch = GoodBatch();
  std::swap(batch.features[0], batch.features[3]);
  batch.features[1] = std::move(batch.features[2]);
  batch.features[2] = {.ids = {1, 2, 3}};
  Resize(2, spec.records, &batch);
  EXPECT_EQ(CheckFeatures(spec, batch).message(), "");
  EXPECT_EQ(batch.features[0].numbers.shape(), Shape({2, 2}));
  EXPECT_EQ(batch.features[1].ids.size(), 2u);
  EXPECT_THAT(batch.features[2].offsets, ElementsAre(0, 0, 0));
  EXPECT_THAT(batch.features[3].ids, IsEmpty());
}

}  // namespace
}  // namespace keelson
