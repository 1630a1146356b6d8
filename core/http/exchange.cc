#include "core/http/exchange.h"

#include <httplib.h>

#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {
namespace {

constexpr char kEventStream[] = "text/event-stream";

// The bytes of a request's head, from which the library reads, and those of the answer, which it
// writes.
class HeadStream : public httplib::Stream {
 public:
  explicit HeadStream(absl::string_view head) : left_(head) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }

  ssize_t read(char* out, size_t size) override {
    if (left_.empty()) return -1;
    const size_t count = left_.copy(out, size);
    left_.remove_prefix(count);
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* bytes, size_t size) override {
    written_.append(bytes, size);
    return static_cast<ssize_t>(size);
  }

  // These are unused; the library only copies them into the request.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {}
  void get_local_ip_and_port(std::string& ip, int& port) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string& written() { return written_; }

 private:
  absl::string_view left_;
  std::string written_;
};

const char* ReasonFor(int status) {
  switch (status) {
    case 405:
      return "this method is not allowed here";
    case 413:
      return "the request's body is too long";
    case 414:
      return "the request's target is too long";
    case 431:
      return "the request's head is longer than 16 KiB";
    case 500:
      return "the server has failed";
    case 501:
      return "of the transfer codings only chunked is known";
    default:
      return "this is no request that makes sense";
  }
}

std::vector<std::string> HeaderValues(const httplib::Request& request, const char* name) {
  std::vector<std::string> values;
  const auto [begin, end] = request.headers.equal_range(name);
  for (auto header = begin; header != end; ++header) values.push_back(header->second);
  return values;
}

// The headers by their names in lower case; of a repeated one the first that was sent. Newer
// versions of the library keep the headers in a hash table, where libstdc++ reverses those of one
// name.
template <typename Headers>
std::map<std::string, std::string> FirstOfEach(const Headers& sent) {
  constexpr bool kReversed = requires { sent.bucket_count(); };
  std::map<std::string, std::string> first;
  for (const auto& [name, value] : sent) {
    const auto [entry, is_new] = first.emplace(absl::AsciiStrToLower(name), value);
    if (kReversed && !is_new) entry->second = value;
  }
  return first;
}

std::map<std::string, std::string> HeadersOf(const httplib::Request& request) {
  std::map<std::string, std::string> headers = FirstOfEach(request.headers);
  // The library's own additions.
  for (const char* name : {"local_addr", "local_port", "remote_addr", "remote_port"}) {
    headers.erase(name);
  }
  return headers;
}

// The status that a request with this head is to be refused with, or 200 and how its body is sent.
int CheckHead(const httplib::Request& request, int64_t max_body_bytes, BodyFraming* framing) {
  const bool post = request.method == "POST" && max_body_bytes > 0;
  if (request.method != "GET" && request.method != "HEAD" && !post) return 405;
  const BodyHeaders headers = {HeaderValues(request, "Content-Length"),
                               HeaderValues(request, "Transfer-Encoding")};
  return FrameBody(headers, post ? max_body_bytes : 0, framing);
}

// The library's parsing of a head and writing of an answer. Its sockets, threads, routing and
// reading of bodies are not used.
class Library : private httplib::Server {
 public:
  // Fills the answer to a request whose head makes sense.
  using Route = std::function<void(httplib::Request*, httplib::Response*)>;
  // Writes the reason of a refusal into the answer's body. False: it has its body already.
  using Explain = std::function<bool(httplib::Response*)>;

  Library(const Route& route, const Explain& explain) {
    // Before the library looks for a route or reads a body.
    set_pre_routing_handler([this, route](const httplib::Request&, httplib::Response& to) {
      route(request_, &to);
      return HandlerResponse::Handled;
    });
    set_error_handler(
        HandlerWithResponse([explain](const httplib::Request&, httplib::Response& to) {
          return explain(&to) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
        }));
  }

  void Process(HeadStream* stream) {
    Process(stream, [this](httplib::Request& request) {
      request_ = &request;
      // Answers are complete: the library would otherwise cut them to ranges, whatever their
      // status.
      request.ranges.clear();
      // Who has the connection has answered that already.
      expects_continue_ = request.get_header_value(kExpect) == "100-continue";
      request.headers.erase(kExpect);
    });
  }

  bool expects_continue() const { return expects_continue_; }

 private:
  static constexpr char kExpect[] = "Expect";

  // Newer versions of the library need both ends' addresses, which are unused here.
  template <typename Setup>
  void Process(HeadStream* stream, const Setup& setup) {
    constexpr bool kClose = true;
    bool closed = false;
    if constexpr (requires { process_request(*stream, kClose, closed, setup); }) {
      process_request(*stream, kClose, closed, setup);
    } else {
      process_request(*stream, "", 0, "", 0, kClose, closed, setup);
    }
  }

  // The library's request while it is processed.
  httplib::Request* request_ = nullptr;
  bool expects_continue_ = false;
};

// One request and its answer.
class Answering {
 public:
  using AskHandler = std::function<HttpResponse(const HttpRequest&)>;

  Answering(ReceivedRequest received, const std::string& client, int64_t max_body_bytes,
            const AskHandler& handler)
      : received_(std::move(received)),
        client_(client),
        max_body_bytes_(max_body_bytes),
        handler_(handler) {}

