// An HTTP client for tests of endpoints on this host.
#ifndef KEELSON_CORE_STARTUP_HTTP_TESTING_H_
#define KEELSON_CORE_STARTUP_HTTP_TESTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/metrics/exposition_testing.h"
#include "core/startup/telemetry.h"

namespace keelson {

// A connection to 127.0.0.1:port. Every wait ends after 20 s.
class HttpConnection {
 public:
  // UNAVAILABLE: nobody listens.
  static absl::StatusOr<HttpConnection> To(int port);
  HttpConnection(HttpConnection&& other) noexcept;
  ~HttpConnection();

  void Send(absl::string_view bytes) const;
  // What comes until the server closes the connection, or after 20 s.
  std::string ReceiveAll() const;

 private:
  explicit HttpConnection(int fd) : fd_(fd) {}

  int fd_;
};

struct HttpResponse {
  int status = 0;
  std::string head;  // status line and headers
  std::string body;
};

// UNAVAILABLE: nobody listens. DATA_LOSS: no complete answer.
absl::StatusOr<HttpResponse> HttpRequest(int port, absl::string_view method,
                                         absl::string_view path);

// What an endpoint for `telemetry` answers to GET /metrics, over a real connection.
absl::StatusOr<Exposition> Scrape(const Telemetry& telemetry);

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_HTTP_TESTING_H_
