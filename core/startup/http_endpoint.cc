#include "core/startup/http_endpoint.h"

#include <httplib.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr int64_t kMaxRequestBytes = 16 * 1024;
// Of both address families, or of IPv4 where the host has no IPv6.
constexpr const char* kAnyAddress[] = {"::", "0.0.0.0"};

// A connection's bytes, with one deadline for all of them. The library's own stream has a timeout
// for each read, which a client that sends a byte now and then never meets.
class ConnectionStream : public httplib::Stream {
 public:
  ConnectionStream(int fd, absl::Duration timeout)
      : fd_(fd), deadline_(Clock::Real()->Monotonic() + timeout) {}

  bool is_readable() const override { return begin_ < end_ || WaitFor(POLLIN); }
  bool is_writable() const override { return WaitFor(POLLOUT); }

  ssize_t read(char* out, size_t size) override {
    if (begin_ == end_ && !Fill()) return -1;
    const size_t count = std::min(size, static_cast<size_t>(end_ - begin_));
    std::copy_n(buffer_ + begin_, count, out);
    begin_ += static_cast<int64_t>(count);
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* bytes, size_t size) override {
    size_t written = 0;
    while (written < size) {
      const ssize_t count = send(fd_, bytes + written, size - written, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) {
        written += static_cast<size_t>(count);
      } else if (errno != EAGAIN || !WaitFor(POLLOUT)) {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }

  // Nobody asks; the library only copies them into the request.
  void get_remote_ip_and_port(std::string& ip, int& port) const override {}
  void get_local_ip_and_port(std::string& ip, int& port) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

 private:
  // False: the deadline has passed.
  bool WaitFor(int16_t event) const {
    const absl::Duration left = deadline_ - Clock::Real()->Monotonic();
    pollfd state = {fd_, event, 0};
    return left > absl::ZeroDuration() &&
           poll(&state, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) > 0;
  }

  // False: the client has sent nothing more, or too much.
  bool Fill() {
    if (received_ >= kMaxRequestBytes || !WaitFor(POLLIN)) return false;
    const ssize_t count = recv(fd_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
    if (count <= 0) return false;
    begin_ = 0;
    end_ = count;
    received_ += count;
    return true;
  }

  const int fd_;
  const absl::Duration deadline_;
  char buffer_[4096];
  int64_t begin_ = 0;  // of what was received and not read yet
  int64_t end_ = 0;
  int64_t received_ = 0;
};

// Serves each connection on the thread that accepts them.
class InlineQueue : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> serve) override { serve(); }
  void shutdown() override {}
};

// Starts a thread that no signal is delivered to.
template <typename Body>
std::thread ThreadWithoutSignals(Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

class HttpEndpoint::Server : private httplib::Server {
 public:
  Server(const HttpEndpoint::Options& options, HttpEndpoint::Handler handler)
      : options_(options), handler_(std::move(handler)) {
    set_socket_options([this](int fd) { Prepare(fd); });
    new_task_queue = [] { return new InlineQueue; };
    // Before the library looks for a route or reads a body.
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Answer(request, &response);
      return HandlerResponse::Handled;
    });
  }

  ~Server() override {
    if (!thread_.joinable()) return;
    Interrupt();
    thread_.join();
  }

  absl::Status Listen() {
    const int wanted = options_.port;
    for (const char* const address : kAnyAddress) {
      errno = 0;
      port_ =
          wanted == 0 ? bind_to_any_port(address) : (bind_to_port(address, wanted) ? wanted : -1);
      if (port_ >= 0) break;
      if (errno == EADDRINUSE || errno == EACCES) break;
    }
    if (port_ < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(options_.flag, ": cannot listen on port ", wanted, ": ", strerror(errno)));
    }
    thread_ = ThreadWithoutSignals([this] { ServeConnections(); });
    return absl::OkStatus();
  }

  int port() const { return port_; }

 private:
  // Called for each socket that the library tries to listen with; the last one does.
  void Prepare(int fd) {
    {
      MutexLock lock(&mu_);
      listening_ = fd;
    }
    // But not SO_REUSEPORT, the library's default: two processes would share the port.
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }

  // The library throws, the standard library too; the process must not end for it.
  void ServeConnections() {
    std::string why;
    try {
      listen_after_bind();
      why = strerror(errno);
    } catch (const std::exception& error) {
      why = error.what();
    }
    MutexLock lock(&mu_);
    if (!interrupted_) LogError("the endpoint of ", options_.flag, " has failed: ", why);
    listening_ = -1;
  }

  bool process_and_close_socket(socket_t fd) override {
    if (Begin(fd)) {
      try {
        ConnectionStream stream(fd, options_.connection_timeout);
        bool closed = false;
        process_request(stream, /*close_connection=*/true, closed, nullptr);
      } catch (const std::exception& error) {
        LogError("a request to the endpoint of ", options_.flag, " has failed: ", error.what());
      }
    }
    End(fd);
    return true;
  }

  // False: the endpoint is ending.
  bool Begin(int fd) {
    MutexLock lock(&mu_);
    serving_ = fd;
    return !interrupted_;
  }

  void End(int fd) {
    MutexLock lock(&mu_);
    serving_ = -1;
    close(fd);
  }

  // Ends the thread's accept, upon which the library closes the socket there. Its own stop() closes
  // it here, under the feet of that thread.
  void Interrupt() {
    MutexLock lock(&mu_);
    interrupted_ = true;
    for (const int fd : {listening_, serving_}) {
      if (fd >= 0) shutdown(fd, SHUT_RDWR);
    }
  }

  void Answer(const httplib::Request& request, httplib::Response* response) const {
    if (request.method != "GET" && request.method != "HEAD") {
      response->status = 405;
      response->set_header("Allow", "GET, HEAD");
      return;
    }
    HttpAnswer answer = handler_(request.path);
    response->status = answer.status;
    for (const auto& [name, value] : answer.headers) response->set_header(name, value);
    response->set_content(std::move(answer.body), answer.content_type);
  }

  const HttpEndpoint::Options options_;
  const HttpEndpoint::Handler handler_;
  int port_ = -1;
  std::thread thread_;

  Mutex mu_;
  bool interrupted_ ABSL_GUARDED_BY(mu_) = false;
  // Sockets; -1: none.
  int listening_ ABSL_GUARDED_BY(mu_) = -1;
  int serving_ ABSL_GUARDED_BY(mu_) = -1;
};

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const Options& options,
                                                                  Handler handler) {
  auto server = std::make_unique<Server>(options, std::move(handler));
  RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<HttpEndpoint>(new HttpEndpoint(std::move(server)));
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server) : server_(std::move(server)) {}

HttpEndpoint::~HttpEndpoint() = default;

int HttpEndpoint::port() const { return server_->port(); }

}  // namespace keelson
