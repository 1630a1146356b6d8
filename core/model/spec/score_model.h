// A model of which nothing is known but its scores and their labels: what a script computes.
#ifndef KEELSON_CORE_MODEL_SPEC_SCORE_MODEL_H_
#define KEELSON_CORE_MODEL_SPEC_SCORE_MODEL_H_

#include <cstdint>

#include "core/model/spec/loss_spec.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// Without features, layers and variables; one loss of this kind, which takes `outputs` scores and
// one label of each record. Not of kInBatchSoftmax.
ModelSpec ScoreModel(LossKind kind, int64_t outputs);

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_SPEC_SCORE_MODEL_H_