  Exchange Serve() {
    HeadStream stream(received_.head);
    Library library([this](auto* request, auto* to) { Answer(request, to); },
                    [this](auto* to) { return Explain(to); });
    library.Process(&stream);
    exchange_.answer = std::move(stream.written());
    // The library has no answer to a first line without an end; newer versions want CRLF there.
    if (exchange_.answer.empty() && !received_.head.empty()) {
      const int status = too_long() ? 414 : 400;
      exchange_.answer = UnaskedAnswer(JsonError(status, ReasonFor(status)));
    }
    return std::move(exchange_);
  }

 private:
  bool too_long() const { return received_.head.size() >= kMaxHeadBytes; }

  void Answer(httplib::Request* request, httplib::Response* to) {
    BodyFraming ignored;
    to->status = CheckHead(*request, max_body_bytes_, &ignored);
    if (to->status == 405) {
      to->set_header("Allow", max_body_bytes_ > 0 ? "GET, HEAD, POST" : "GET, HEAD");
    }
    if (to->status == 200) to->status = received_.body_status;
    if (to->status != 200) return;
    std::optional<HttpTarget> target = ParseTarget(request->target);
    if (!target.has_value()) {
      to->status = 400;
      return;
    }
    HttpRequest asked;
    asked.method = request->method;
    asked.path = std::move(target->path);
    asked.query = std::move(target->query);
    asked.headers = HeadersOf(*request);
    asked.body = std::move(received_.body);
    asked.client = client_;
    Give(Ask(asked), request, to);
  }

  HttpResponse Ask(const HttpRequest& asked) const {
    try {
      return handler_(asked);
    } catch (const std::exception& error) {
      LogError("a request for ", asked.path, " has failed: ", error.what());
      return JsonError(500, ReasonFor(500));
    }
  }

  void Give(HttpResponse response, httplib::Request* request, httplib::Response* to) {
    handled_ = true;
    to->status = response.status;
    for (const auto& [name, value] : response.headers) to->set_header(name, value);
    if (response.events == nullptr) {
      ChooseCoding(response, request);
      to->set_content(std::move(response.body), response.content_type);
      return;
    }
    // Buffering proxies would hold events back.
    to->set_header("X-Accel-Buffering", "no");
    if (request->method == "HEAD") {
      to->set_header("Content-Type", kEventStream);
      return;
    }
    exchange_.events = std::move(response.events);
    to->set_content_provider(kEventStream, [](size_t, httplib::DataSink& sink) {
      sink.done();
      return true;
    });
  }

  // Only gzip is used of the library's codings: its Brotli takes a second for a megabyte.
  static void ChooseCoding(const HttpResponse& response, httplib::Request* request) {
    const bool gzip = absl::StrContains(request->get_header_value("Accept-Encoding"), "gzip") &&
                      !response.HasHeader("Content-Encoding");
    request->headers.erase("Accept-Encoding");
    if (gzip) request->set_header("Accept-Encoding", "gzip");
  }

  bool Explain(httplib::Response* to) const {
    if (handled_) return false;
    if (to->status == 400 && too_long()) to->status = 431;
    to->set_content(JsonError(to->status, ReasonFor(to->status)).body, kJson);
    return true;
  }

  ReceivedRequest received_;
  const std::string& client_;
  const int64_t max_body_bytes_;
  const AskHandler& handler_;
  // True: the answer is the handler's.
  bool handled_ = false;
  Exchange exchange_;
};

const char* PhraseFor(int status) {
  switch (status) {
    case 414:
      return "URI Too Long";
    case 429:
      return "Too Many Requests";
    default:
      return "Bad Request";
  }
}

}  // namespace

RequestHead ReadHead(absl::string_view head, int64_t max_body_bytes) {
  RequestHead read;
  try {
    HeadStream stream(head);
    Library library(
        [&](auto* request, auto*) {
          read.status = CheckHead(*request, max_body_bytes, &read.framing);
        },
        [](auto*) { return false; });
    library.Process(&stream);
    read.expects_continue = library.expects_continue();
  } catch (const std::exception& error) {
    LogError("a request's head cannot be read: ", error.what());
    read.status = 500;
  }
  return read;
}

Exchange ServeRequest(ReceivedRequest request, const std::string& client, int64_t max_body_bytes,
                      const std::function<HttpResponse(const HttpRequest&)>& handler) {
  // The library and the standard library throw; that must not end the process.
  try {
    return Answering(std::move(request), client, max_body_bytes, handler).Serve();
  } catch (const std::exception& error) {
    LogError("a request of ", client, " has failed: ", error.what());
    return {};
  }
}

std::string UnaskedAnswer(const HttpResponse& response) {
  std::string answer =
      absl::StrCat("HTTP/1.1 ", response.status, " ", PhraseFor(response.status), "\r\n");
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&answer, name, ": ", value, "\r\n");
  }
  absl::StrAppend(&answer, "Connection: close\r\nContent-Type: ", response.content_type,
                  "\r\nContent-Length: ", response.body.size(), "\r\n\r\n", response.body);
  return answer;
}

}  // namespace keelson
