// The dashboard's API, docs/dashboard-api.md: a request in, an answer out, no sockets.
#ifndef KEELSON_DASHBOARD_API_API_H_
#define KEELSON_DASHBOARD_API_API_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/http/message.h"
#include "core/http/rate_limiter.h"
#include "dashboard/api/actions.h"
#include "dashboard/api/live_updates.h"
#include "dashboard/api/predictor.h"
#include "dashboard/runs/json.h"
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
  HttpResponse Handle(const HttpRequest& request);

 private:
  using RunHandler = HttpResponse (DashboardApi::*)(const HttpRequest&, const Run&);
  struct Route {
    const char* path;  // below /api/v1/runs/{run}
    bool post;
    RunHandler handler;
  };
  struct Comparison {
    std::string key;
    Json variables;
  };
  struct LoadedPredictor {
    std::string run;
    std::shared_ptr<Predictor> predictor;
  };
  static const Route kRoutes[];

  HttpResponse Runs() const;
  HttpResponse Events(const HttpRequest& request) const;
  HttpResponse OfRun(const HttpRequest& request, absl::string_view rest);

  // api.cc
  HttpResponse Overview(const HttpRequest& request, const Run& run);
  HttpResponse Cluster(const HttpRequest& request, const Run& run);
  HttpResponse Placement(const HttpRequest& request, const Run& run);
  HttpResponse ModelOf(const HttpRequest& request, const Run& run);
  HttpResponse Series(const HttpRequest& request, const Run& run);
  HttpResponse SeriesData(const HttpRequest& request, const Run& run);
  HttpResponse SeriesFile(const HttpRequest& request, const Run& run);
  // api_snapshots.cc
  HttpResponse Snapshots(const HttpRequest& request, const Run& run);
  HttpResponse Compare(const HttpRequest& request, const Run& run);
  HttpResponse Report(const HttpRequest& request, const Run& run);
  // api_changes.cc
  HttpResponse Predict(const HttpRequest& request, const Run& run);
  HttpResponse EndTraining(const HttpRequest& request, const Run& run);
  HttpResponse SetMode(const HttpRequest& request, const Run& run);

  std::shared_ptr<Predictor> PredictorOf(const Run& run);
  // Returns nullopt if this request may change this run, otherwise the refusal.
  std::optional<HttpResponse> Refuse(const HttpRequest& request, const Run& run);

  const Options options_;
  // Limits warnings about wrong tokens, by client.
  RateLimiter warnings_;
  // Predictions and comparisons under way: they may take long, and the threads are few.
  std::atomic<int> predictions_{0};
  std::atomic<int> comparisons_{0};

  Mutex mu_;
  // The newest first.
  std::list<Comparison> compared_ ABSL_GUARDED_BY(mu_);
  std::list<LoadedPredictor> predictors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_API_H_
