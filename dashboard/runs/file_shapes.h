// Checks that the JSON of a run's files has the form that docs/dashboard-api.md promises, since
// files from any writer are passed on unchanged.
#ifndef KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_
#define KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_

#include "absl/status/status.h"
#include "dashboard/runs/json.h"

namespace keelson {

// Checks placement.json. INVALID_ARGUMENT: a field is absent or of another form, "shards: expected
// a list of {task, bytes}". Unknown fields are allowed.
absl::Status CheckPlacementShape(const Json& placement);

// Checks eval/reports/<step>.json in the same way. Fields that apply to one kind of task only may
// be absent.
absl::Status CheckReportShape(const Json& report);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_
