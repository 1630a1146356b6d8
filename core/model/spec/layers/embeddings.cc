// embedding and embedding_bag.
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"

namespace keelson {
namespace {

// As Keras starts an Embedding.
constexpr Initializer kInitializer = {Initializer::Kind::kUniform, -0.05f, 0.05f};

absl::Status InferRows(int64_t rows, int64_t dim, const LayerContext& context, LayerSpec* layer) {
  const std::string& path = context.path;
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".rows"), rows));
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".dim"), dim));
  Shape embeddings({rows, dim});
  RETURN_IF_ERROR(CheckElements(path, "embeddings", embeddings));
  layer->output = Shape({dim});
  if (context.owner == nullptr) {
    layer->embeddings =
        context.AddVariable(*layer, "embeddings", std::move(embeddings), kInitializer);
    return absl::OkStatus();
  }
  const Shape& shared = (*context.variables)[*context.owner->embeddings].shape;
  if (embeddings != shared) {
    return FieldError(path, absl::StrCat("expected embeddings ", shared.ToString(), ", those of \"",
                                         context.owner->name, "\", found ", embeddings.ToString()));
  }
  layer->embeddings = context.owner->embeddings;
  return absl::OkStatus();
}

absl::Status InferEmbedding(const v1::LayerConfig& config, const LayerContext& context,
                            LayerSpec* layer) {
  const v1::Embedding& embedding = config.embedding();
  return InferRows(embedding.rows(), embedding.dim(), context, layer);
}

absl::StatusOr<Combiner> CombinerOf(v1::EmbeddingBag::Combiner combiner, const std::string& path) {
  switch (combiner) {
    case v1::EmbeddingBag::COMBINER_UNSPECIFIED:
    case v1::EmbeddingBag::MEAN:
      return Combiner::kMean;
    case v1::EmbeddingBag::SUM:
      return Combiner::kSum;
    case v1::EmbeddingBag::SQRTN:
      return Combiner::kSqrtN;
    default:
      return FieldError(
          absl::StrCat(path, ".combiner"),
          absl::StrCat("expected SUM, MEAN or SQRTN, found ", static_cast<int>(combiner)));
  }
}

absl::Status InferEmbeddingBag(const v1::LayerConfig& config, const LayerContext& context,
                               LayerSpec* layer) {
  const v1::EmbeddingBag& bag = config.embedding_bag();
  ASSIGN_OR_RETURN(layer->combiner, CombinerOf(bag.combiner(), context.path));
  return InferRows(bag.rows(), bag.dim(), context, layer);
}

// A product and a sum for each number of an id's row.
int64_t BagOperations(const LayerSpec& layer) { return 2 * layer.output.num_elements(); }

}  // namespace

LayerRules EmbeddingRules() {
  return {.input_kind = FeatureKind::kId, .shares_variables = true, .infer = InferEmbedding};
}

LayerRules EmbeddingBagRules() {
  return {.input_kind = FeatureKind::kBag,
          .shares_variables = true,
          .infer = InferEmbeddingBag,
          .operations = BagOperations};
}

}  // namespace keelson
