// The sums of an evaluation of scores that no model of layers has computed.
#ifndef KEELSON_CORE_SCORING_SCORE_SUMS_H_
#define KEELSON_CORE_SCORING_SCORE_SUMS_H_

#include "absl/types/span.h"
#include "core/model/spec/loss_spec.h"
#include "core/model/spec/metrics.h"

namespace keelson {

// As EvaluationPass::Evaluate has them of a batch with these scores, [labels.size(), loss.outputs],
// which are logits for the cross-entropies. `loss` is one of a record's own label: not of
// kInBatchSoftmax. Labels that are classes are among them.
EvaluationSums SumsOfScores(const LossSpec& loss, absl::Span<const MetricSpec> metrics,
                            absl::Span<const float> scores, absl::Span<const float> labels);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_SCORE_SUMS_H_
