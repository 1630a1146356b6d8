#include "bench/layers/layer_case.h"

#include <google/protobuf/text_format.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson::bench {

std::vector<LayerCase> LayerCases() {
  const std::vector<int64_t> image = {28, 28, 32}, wide = {4096}, row = {512}, factor = {64};
  return {
      {"dense", "dense { units: 512 }", {row}, 256},
      {"conv2d", "conv2d { filters: 64 kernel_size: 5 padding: SAME }", {image}, 32},
      {"max_pool", "max_pool { size: 2 }", {image}, 64},
      {"avg_pool", "avg_pool { size: 2 }", {image}, 64},
      {"global_average_pool", "global_average_pool {}", {image}, 64},
      {"batch_norm", "batch_norm {}", {image}, 64},
      {"layer_norm", "layer_norm {}", {row}, 512},
      {"softmax", "softmax {}", {{1000}}, 256},
      {"relu", "relu {}", {wide}, 256},
      {"tanh", "tanh {}", {wide}, 256},
      {"sigmoid", "sigmoid {}", {wide}, 256},
      {"gelu", "gelu {}", {wide}, 256},
      {"silu", "silu {}", {wide}, 256},
      {"dropout", "dropout { rate: 0.5 }", {wide}, 256},
      {"add", "add {}", {wide, wide}, 256},
      {"multiply", "multiply {}", {wide, wide}, 256},
      {"scale", "scale { factor: 0.5 }", {wide}, 256},
      {"concat", "concat {}", {{1024}, {1024}, {1024}}, 256},
      {"slice", "slice { begin: 1024 size: 1024 }", {wide}, 256},
      {"transpose", "transpose { axes: 2 axes: 0 axes: 1 }", {image}, 64},
      {"cross", "cross {}", {row, row}, 256},
      {"cross_low_rank", "cross { rank: 64 }", {row, row}, 256},
      {"dot_interaction", "dot_interaction {}", std::vector<std::vector<int64_t>>(16, {32}), 1024},
      {"dot", "dot {}", {factor, factor}, 4096},
      {"cosine", "cosine {}", {factor, factor}, 4096},
      {"factorization_machine", "factorization_machine {}",
       std::vector<std::vector<int64_t>>(16, {32}), 1024},
      {"embedding", "embedding { rows: 100000 dim: 32 }", {}, 4096, 1, 100000},
      {"embedding_bag",
       "embedding_bag { rows: 100000 dim: 32 combiner: SUM }",
       {},
       1024,
       8,
       100000},
  };
}

absl::StatusOr<ModelSpec> SpecOf(const LayerCase& layer) {
  v1::ModelConfig config;
  config.set_name("layer_bench");
  v1::LayerConfig* const measured = config.add_layers();
  if (!google::protobuf::TextFormat::ParseFromString(layer.config, measured)) {
    return absl::InvalidArgumentError(absl::StrCat("malformed: ", layer.config));
  }
  const auto add_feature = [&]() {
    v1::Feature* const feature = config.add_features();
    feature->set_name(absl::StrCat("x", config.features_size()));
    measured->add_inputs(feature->name());
    return feature;
  };
  for (const std::vector<int64_t>& shape : layer.shapes) {
    v1::Feature* const feature = add_feature();
    for (const int64_t extent : shape) feature->mutable_dense()->add_shape(extent);
  }
  if (layer.ids == 1) add_feature()->mutable_id();
  if (layer.ids > 1) add_feature()->mutable_bag();
  // Every model has a score and a loss; they are not measured.
  config.add_layers()->mutable_flatten();
  config.add_layers()->mutable_dense()->set_units(1);
  config.mutable_loss()->set_kind(v1::LossConfig::MEAN_SQUARED_ERROR);
  return InferModelSpec(config);
}

}  // namespace keelson::bench
