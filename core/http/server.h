// A small HTTP server for monitoring a task: Prometheus, Kubernetes' probes, a browser.
#ifndef KEELSON_CORE_HTTP_SERVER_H_
#define KEELSON_CORE_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/http/message.h"

namespace keelson {

// Answers GET and HEAD, and POST where bodies are allowed. One request per connection.
//
// Refused without calling the handler: what is no request (400), a target of more than 8 KiB (414),
// a head of more than 16 KiB (400, 431), too long a body (413), another transfer coding than
// chunked (501), another method (405), too many requests of a client (429 with Retry-After) and
// streams (503), and requests that were meant for another host (403; Options::hosts).
//
// Has Options::threads threads, which call the handler, and one for each open stream. A request
// that has not wholly come and an answer that is not wholly taken have none, so slow clients hold
// nobody up. The threads block all signals, so it may be started before a SignalWatcher.
//
// A client is an address of IPv4, or a /64 network of IPv6. Of more than 128 connections at a time,
// without streams, the client that has most loses its oldest.
class HttpServer {
 public:
  struct Options {
    // The flag that sets the port, for messages: "--metrics_port".
    std::string flag;
    // The port to listen on; 0: any free one.
    int port = 0;
    // The flag that sets the address, for messages: "--dashboard_address".
    std::string address_flag;
    // The numeric address to listen on; empty: all of the host's.
    std::string address;
    // The flag that sets the hosts, for messages: "--dashboard_hosts".
    std::string hosts_flag;
    // Names by which clients reach the server, beside those that AdmitsHost (host_names.h) admits
    // anyway; a Host header with another one is refused (403).
    std::vector<std::string> hosts;
    // The number of requests handled at a time.
    int threads = 1;
    // A client's connections at a time whose requests have begun and are not whole, and those whose
    // answers are not yet taken; beyond, its oldest of these is closed. At least 1.
    int connections_per_client = 4;
    // Open responses (EventSource) at a time, and to one client; beyond: 503. Each has a thread.
    int max_streams = 0;
    int streams_per_client = 4;
    // The largest body of a request; beyond it: 413. 0: requests have no body, and only GET and
    // HEAD are answered.
    int64_t max_body_bytes = 0;
    // The rate at which one client may begin requests, with a burst of twice as many, at least 20;
    // beyond it: 429. 0: no limit.
    double requests_per_second = 0;
    // A client is cut off that sends nothing for this long, or that has not sent its request's body
    // or taken the answer within it; a transfer may take longer while it moves 64 KiB a second. The
    // time of the handler and of compressing the answer does not count.
    absl::Duration connection_timeout = absl::Seconds(1);
    // From a request's first bytes to its head's end, where connection_timeout is not shorter.
    absl::Duration head_timeout = absl::Seconds(1);
    // A stream that has been silent for this long gets a comment; a client that takes nothing of a
    // stream for this long is cut off.
    absl::Duration ping_interval = absl::Seconds(10);
    // The clock for the rate of requests and these timeouts, but for streams, which have the real
    // one. Outlives the server.
    Clock* clock = Clock::Real();
  };

  // Called by several threads at a time unless Options::threads is 1. Exceptions are answered with
  // 500 and logged.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // INVALID_ARGUMENT: the port is in use, or not allowed; the address is none, or not the host's;
  // a host is none.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);

  // Ends at once: connections and streams under way are cut off; waits for calls of the handler and
  // for EventSource::Next, which is called with at most 100 ms.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on.
  int port() const;

 private:
  class Listener;

  explicit HttpServer(std::unique_ptr<Listener> listener);

  const std::unique_ptr<Listener> listener_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_SERVER_H_
