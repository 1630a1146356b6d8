// The API's answers to GET requests of one run that keep nothing between requests.
#ifndef KEELSON_DASHBOARD_API_RUN_ANSWERS_H_
#define KEELSON_DASHBOARD_API_RUN_ANSWERS_H_

#include "core/http/message.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe, all of them. Paths are below /api/v1/runs.
HttpResponse RunAnswer(const HttpRequest& request, const Run& run);         // {run}
HttpResponse ClusterAnswer(const HttpRequest& request, const Run& run);     // {run}/cluster
HttpResponse PlacementAnswer(const HttpRequest& request, const Run& run);   // {run}/placement
HttpResponse ModelAnswer(const HttpRequest& request, const Run& run);       // {run}/model
HttpResponse SeriesAnswer(const HttpRequest& request, const Run& run);      // {run}/series
HttpResponse SeriesDataAnswer(const HttpRequest& request, const Run& run);  // {run}/series/data
HttpResponse SeriesFileAnswer(const HttpRequest& request, const Run& run);  // {run}/series.csv
HttpResponse SnapshotsAnswer(const HttpRequest& request, const Run& run);   // {run}/snapshots
HttpResponse ReportAnswer(const HttpRequest& request, const Run& run);      // {run}/report

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_RUN_ANSWERS_H_
