// embedding and embedding_bag.
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/model/spec/field_checks.h"
#include "core/model/spec/field_error.h"
#include "core/model/spec/layers/groups.h"
#include "core/model/spec/tables.h"

namespace keelson {
namespace {

// What an embedding or an embedding_bag says of its rows.
struct RowsOf {
  const std::string& table;
  int64_t rows;
  int64_t dim;
};

absl::Status InferTable(const RowsOf& of, const LayerContext& context, LayerSpec* layer) {
  const std::string path = absl::StrCat(context.path, ".table");
  if (of.rows != 0 || of.dim != 0) {
    return FieldError(path, absl::StrCat("expected neither rows nor dim beside it, found rows ",
                                         of.rows, ", dim ", of.dim));
  }
  if (context.owner != nullptr) {
    return FieldError(path,
                      absl::StrCat("expected no variables_of beside it, for layers share a table "
                                   "by its name, found \"",
                                   context.owner->name, "\""));
  }
  for (size_t t = 0; t < context.tables.size(); ++t) {
    if (context.tables[t].name != of.table) continue;
    layer->table = t;
    layer->output = Shape({context.tables[t].dim});
    return absl::OkStatus();
  }
  return FieldError(
      path, absl::StrCat("expected the name of one of model.tables, found \"", of.table, "\""));
}

absl::Status InferRows(const RowsOf& of, const LayerContext& context, LayerSpec* layer) {
  if (!of.table.empty()) return InferTable(of, context, layer);
  const auto& [table, rows, dim] = of;
  const std::string& path = context.path;
  if (context.owner != nullptr && context.owner->table) {
    return FieldError(
        path, absl::StrCat("expected the table \"", context.tables[*context.owner->table].name,
                           "\" in place of variables_of \"", context.owner->name,
                           "\", which has no variables, found none"));
  }
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".rows"), rows));
  RETURN_IF_ERROR(CheckPositive(absl::StrCat(path, ".dim"), dim));
  Shape embeddings({rows, dim});
  RETURN_IF_ERROR(CheckElements(path, "embeddings", embeddings));
  layer->output = Shape({dim});
  if (context.owner == nullptr) {
    layer->embeddings =
        context.AddVariable(*layer, "embeddings", std::move(embeddings), kEmbeddingInitializer);
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
  return InferRows({embedding.table(), embedding.rows(), embedding.dim()}, context, layer);
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
  return InferRows({bag.table(), bag.rows(), bag.dim()}, context, layer);
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
