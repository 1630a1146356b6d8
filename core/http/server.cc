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
#include "core/http/connection.h"
#include "core/http/event_streams.h"
#include "core/http/exchange.h"
#include "core/http/host_names.h"
#include "core/http/rate_limiter.h"
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
        connections_(std::move(socket), RoomOptions(options)),
        limiter_(options.requests_per_second,
                 std::max(kSmallestBurst, 2 * options.requests_per_second), options.clock),
        streams_({options.max_streams, options.streams_per_client, options.ping_interval}) {
    for (int i = 0; i < options.threads; ++i) {
      threads_.push_back(ThreadWithoutSignals([this] {
        while (std::unique_ptr<ClientConnection> connection = connections_.Next()) {
          Serve(std::move(connection));
        }
      }));
    }
  }

  ~Listener() {
    connections_.Interrupt();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const { return connections_.socket().port(); }

 private:
  static WaitingRoom::Options RoomOptions(const Options& options) {
    WaitingRoom::Options room;
    room.limits = {options.connection_timeout, options.head_timeout, options.max_body_bytes};
    room.max_per_client = static_cast<size_t>(options.connections_per_client);
    room.clock = options.clock;
    return room;
  }

  // Goes on with the connection until it waits for its client, or ends.
  void Serve(std::unique_ptr<ClientConnection> connection) {
    while (connection != nullptr) {
      switch (connection->Advance()) {
        case ClientConnection::Next::kWait:
          connections_.Return(std::move(connection));
          break;
        case ClientConnection::Next::kAdmit:
          BoundRate(connection.get());
          break;
        case ClientConnection::Next::kAnswer:
          if (Answer(connection.get())) break;
          [[fallthrough]];
        case ClientConnection::Next::kClose:
          connection = nullptr;
      }
    }
  }

  // The request counts when it begins, so that those that do not end count too.
  void BoundRate(ClientConnection* connection) {
    if (options_.requests_per_second <= 0) return;
    const absl::Duration wait = limiter_.Take(connection->client());
    if (wait > absl::ZeroDuration()) connection->Send(UnaskedAnswer(TooManyRequests(wait)));
  }

  // False: the answer is a stream of events, and has the socket.
  bool Answer(ClientConnection* connection) {
    bool reserved = false;
    const std::string& client = connection->client();
    Exchange exchange =
        ServeRequest(connection->TakeRequest(), connection->address(), options_.max_body_bytes,
                     [&](const HttpRequest& request) { return Ask(request, client, &reserved); });
    if (exchange.events == nullptr) {
      if (reserved) streams_.Release(client);
      connection->Send(std::move(exchange.answer));
      return true;
    }
    streams_.Start({connection->ReleaseSocket(), client, std::move(exchange.answer),
                    std::move(exchange.events)});
    return false;
  }

  // Takes a place among the streams where the answer is one.
  HttpResponse Ask(const HttpRequest& request, const std::string& client, bool* reserved) {
    if (request.headers.contains("host") && !AdmitsHost(request.Header("host"), options_.hosts)) {
      return JsonError(403, absl::StrCat("Host: expected localhost, a numeric address, this host's "
                                         "name or one of ",
                                         options_.hosts_flag, ", found ", request.Header("host")));
    }
    HttpResponse response = handler_(request);
    if (response.events == nullptr || request.method == "HEAD") return response;
    const absl::Status place = streams_.Reserve(client);
    *reserved = place.ok();
    return place.ok() ? response : JsonError(503, place.message());
  }

  const Options options_;
  const Handler handler_;
  WaitingRoom connections_;
  RateLimiter limiter_;
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
