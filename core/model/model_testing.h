// Shared code of tests of models: configurations from text, random variables and batches.
#ifndef KEELSON_CORE_MODEL_MODEL_TESTING_H_
#define KEELSON_CORE_MODEL_MODEL_TESTING_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/device/factory/device_factory.h"
#include "core/model/model.h"
#include "core/model/spec/model_config_testing.h"
#include "testing/device/delayed_device_testing.h"

namespace keelson {

// Uniform in [-scale, scale).
inline void FillRandom(uint64_t seed, float scale, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = scale * (2.0f * UniformFloat(Philox(seed, 3, i)[0]) - 1.0f);
  }
}

// Ids of any bag: none up to five of a record, some of them twice; of tables 20 that lie far from
// each other.
inline void FillRandom(uint64_t seed, const FeatureSpec& feature, FeatureValues* values) {
  FillRandom(seed, 1, values->numbers.span());
  uint64_t drawn = 0;
  const auto below = [&](int64_t n) {
    return Philox(seed, 4, drawn++)[0] % static_cast<uint64_t>(n);
  };
  for (size_t i = 1; i < values->offsets.size(); ++i) {
    values->offsets[i] = values->offsets[i - 1] + static_cast<int64_t>(below(6));
  }
  if (!values->offsets.empty()) values->ids.resize(values->offsets.back());
  for (uint64_t& id : values->ids) {
    id = feature.num_ids > 0 ? below(feature.num_ids) : below(20) * 0x9e3779b97f4a7c15;
  }
  values->weights.resize(feature.weighted ? values->ids.size() : 0);
  for (float& weight : values->weights) weight = 0.5f + UniformFloat(Philox(seed, 5, drawn++)[0]);
}

// Labels as the losses take them.
inline Batch RandomBatch(const ModelSpec& spec, int64_t size, uint64_t seed) {
  Batch batch;
  Resize(size, spec.records, &batch);
  for (size_t i = 0; i < batch.features.size(); ++i) {
    FillRandom(seed++, spec.records.features[i], &batch.features[i]);
  }
  for (size_t i = 0; i < batch.labels.size(); ++i) {
    FillRandom(seed++, 1, batch.labels[i].span());
    const int64_t classes = spec.records.labels[i].num_classes;
    if (spec.records.labels[i].weighs && classes == 0) {
      for (float& weight : batch.labels[i].span()) weight = std::abs(weight);
    }
    if (classes == 0) continue;
    for (float& label : batch.labels[i].span()) {
      label = static_cast<float>(static_cast<int64_t>((label + 1) / 2 * 1000) % classes);
    }
  }
  return batch;
}

inline std::vector<absl::Span<float>> SpansOf(std::vector<Tensor>* tensors) {
  std::vector<absl::Span<float>> spans;
  for (Tensor& tensor : *tensors) spans.push_back(tensor.span());
  return spans;
}

// "delayed": a DelayedDevice on the CPU; else as CreateDevice has it, with one thread.
inline std::unique_ptr<Device> MakeTestDevice(const std::string& name, uint64_t order_seed = 1) {
  auto device = CreateDevice(name == "delayed" ? "cpu" : name, {.threads = 1});
  EXPECT_TRUE(device.ok()) << device.status();
  if (name != "delayed") return *std::move(device);
  return std::make_unique<DelayedDevice>(*std::move(device), order_seed);
}

// A model on one device, with the variables' values on the caller's side.
struct TestModel {
  explicit TestModel(const std::string& text, uint64_t seed = 1, const std::string& on = "cpu")
      : TestModel(text, seed, MakeTestDevice(on)) {}
  TestModel(const std::string& text, uint64_t seed, std::unique_ptr<Device> on)
      : device(std::move(on)) {
    auto created = Model::Create(ParseModel(text), device.get());
    EXPECT_TRUE(created.ok()) << created.status();
    model = *std::move(created);
    for (size_t i = 0; i < model->variables().size(); ++i) {
      values.emplace_back(model->variables()[i].shape);
      gradients.emplace_back(model->variables()[i].shape);
      FillRandom(seed * 100 + i, 0.5f, values.back().span());
      Load(i);
    }
  }

  void Load(size_t variable) {
    const absl::Status status =
        model->SetVariable(static_cast<int>(variable), values[variable].span());
    EXPECT_TRUE(status.ok()) << status;
  }

  // Computes `gradients`; returns the loss.
  double Step(const Batch& batch, uint64_t dropout_seed = 0) {
    const std::vector<absl::Span<float>> arrays = SpansOf(&gradients);
    const auto result =
        model->ComputeGradients(batch, {.dropout_seed = dropout_seed}, {.arrays = arrays}, nullptr);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->loss : 0;
  }

  // value -= rate * gradient
  void Descend(float rate) {
    for (size_t i = 0; i < values.size(); ++i) {
      for (int64_t j = 0; j < values[i].size(); ++j) {
        values[i].data()[j] -= rate * gradients[i].data()[j];
      }
      Load(i);
    }
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Model> model;
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
};

inline std::vector<std::vector<float>> Copy(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> copy;
  for (const Tensor& t : tensors) copy.emplace_back(t.data(), t.data() + t.size());
  return copy;
}

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_MODEL_TESTING_H_
