// What a script tells of records: scores and labels, checked.
#ifndef KEELSON_EVALUATOR_SCRIPT_SCORES_H_
#define KEELSON_EVALUATOR_SCRIPT_SCORES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace keelson {

// In place: of each record those of all classes, or with one output that of class 1; 0 and 1 become
// the nearest that have finite logits. INVALID_ARGUMENT: a score is no probability.
absl::Status ProbabilitiesToLogits(int64_t outputs, absl::Span<float> scores);

// Of the records from `first` on. `classes` is 0 where labels are numbers. INVALID_ARGUMENT: one is
// no class, or is not finite.
absl::Status CheckLabels(int64_t classes, int64_t first, absl::Span<const float> labels);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_SCORES_H_
