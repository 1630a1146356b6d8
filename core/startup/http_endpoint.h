// A small HTTP server beside a task's work, for those who watch it: Prometheus, Kubernetes' probes,
// a browser.
#ifndef KEELSON_CORE_STARTUP_HTTP_ENDPOINT_H_
#define KEELSON_CORE_STARTUP_HTTP_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

inline constexpr char kPlainText[] = "text/plain; charset=utf-8";

struct HttpAnswer {
  int status = 200;
  std::string content_type = kPlainText;
  std::string body;
  // Name and value; beside those that the server sets itself.
  std::vector<std::pair<std::string, std::string>> headers;
};

// Answers GET and HEAD; other methods with 405, a request of more than 16 KiB with 400 or 414. One
// request per connection.
//
// Has one thread, which takes one connection at a time and calls the handler. It blocks all
// signals, so it may be started before a SignalWatcher.
class HttpEndpoint {
 public:
  struct Options {
    // That the port comes from, for messages: "--metrics_port".
    std::string flag;
    // To listen on, on all of the host's addresses; 0: any free one.
    int port = 0;
    // A client that has not sent its request and taken the answer by then is cut off.
    absl::Duration connection_timeout = absl::Seconds(1);
  };

  // Gets the path, decoded, without the query.
  using Handler = std::function<HttpAnswer(absl::string_view path)>;

  // INVALID_ARGUMENT: the port is in use, or not allowed.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const Options& options,
                                                             Handler handler);

  // Ends at once: a connection under way is cut off.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // The port that it listens on.
  int port() const;

 private:
  class Server;

  explicit HttpEndpoint(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_STARTUP_HTTP_ENDPOINT_H_
