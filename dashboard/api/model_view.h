// The API's JSON of a run's model (docs/dashboard-api.md).
#ifndef KEELSON_DASHBOARD_API_MODEL_VIEW_H_
#define KEELSON_DASHBOARD_API_MODEL_VIEW_H_

#include "dashboard/runs/json.h"
#include "dashboard/runs/run.h"

namespace keelson {

// GET /api/v1/runs/{run}/model; null: the configuration is not known.
Json ModelJson(const Run& run, const RunData& data);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_MODEL_VIEW_H_
