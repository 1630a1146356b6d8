// The HTTP endpoint of a task, for those who watch it: Prometheus, Kubernetes' probes, a browser.
#ifndef KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
#define KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/startup/telemetry.h"

namespace keelson {

// GET /metrics   the registry's metrics in Prometheus' text format
// GET /healthz   200 while the process lives
// GET /readyz    200 when Telemetry::ready is set, else 503
// Anything else is answered with 404 or, for other methods, 405; a request of more than 16 KiB with
// 400 or 414. One request per connection.
//
// Has one thread, which takes one connection at a time and calls the collectors. It blocks all
// signals, so it may be started before a SignalWatcher.
class MetricsEndpoint {
 public:
  struct Options {
    // To listen on, on all of the host's addresses; 0: any free one.
    int port = 0;
    // A client that has not sent its request and taken the answer by then is cut off.
    absl::Duration connection_timeout = absl::Seconds(1);
  };

  // `telemetry` outlives the endpoint. INVALID_ARGUMENT: the port is in use, or not allowed.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const Options& options,
                                                                const Telemetry* telemetry);

  // Ends at once: a connection under way is cut off.
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;

  // The port that it listens on.
  int port() const;

 private:
  class HttpServer;

  explicit MetricsEndpoint(std::unique_ptr<HttpServer> server);

  const std::unique_ptr<HttpServer> server_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_METRICS_ENDPOINT_H_
