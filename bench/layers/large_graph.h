// How long a large model takes before anything starts: it is checked, and its memory planned.
#ifndef KEELSON_BENCH_LAYERS_LARGE_GRAPH_H_
#define KEELSON_BENCH_LAYERS_LARGE_GRAPH_H_

#include "absl/status/statusor.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson::bench {

// 200 layers over 50 features: towers of dense layers and activations, which are added two by two.
v1::ModelConfig LargeGraph();

// Milliseconds to infer the model's shapes, divide it into stages, and plan the memory of a
// training pass of 64 records. INVALID_ARGUMENT: the model is wrong.
absl::StatusOr<double> MillisecondsToPlan(const v1::ModelConfig& config);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_LAYERS_LARGE_GRAPH_H_
