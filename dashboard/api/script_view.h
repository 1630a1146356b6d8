// "Try it" of a model that a script computes: its form, and predictions by the script.
#ifndef KEELSON_DASHBOARD_API_SCRIPT_VIEW_H_
#define KEELSON_DASHBOARD_API_SCRIPT_VIEW_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/http/message.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run.h"
#include "dashboard/runs/script_model.h"

namespace keelson {

// Returns the form of a run whose model is a script's; nullopt: nobody predicts.
std::optional<ScriptForm> ScriptFormOf(const Run& run);

// What the page needs to know of the task: kind, classes, and the shape of numbers.
void AddScriptTask(const ScriptForm& form, Json* task);

// GET /api/v1/runs/{run}/form
HttpResponse ScriptFormAnswer(const Run& run, const ScriptForm& form);

// What a request to predict has for the script. INVALID_ARGUMENT, beginning with the place
// ("columns.age"): a value that is missing, unknown, or of another form; more than 32768 bytes of
// columns.
absl::StatusOr<ScriptInput> ScriptInputOf(const ScriptForm& form, const Json& body);

// POST /api/v1/runs/{run}/predict. Errors of ScriptModel::Predict and ScriptInputOf.
HttpResponse PredictByScript(const Json& body, const Run& run, const ScriptForm& form);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_SCRIPT_VIEW_H_
