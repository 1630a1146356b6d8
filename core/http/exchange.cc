#include "core/http/exchange.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/http/body.h"

namespace keelson {
namespace {

constexpr char kEventStream[] = "text/event-stream";

// The stream from which the library reads the request's head and to which it writes the answer.
class HeadStream : public httplib::Stream {
 public:
  explicit HeadStream(HttpStream* stream) : stream_(stream) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }

  ssize_t read(char* out, size_t size) override {
    const int64_t left = kMaxHeadBytes - received_;
    if (left <= 0) return -1;
    const size_t count = stream_.Read(out, std::min<size_t>(size, left));
    received_ += static_cast<int64_t>(count);
    has_line_end_ = has_line_end_ || std::memchr(out, '\n', count) != nullptr;
    return count > 0 ? static_cast<ssize_t>(count) : -1;
  }

  ssize_t write(const char* bytes, size_t size) override {
    written_ = true;
    if (restart_with_answer_) stream_.RestartTimeout();
    restart_with_answer_ = false;
    return stream_.Write({bytes, size}) ? static_cast<ssize_t>(size) : -1;
  }

  // These are unused; the library only copies them into the request.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {}
  void get_local_ip_and_port(std::string& ip, int& port) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  // The head has been read. The client's timeout starts again for the body, and for the answer: the
  // time of handling the request and compressing the answer does not count.
  void EndHead() {
    stream_.RestartTimeout();
    restart_with_answer_ = true;
  }

  // The stream of the body, which follows the head.
  HttpStream* body() { return &stream_; }
  bool too_long() const { return received_ >= kMaxHeadBytes; }
  bool has_line_end() const { return has_line_end_; }
  bool written() const { return written_; }

