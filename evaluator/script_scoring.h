// What a script says that it scores.
#ifndef KEELSON_EVALUATOR_SCRIPT_SCORING_H_
#define KEELSON_EVALUATOR_SCRIPT_SCORING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/spec/loss_spec.h"
#include "core/script/script_message.h"

namespace keelson {

struct ScriptScoring {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  int64_t outputs = 0;
  int64_t records = 0;
  int64_t batch_size = 0;
  bool probabilities = false;  // in place of logits
  std::vector<std::string> class_names;

  // "classification", "binary", "regression"
  const char* kind_name() const;
  // Those of the first `most_batches` batches; 0: of all.
  int64_t RecordsOf(int64_t most_batches) const;
};

// Of a message kScoring. INVALID_ARGUMENT: it is another one, or says scores of no kind or number
// that there can be.
absl::StatusOr<ScriptScoring> ReadScriptScoring(const ScriptMessage& message);

// INVALID_ARGUMENT: "the script's WHAT: expected EXPECTED, found FOUND".
absl::Status UnexpectedOfScript(absl::string_view what, absl::string_view expected, uint64_t found);
// INVALID_ARGUMENT: an evaluation has no such message, or not there.
absl::Status NotInEvaluation(const ScriptMessage& message);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_SCORING_H_
