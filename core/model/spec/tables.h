// The embedding tables of a model's configuration.
#ifndef KEELSON_CORE_MODEL_SPEC_TABLES_H_
#define KEELSON_CORE_MODEL_SPEC_TABLES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// How embeddings start, variables and rows of tables alike: as Keras starts an Embedding.
inline constexpr Initializer kEmbeddingInitializer = {Initializer::Kind::kUniform, -0.05f, 0.05f};

// Those of `tables`. INVALID_ARGUMENT, the text beginning with the field's path: a name that is
// malformed or there twice; a dim that is not in [1, TableSpec::kMostDim]; CheckLimits.
absl::StatusOr<std::vector<TableSpec>> ReadTables(const v1::ModelConfig& config);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_TABLES_H_
