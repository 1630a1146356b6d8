#include "bench/layers/large_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/model/spec/model_spec.h"
#include "core/model/stage.h"

namespace keelson::bench {
namespace {

constexpr int kFeatures = 50;
constexpr int kLayers = 200;
constexpr int kUnits = 16;
constexpr int64_t kRows = 64;

}  // namespace

v1::ModelConfig LargeGraph() {
  v1::ModelConfig config;
  config.set_name("large_graph");
  const auto add_layer = [&](const std::vector<std::string>& inputs) {
    v1::LayerConfig* const layer = config.add_layers();
    layer->set_name(absl::StrCat("layer_", config.layers_size()));
    for (const std::string& input : inputs) layer->add_inputs(input);
    return layer;
  };
  std::vector<std::string> ends;
  for (int i = 0; i < kFeatures; ++i) {
    v1::Feature* const feature = config.add_features();
    feature->set_name(absl::StrCat("feature_", i));
    feature->mutable_dense()->add_shape(kUnits);
    v1::LayerConfig* const dense = add_layer({feature->name()});
    dense->mutable_dense()->set_units(kUnits);
    v1::LayerConfig* const relu = add_layer({dense->name()});
    relu->mutable_relu();
    ends.push_back(relu->name());
  }
  while (ends.size() > 1) {
    v1::LayerConfig* const sum = add_layer({ends[0], ends[1]});
    sum->mutable_add();
    ends.erase(ends.begin(), ends.begin() + 2);
    ends.push_back(sum->name());
  }
  while (config.layers_size() < kLayers - 1) {
    v1::LayerConfig* const dense = add_layer({ends[0]});
    dense->mutable_dense()->set_units(kUnits);
    ends[0] = dense->name();
  }
  add_layer({ends[0]})->mutable_dense()->set_units(1);
  config.mutable_loss()->set_kind(v1::LossConfig::MEAN_SQUARED_ERROR);
  return config;
}

absl::StatusOr<double> MillisecondsToPlan(const v1::ModelConfig& config) {
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config));
  const StageGraph graph = MakeStages(spec);
  const PassMemory memory = PlanPass(graph, kRows, /*training=*/true);
  const double elapsed = absl::ToDoubleMilliseconds(absl::Now() - begin);
  if (memory.floats == 0) return absl::InternalError("the plan has no memory");
  return elapsed;
}

}  // namespace keelson::bench
