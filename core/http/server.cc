#include "core/http/server.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/thread_without_signals.h"
#include "core/http/client_address.h"
#include "core/http/connection.h"
#include "core/http/event_streams.h"
#include "core/http/exchange.h"
#include "core/http/host_names.h"
#include "core/http/rate_limiter.h"
#include "core/http/request_reader.h"
#include "core/http/sockets.h"
#include "core/http/waiting_room.h"

namespace keelson {
namespace {

constexpr double kSmallestBurst = 20;

HttpResponse TooManyRequests(absl::Duration wait) {
  HttpResponse response = JsonError(429, "too many requests; Retry-After says when");
  const int64_t seconds = static_cast<int64_t>(std::ceil(absl::ToDoubleSeconds(wait)));
  response.headers.emplace_back("Retry-After", absl::StrCat(std::max<int64_t>(seconds, 1)));
  return response;
}

}  // namespace

class HttpServer::Listener {
 public:
  Listener(const Options& options, Handler handler, std::unique_ptr<ListeningSocket> socket)
      : options_(options),
        handler_(std::move(handler)),
        connections_(std::move(socket), options.connection_timeout),
        limiter_(options.requests_per_second,
                 std::max(kSmallestBurst, 2 * options.requests_per_second), options.clock),
        streams_(options.max_streams, options.ping_interval, &clients_) {
    for (int i = 0; i < options.threads; ++i) {
      threads_.push_back(ThreadWithoutSignals([this] { ServeConnections(); }));
    }
  }

  ~Listener() {
    connections_.Interrupt();
    clients_.CutOff();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const { return connections_.socket().port(); }

 private:
  void ServeConnections() {
    for (int fd = connections_.Next(); fd >= 0; fd = connections_.Next()) {
      if (clients_.Add(fd)) {
        Serve(fd);
      } else {
        clients_.Close(fd);
      }
    }
  }

  void Serve(int fd) {
    SocketStream connection(fd, options_.connection_timeout);
    connection.SetTimeout(std::min(options_.head_timeout, options_.connection_timeout));
    RequestReader reader(options_.max_body_bytes);
    ReadRequest(&connection, &reader);
    bool reserved = false;
    Exchange exchange =
        ServeRequest(reader.Take(), PeerAddress(fd), options_.max_body_bytes,
                     [&](const HttpRequest& request) { return Answer(request, &reserved); });
    // The time of handling the request and compressing the answer is not the client's.
    connection.RestartTimeout();
    const bool taken = connection.Write(exchange.answer);
    if (exchange.events != nullptr) {
      streams_.Start(fd, std::move(exchange.events));
      return;
    }
    if (reserved) streams_.Release();
    if (taken && !reader.whole()) connection.Finish();
    clients_.Close(fd);
  }

  static void ReadRequest(SocketStream* connection, RequestReader* reader) {
    char buffer[4096];
    while (!reader->ended()) {
      const size_t count = connection->Read(buffer, sizeof(buffer));
      if (count == 0) return reader->End();
      const bool had_head = reader->has_head();
      reader->Add({buffer, count});
      if (had_head || !reader->has_head()) continue;
      // The client's time starts again for the body.
      connection->RestartTimeout();
      if (reader->awaits_continue()) connection->Write("HTTP/1.1 100 Continue\r\n\r\n");
    }
  }

  // Takes a place among the streams where the answer is one.
  HttpResponse Answer(const HttpRequest& request, bool* reserved) {
    if (options_.requests_per_second > 0) {
      const absl::Duration wait = limiter_.Take(ClientOf(request.client));
      if (wait > absl::ZeroDuration()) return TooManyRequests(wait);
    }
    if (request.headers.contains("host") && !AdmitsHost(request.Header("host"), options_.hosts)) {
      return JsonError(403, absl::StrCat("Host: expected localhost, a numeric address, this host's "
                                         "name or one of ",
                                         options_.hosts_flag, ", found ", request.Header("host")));
    }
    HttpResponse response = handler_(request);
    if (response.events == nullptr || request.method == "HEAD") return response;
    *reserved = streams_.Reserve();
    if (*reserved) return response;
    return JsonError(503, absl::StrCat("there are ", options_.max_streams,
                                       " streams of events already, which is the most"));
  }

  const Options options_;
  const Handler handler_;
  WaitingRoom connections_;
  RateLimiter limiter_;
  ClientSockets clients_;
  EventStreams streams_;
  std::vector<std::thread> threads_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options,
                                                              Handler handler) {
  if (!options.address.empty() && !IsNumericAddress(options.address)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.address_flag, ": expected an address such as 127.0.0.1 or ::, found ",
                     options.address));
  }
  RETURN_IF_ERROR(CheckHostNames(options.hosts_flag, options.hosts));
  absl::StatusOr<std::unique_ptr<ListeningSocket>> socket =
      ListeningSocket::Open(options.address, options.port);
  if (!socket.ok()) {
    const std::string address = options.address.empty() ? "" : absl::StrCat(options.address, ", ");
    return absl::InvalidArgumentError(absl::StrCat(options.flag, ": cannot listen on ", address,
                                                   "port ", options.port, ": ",
                                                   socket.status().message()));
  }
  auto listener = std::make_unique<Listener>(options, std::move(handler), *std::move(socket));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const { return listener_->port(); }

}  // namespace keelson
