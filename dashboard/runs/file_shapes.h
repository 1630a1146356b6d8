// Whether the JSON of a run's files has the form that docs/dashboard-api.md promises of it: what is
// passed on as it is was written by anyone.
#ifndef KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_
#define KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_

#include "absl/status/status.h"
#include "dashboard/runs/json.h"

namespace keelson {

// Of placement.json. INVALID_ARGUMENT: a field is absent or of another form, "shards: expected a
// list of {task, bytes}". Fields that are not known are fine.
absl::Status CheckPlacementShape(const Json& placement);

// Of eval/reports/<step>.json, likewise. Fields that apply to one kind of task only may be absent.
absl::Status CheckReportShape(const Json& report);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_FILE_SHAPES_H_
