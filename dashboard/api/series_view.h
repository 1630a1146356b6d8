// Curves as JSON and as CSV, written straight into text: they are long.
#ifndef KEELSON_DASHBOARD_API_SERIES_VIEW_H_
#define KEELSON_DASHBOARD_API_SERIES_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dashboard/runs/run.h"
#include "dashboard/runs/time_series.h"

namespace keelson {

// GET /api/v1/runs/{run}/series
std::string SeriesListJson(const Run& run, const RunData& data);

struct CurveQuery {
  std::vector<std::string> names;
  CurveAxis axis = CurveAxis::kStep;
  CurveRange range;
  size_t points = 1000;
};
// GET /api/v1/runs/{run}/series/data; a curve that is not there is left out.
std::string SeriesDataJson(const Run& run, const RunData& data, const CurveQuery& query);

// GET /api/v1/runs/{run}/series.csv
std::string SeriesCsv(const RunData& data, const std::vector<std::string>& names);

// Data of the event `series`: the points that came after `revision`, a curve thinned to 2000;
// empty: there are none.
std::string NewPointsJson(const Run& run, const RunData& data, uint64_t revision);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_SERIES_VIEW_H_
