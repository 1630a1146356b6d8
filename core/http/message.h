// HTTP requests and answers as handlers see them: without sockets, so that tests call handlers
// directly.
#ifndef KEELSON_CORE_HTTP_MESSAGE_H_
#define KEELSON_CORE_HTTP_MESSAGE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace keelson {

inline constexpr char kPlainText[] = "text/plain; charset=utf-8";
inline constexpr char kJson[] = "application/json";

struct HttpRequest {
  // "GET".
  std::string method;
  // Decoded, begins with '/', without the query. May hold any bytes but control characters, so it
  // is no path of a file.
  std::string path;
  // Decoded, in order; what has no '=' has an empty value.
  std::vector<std::pair<std::string, std::string>> query;
  // Names in lower case. If a header is repeated, the first one counts.
  std::map<std::string, std::string> headers;
  std::string body;
  // The client's numeric address, or that of its proxy.
  std::string client;

  // The first parameter of this name; nullopt: there is none.
  std::optional<std::string> Parameter(absl::string_view name) const;
  // All parameters of this name, in order.
  std::vector<std::string> Parameters(absl::string_view name) const;
  // The header of this name, in lower case; empty: there is none.
  std::string Header(absl::string_view name) const;
};

// The source of an open response's server-sent events. Called by one thread.
class EventSource {
 public:
  virtual ~EventSource() = default;

  // Waits at most `timeout` for more bytes of the body. Empty: nothing yet. nullopt: the end.
  virtual std::optional<std::string> Next(absl::Duration timeout) = 0;
};

struct HttpResponse {
  // In `headers`, in whatever case it is written there.
  bool HasHeader(absl::string_view name) const;

  int status = 200;
  std::string content_type = kPlainText;
  std::string body;
  // Name and value; beside those that the server sets itself: Content-Type, Content-Length and
  // Connection.
  std::vector<std::pair<std::string, std::string>> headers;
  // Not null: the body stays open and gets this source's events, as "text/event-stream"; `body` and
  // `content_type` are ignored. Released when the client has gone, the source has ended or the
  // server ends.
  std::shared_ptr<EventSource> events;
};

// {"error": message}, as JSON whatever bytes the message has.
HttpResponse JsonError(int status, absl::string_view message);

// The parts of a request's target, "/a%20b?x=1".
struct HttpTarget {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
};

// nullopt: the target does not begin with '/', its path has a '%' without two hex digits, or a
// control character. A '+' in the query is a space; a bad '%' there stands for itself.
std::optional<HttpTarget> ParseTarget(absl::string_view target);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_MESSAGE_H_