 private:
  BufferedStream stream_;
  int64_t received_ = 0;
  bool has_line_end_ = false;
  bool written_ = false;
  bool restart_with_answer_ = false;
};

const char* ReasonFor(int status) {
  switch (status) {
    case 405:
      return "this method is not allowed here";
    case 413:
      return "the request's body is too long";
    case 414:
      return "the request's target is too long";
    case 417:
      return "the expectation cannot be met";
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

// The library's parsing and writing for one connection. Its sockets, threads, routing and reading
// of bodies are not used.
class Library : private httplib::Server {
 public:
  using AskHandler = std::function<HttpResponse(const HttpRequest&)>;

  Library(HttpStream* stream, const std::string& client, int64_t max_body_bytes,
          const AskHandler& handler)
      : stream_(stream), client_(client), max_body_bytes_(max_body_bytes), handler_(handler) {
    set_expect_100_continue_handler([this](const httplib::Request& request, httplib::Response& to) {
      const int status = CheckHead(request, &to);
      if (status == 200) return 100;
      to.status = status;
      return status;
    });
    // Before the library looks for a route or reads a body.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& to) {
      Answer(request, &to);
      return HandlerResponse::Handled;
    });
    set_error_handler(HandlerWithResponse([this](const httplib::Request&, httplib::Response& to) {
      return Explain(&to) ? HandlerResponse::Handled : HandlerResponse::Unhandled;
    }));
  }

  Exchange Serve() {
    Process([this](httplib::Request& request) {
      request_ = &request;
      // Answers are complete: the library would otherwise cut them to ranges, whatever their
      // status.
      request.ranges.clear();
    });
    // The library has no answer to a first line without an end; newer versions want CRLF there.
    if (!stream_.written() && stream_.too_long()) {
      RefuseFirstLine("414 URI Too Long", 414);
    } else if (!stream_.written() && stream_.has_line_end()) {
      RefuseFirstLine("400 Bad Request", 400);
    }
    return std::move(exchange_);
  }

 private:
  // Newer versions of the library need both ends' addresses, which are unused here.
  template <typename Setup>
  void Process(const Setup& setup) {
    constexpr bool kClose = true;
    bool closed = false;
    if constexpr (requires { process_request(stream_, kClose, closed, setup); }) {
      process_request(stream_, kClose, closed, setup);
    } else {
      process_request(stream_, "", 0, "", 0, kClose, closed, setup);
    }
  }

  // The status that the request is to be refused with, or 200.
  int CheckHead(const httplib::Request& request, httplib::Response* to) {
    const bool post = request.method == "POST" && max_body_bytes_ > 0;
    if (request.method != "GET" && request.method != "HEAD" && !post) {
      to->set_header("Allow", max_body_bytes_ > 0 ? "GET, HEAD, POST" : "GET, HEAD");
      return 405;
    }
    body_limit_ = post ? max_body_bytes_ : 0;
    const BodyHeaders headers = {HeaderValues(request, "Content-Length"),
                                 HeaderValues(request, "Transfer-Encoding")};
    framing_ = BodyFraming();
    return FrameBody(headers, body_limit_, &framing_);
  }

  void Answer(const httplib::Request& request, httplib::Response* to) {
    HttpRequest asked;
    stream_.EndHead();
    to->status = CheckHead(request, to);
    if (to->status == 200) {
      to->status = ReadBody(framing_, body_limit_, stream_.body(), &asked.body);
    }
    if (to->status != 200) return;
    exchange_.complete = true;
    std::optional<HttpTarget> target = ParseTarget(request.target);
    if (!target.has_value()) {
      to->status = 400;
      return;
    }
    asked.method = request.method;
    asked.path = std::move(target->path);
    asked.query = std::move(target->query);
    asked.headers = HeadersOf(request);
    asked.client = client_;
    Give(asked, Ask(asked), to);
  }

  HttpResponse Ask(const HttpRequest& asked) const {
    try {
      return handler_(asked);
    } catch (const std::exception& error) {
      LogError("a request for ", asked.path, " has failed: ", error.what());
      return JsonError(500, ReasonFor(500));
    }
  }

  void Give(const HttpRequest& asked, HttpResponse response, httplib::Response* to) {
    handled_ = true;
    to->status = response.status;
    for (const auto& [name, value] : response.headers) to->set_header(name, value);
    if (response.events == nullptr) {
      ChooseCoding(response);
      to->set_content(std::move(response.body), response.content_type);
      return;
    }
    // Buffering proxies would hold events back.
    to->set_header("X-Accel-Buffering", "no");
    if (asked.method == "HEAD") {
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
  void ChooseCoding(const HttpResponse& response) {
    const bool gzip = absl::StrContains(request_->get_header_value("Accept-Encoding"), "gzip") &&
                      !response.HasHeader("Content-Encoding");
    request_->headers.erase("Accept-Encoding");
    if (gzip) request_->set_header("Accept-Encoding", "gzip");
  }

  // Writes the reason of a refusal into the body. True: there was one.
  bool Explain(httplib::Response* to) const {
    if (handled_) return false;
    if (to->status == 400 && stream_.too_long()) to->status = 431;
    to->set_content(JsonError(to->status, ReasonFor(to->status)).body, kJson);
    return true;
  }

  void RefuseFirstLine(absl::string_view status_line, int status) {
    const std::string body = JsonError(status, ReasonFor(status)).body;
    stream_.body()->Write(absl::StrCat("HTTP/1.1 ", status_line, "\r\nConnection: close\r\n",
                                       "Content-Type: ", kJson, "\r\nContent-Length: ", body.size(),
                                       "\r\n\r\n", body));
  }

  HeadStream stream_;
  const std::string& client_;
  const int64_t max_body_bytes_;
  const AskHandler& handler_;
  // The library's request while it serves.
  httplib::Request* request_ = nullptr;
  int64_t body_limit_ = 0;
  BodyFraming framing_;
  // True: the answer is the handler's.
  bool handled_ = false;
  Exchange exchange_;
};

}  // namespace

Exchange ServeRequest(HttpStream* stream, const std::string& client, int64_t max_body_bytes,
                      const std::function<HttpResponse(const HttpRequest&)>& handler) {
  // The library and the standard library throw; that must not end the process.
  try {
    return Library(stream, client, max_body_bytes, handler).Serve();
  } catch (const std::exception& error) {
    LogError("a request of ", client, " has failed: ", error.what());
    return {};
  }
}

}  // namespace keelson
