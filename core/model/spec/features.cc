#include "core/model/spec/features.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"

namespace keelson {
namespace {

using Extents = google::protobuf::RepeatedField<int64_t>;

absl::StatusOr<Shape> ReadShape(const std::string& path, const Extents& extents) {
  for (int i = 0; i < extents.size(); ++i) {
    RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, "[", i, "]"), extents[i]));
  }
  Shape shape(std::vector<int64_t>(extents.begin(), extents.end()));
  RETURN_IF_ERROR(CheckElements(path, "an example", shape));
  return shape;
}

absl::StatusOr<std::vector<FeatureSpec>> ReadInputShape(const v1::ModelConfig& config) {
  const std::string path = "model.input_shape";
  const int rank = config.input_shape_size();
  if (rank != 1 && rank != 3) {
    return FieldError(path, absl::StrCat("expected [features] or [height, width, channels], found ",
                                         rank, " extents"));
  }
  ASSIGN_OR_RETURN(Shape shape, ReadShape(path, config.input_shape()));
  return std::vector<FeatureSpec>{{std::string(kFeatures), std::move(shape)}};
}

absl::StatusOr<FeatureSpec> ReadFeature(const std::string& path, const v1::Feature& config) {
  RETURN_IF_ERROR(CheckName(path + ".name", config.name()));
  FeatureSpec feature;
  feature.name = config.name();
  switch (config.kind_case()) {
    case v1::Feature::kDense:
      break;
    case v1::Feature::kId:
      feature.kind = FeatureKind::kId;
      return feature;
    case v1::Feature::kBag:
      feature.kind = FeatureKind::kBag;
      feature.weighted = config.bag().weighted();
      return feature;
    case v1::Feature::KIND_NOT_SET:
      return FieldError(path, "expected a kind (dense, id or bag), found none");
  }
  const std::string shape_path = path + ".dense.shape";
  const int rank = config.dense().shape_size();
  if (rank < 1 || rank > 3) {
    return FieldError(shape_path, absl::StrCat("expected one to three extents, found ", rank));
  }
  ASSIGN_OR_RETURN(feature.shape, ReadShape(shape_path, config.dense().shape()));
  return feature;
}

}  // namespace

absl::StatusOr<std::vector<FeatureSpec>> ReadFeatures(const v1::ModelConfig& config) {
  if (config.features().empty()) return ReadInputShape(config);
  if (!config.input_shape().empty()) {
    return FieldError("model.input_shape", "expected nothing beside model.features, found a shape");
  }
  std::vector<FeatureSpec> features;
  for (int i = 0; i < config.features_size(); ++i) {
    const std::string path = absl::StrCat("model.features[", i, "]");
    ASSIGN_OR_RETURN(FeatureSpec feature, ReadFeature(path, config.features(i)));
    const bool twice = std::any_of(features.begin(), features.end(), [&](const FeatureSpec& other) {
      return other.name == feature.name;
    });
    if (twice) {
      return FieldError(path + ".name",
                        absl::StrCat("another feature is already called \"", feature.name, "\""));
    }
    features.push_back(std::move(feature));
  }
  return features;
}

}  // namespace keelson
