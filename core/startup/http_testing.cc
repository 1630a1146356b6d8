#include "core/startup/http_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/metrics/text_format.h"
#include "core/startup/metrics_endpoint.h"

namespace keelson {

absl::StatusOr<HttpConnection> HttpConnection::To(int port) {
  HttpConnection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience = {20, 0};
  setsockopt(connection.fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(connection.fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("nobody listens on port ", port));
  }
  return connection;
}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

HttpConnection::~HttpConnection() {
  if (fd_ >= 0) close(fd_);
}

void HttpConnection::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has closed; ReceiveAll tells
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string HttpConnection::ReceiveAll() const {
  std::string all;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = recv(fd_, buffer, sizeof(buffer), 0)) > 0) {
    all.append(buffer, static_cast<size_t>(count));
  }
  return all;
}

absl::StatusOr<HttpResponse> HttpRequest(int port, absl::string_view method,
                                         absl::string_view path) {
  ASSIGN_OR_RETURN(const HttpConnection connection, HttpConnection::To(port));
  connection.Send(absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const std::string all = connection.ReceiveAll();
  HttpResponse response;
  const size_t head_end = all.find("\r\n\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(all, absl::MaxSplits(' ', 2));
  if (head_end == std::string::npos || words.size() < 2 ||
      !absl::SimpleAtoi(words[1], &response.status)) {
    return absl::DataLossError(absl::StrCat("no answer from HTTP: ", all));
  }
  response.head = all.substr(0, head_end);
  response.body = all.substr(head_end + 4);
  return response;
}

absl::StatusOr<Exposition> Scrape(const Telemetry& telemetry) {
  ASSIGN_OR_RETURN(const std::unique_ptr<HttpEndpoint> endpoint,
                   StartMetricsEndpoint(0, &telemetry));
  ASSIGN_OR_RETURN(const HttpResponse response, HttpRequest(endpoint->port(), "GET", "/metrics"));
  if (response.status != 200 || !absl::StrContains(response.head, kTextFormatContentType)) {
    return absl::InternalError(response.head);
  }
  return ParseExposition(response.body);
}

}  // namespace keelson
