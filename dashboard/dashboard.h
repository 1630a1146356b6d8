// The evaluator's dashboard: a page in a browser, its API, and the probes, on one port.
#ifndef KEELSON_DASHBOARD_DASHBOARD_H_
#define KEELSON_DASHBOARD_DASHBOARD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/http/message.h"
#include "core/http/server.h"
#include "core/startup/telemetry.h"
#include "dashboard/api/actions.h"
#include "dashboard/api/api.h"
#include "dashboard/api/live_updates.h"
#include "dashboard/api/predictor.h"
#include "dashboard/assets.h"
#include "dashboard/runs/run_set.h"

namespace keelson {

// GET /            the page; GET /assets/…: what it loads
// /api/v1/…        docs/dashboard-api.md
// GET /metrics, /healthz, /readyz   as every task's metrics endpoint
//
// Has a thread that reads the runs' files, four that answer, and one for each open stream.
class Dashboard {
 public:
  struct Options {
    int port = 0;                    // 0: any free one
    std::string address;             // numeric, to listen on; empty: all of the host's
    std::vector<std::string> hosts;  // HttpServer::Options::hosts
    RunSet::Options runs;
    // These outlive the dashboard.
    const Telemetry* telemetry = nullptr;
    JobActions* actions = nullptr;  // null: there is no job that runs
    Clock* clock = Clock::Real();
    PredictorFactory new_predictor;  // null: nothing is predicted
    // The job's token; empty: nothing can be changed.
    std::string token;
    // Empty: PlainDashboardAssets.
    AssetTable assets;
    absl::Duration poll_interval = absl::Milliseconds(500);
  };

  // Serves, and logs the port. The errors of HttpServer::Start and RunSet::Create.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(Options options);
  ~Dashboard();

  // The port that it listens on.
  int port() const { return server_->port(); }
  // Whether the files that existed at the start have been read.
  bool loaded() const { return poller_->loaded(); }

 private:
  Dashboard(Options options, std::unique_ptr<RunSet> runs);

  HttpResponse Answer(const HttpRequest& request);
  HttpResponse Route(const HttpRequest& request);

  const Telemetry* const telemetry_;
  const AssetTable assets_;
  const std::unique_ptr<RunSet> runs_;
  LiveUpdates updates_;
  DashboardApi api_;
  std::unique_ptr<RunPoller> poller_;
  std::unique_ptr<HttpServer> server_;
};

// The answer for an asset: its bytes, unpacked for a client that does not accept gzip, or 304 for
// one that has it.
HttpResponse AnswerAsset(const HttpRequest& request, const Asset& asset);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_DASHBOARD_H_
