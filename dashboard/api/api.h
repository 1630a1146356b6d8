// The dashboard's API, docs/dashboard-api.md: a request in, an answer out, no sockets.
#ifndef KEELSON_DASHBOARD_API_API_H_
#define KEELSON_DASHBOARD_API_API_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/http/message.h"
#include "dashboard/api/actions.h"
#include "dashboard/api/comparisons.h"
#include "dashboard/api/job_changes.h"
#include "dashboard/api/live_updates.h"
#include "dashboard/api/predictions.h"
#include "dashboard/api/predictor.h"
#include "dashboard/runs/run_set.h"

namespace keelson {

// Thread-safe. No part of a request becomes a path of a file: runs, steps and curves are looked up
// among those that are known.
class DashboardApi {
 public:
  struct Options {
    // These outlive the API.
    const RunSet* runs = nullptr;
    LiveUpdates* updates = nullptr;
    JobActions* actions = nullptr;  // null: there is no job that runs
    const Clock* clock = Clock::Real();
    PredictorFactory new_predictor;  // null: nothing is predicted
    // The token that authorizes changes; empty: no changes are allowed.
    std::string token;
  };

  explicit DashboardApi(Options options);

  // Answers a request for any path; one that is not the API's gets 404.
  HttpResponse Handle(const HttpRequest& request) const;

 private:
  struct Route {
    absl::string_view path;  // below /api/v1/runs/{run}
    bool post = false;
    std::function<HttpResponse(const HttpRequest&, const Run&)> answer;
  };

  std::vector<Route> Routes();
  HttpResponse Runs() const;
  HttpResponse Events(const HttpRequest& request) const;
  HttpResponse OfRun(const HttpRequest& request, absl::string_view rest) const;

  const RunSet* const runs_;
  LiveUpdates* const updates_;
  const Clock* const clock_;
  Comparisons comparisons_;
  Predictions predictions_;
  JobChanges changes_;
  const std::vector<Route> routes_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_API_H_
