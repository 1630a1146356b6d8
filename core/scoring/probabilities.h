// Converts a model's scores to probabilities and to the predicted class.
#ifndef KEELSON_CORE_SCORING_PROBABILITIES_H_
#define KEELSON_CORE_SCORING_PROBABILITIES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/model/spec/loss_spec.h"

namespace keelson {

// Makes each row of `outputs` scores, in place: for the softmax cross-entropy the probabilities of
// the classes, which add up to 1; for the sigmoid cross-entropy the probability of the label 1; for
// the mean squared error the prediction, which is the score. Large scores do not overflow; what is
// computed of a score that is not finite may be not-a-number. `outputs` > 0 divides the number of
// scores.
void ScoresToProbabilities(LossKind loss, int64_t outputs, absl::Span<float> scores);

// The class with the highest of the scores or probabilities of one example, of equal ones the
// first; -1 when one of them is not a number.
int64_t PredictedClass(absl::Span<const float> scores);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_PROBABILITIES_H_
