// The evaluator's role where a script computes the scores.
#ifndef KEELSON_EVALUATOR_SCRIPT_ROLE_H_
#define KEELSON_EVALUATOR_SCRIPT_ROLE_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/startup/role_program.h"
#include "evaluator/scorer.h"
#include "evaluator/script_predictions.h"

namespace keelson {

// Evaluates with the scores of the script at the other end of the socket `fd`, which this owns, and
// tells it how that ended. `page_port`: of the dashboard, where one is served; the script is told.
// `predictions` is lent the script where that predicts.
// `evaluate` runs the evaluator until `stop`. The end of the script is no error. INVALID_ARGUMENT:
// `fd` is no such socket. Errors of ScriptScorer::Create and of `evaluate`.
absl::Status EvaluateWithScript(
    const RoleContext& context, int fd, std::optional<int> page_port,
    ScriptPredictions* predictions, StopSignal* stop,
    absl::FunctionRef<absl::Status(ScorerFactory make_scorer, StopSignal* stop)> evaluate);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_ROLE_H_
