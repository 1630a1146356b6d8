// The layers that layer_bench measures: a configuration of each, at a shape that models have.
#ifndef KEELSON_BENCH_LAYERS_LAYER_CASE_H_
#define KEELSON_BENCH_LAYERS_LAYER_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/model_spec.h"

namespace keelson::bench {

struct LayerCase {
  std::string name;    // "dense", by which bench/compare_layers.py knows it
  std::string config;  // of LayerConfig, without its inputs
  // The shape of each of the layer's inputs, without the batch; empty where it takes one feature of
  // ids.
  std::vector<std::vector<int64_t>> shapes;
  int64_t batch = 0;
  // Ids of a record: 0 of a layer that takes numbers, 1 of one that takes an id, else of a bag.
  int64_t ids = 0;
  int64_t num_ids = 0;  // how many there are
};

std::vector<LayerCase> LayerCases();

// The model in which the layer is the first one. INVALID_ARGUMENT: the case is wrong.
absl::StatusOr<ModelSpec> SpecOf(const LayerCase& layer);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_LAYERS_LAYER_CASE_H_
