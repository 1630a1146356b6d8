// What a script says that its predictions take.
#ifndef KEELSON_EVALUATOR_SCRIPT_FORM_H_
#define KEELSON_EVALUATOR_SCRIPT_FORM_H_

#include "absl/status/statusor.h"
#include "core/script/script_message.h"
#include "dashboard/runs/script_model.h"

namespace keelson {

// The elements of numbers that a prediction takes; 0: it takes columns.
int64_t InputElements(const ScriptForm& form);

// Of a message kForm; kind and classes are those of the scores. INVALID_ARGUMENT: neither numbers,
// 1 to 2^20 in one to three extents, nor columns, 1 to 1000 with names of their own and kinds.
absl::StatusOr<ScriptForm> ReadScriptForm(const ScriptMessage& message);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCRIPT_FORM_H_
