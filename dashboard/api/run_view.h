// The API's JSON of a run (docs/dashboard-api.md), from the run's files.
#ifndef KEELSON_DASHBOARD_API_RUN_VIEW_H_
#define KEELSON_DASHBOARD_API_RUN_VIEW_H_

#include "dashboard/runs/json.h"
#include "dashboard/runs/run.h"

namespace keelson {

// An element of `runs` in GET /api/v1/runs.
Json RunEntryJson(const Run& run, const RunData& data);
// GET /api/v1/runs/{run}
Json RunJson(const Run& run, const RunData& data);
// GET /api/v1/runs/{run}/snapshots
Json SnapshotsJson(const Run& run, const RunData& data);
// GET /api/v1/runs/{run}/cluster
Json ClusterJson(const Run& run, const RunData& data);
// GET /api/v1/runs/{run}/placement; null: there is none.
Json PlacementJson(const Run& run, const RunData& data);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_RUN_VIEW_H_
