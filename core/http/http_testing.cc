#include "core/http/http_testing.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace keelson {

absl::StatusOr<HttpConnection> HttpConnection::To(int port) {
  HttpConnection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  RETURN_IF_ERROR(connection.Connect(port));
  return connection;
}

absl::StatusOr<HttpConnection> HttpConnection::From(const std::string& address, int port) {
  HttpConnection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  if (inet_pton(AF_INET, address.c_str(), &own.sin_addr) != 1 ||
      bind(connection.fd_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("not an address of this host: ", address));
  }
  RETURN_IF_ERROR(connection.Connect(port));
  return connection;
}

absl::StatusOr<HttpConnection> HttpConnection::SlowlyTo(int port) {
  HttpConnection connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int smallest = 1;
  setsockopt(connection.fd_, SOL_SOCKET, SO_RCVBUF, &smallest, sizeof(smallest));
  RETURN_IF_ERROR(connection.Connect(port));
  return connection;
}

absl::Status HttpConnection::Connect(int port) const {
  const timeval patience = {20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("nobody listens on port ", port));
  }
  return absl::OkStatus();
}

HttpConnection::HttpConnection(HttpConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

HttpConnection::~HttpConnection() {
  if (fd_ >= 0) close(fd_);
}

bool HttpConnection::open() const {
  char byte = 0;
  const ssize_t count = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && errno == EAGAIN);
}

bool HttpConnection::HasNews() const {
  pollfd state = {fd_, POLLIN, 0};
  return poll(&state, 1, 10) > 0;
}

std::string HttpConnection::Receive(size_t size) const {
  std::string bytes(size, '\0');
  const ssize_t count = recv(fd_, bytes.data(), size, 0);
  bytes.resize(std::max<ssize_t>(count, 0));
  return bytes;
}

void HttpConnection::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has closed; ReceiveAll tells
    bytes.remove_prefix(sent);
  }
}

std::string HttpConnection::ReceiveAll() const {
  std::string all;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = recv(fd_, buffer, sizeof(buffer), 0)) > 0) {
    all.append(buffer, count);
  }
  return all;
}

std::string HttpConnection::ReceiveUntil(absl::string_view text) const {
  std::string all;
  char byte = 0;
  while (!absl::EndsWith(all, text) && recv(fd_, &byte, 1, 0) == 1) all += byte;
  return all;
}

absl::StatusOr<HttpAnswer> AskHttp(int port, absl::string_view method, absl::string_view target) {
  return AskHttp(port, method, target, "", "");
}

absl::StatusOr<HttpAnswer> AskHttp(int port, absl::string_view method, absl::string_view target,
                                   absl::string_view headers, absl::string_view body) {
  ASSIGN_OR_RETURN(const HttpConnection connection, HttpConnection::To(port));
  std::string length;
  if (!body.empty()) length = absl::StrCat("Content-Length: ", body.size(), "\r\n");
  connection.Send(absl::StrCat(method, " ", target, " HTTP/1.1\r\nHost: localhost\r\n", headers,
                               length, "\r\n", body));
  return ParseHttpAnswer(connection.ReceiveAll());
}

absl::StatusOr<HttpAnswer> ParseHttpAnswer(absl::string_view bytes) {
  HttpAnswer answer;
  const size_t head_end = bytes.find("\r\n\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(bytes, absl::MaxSplits(' ', 2));
  if (head_end == absl::string_view::npos || words.size() < 2 ||
      !absl::SimpleAtoi(words[1], &answer.status)) {
    return absl::DataLossError(absl::StrCat("no answer from HTTP: ", bytes));
  }
  answer.head = std::string(bytes.substr(0, head_end));
  answer.body = std::string(bytes.substr(head_end + 4));
  return answer;
}

}  // namespace keelson
