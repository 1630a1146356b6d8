// An HTTP client for tests of servers on this host.
#ifndef KEELSON_CORE_HTTP_HTTP_TESTING_H_
#define KEELSON_CORE_HTTP_HTTP_TESTING_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// A connection to 127.0.0.1:port. Every wait ends after 20 s.
class HttpConnection {
 public:
  // UNAVAILABLE: no server listens there.
  static absl::StatusOr<HttpConnection> To(int port);
  // Connects from this numeric address of the host, such as 127.0.0.2.
  static absl::StatusOr<HttpConnection> From(const std::string& address, int port);
  // Connects with the smallest receive buffer, so that the client takes little at a time.
  static absl::StatusOr<HttpConnection> SlowlyTo(int port);
  HttpConnection(HttpConnection&& other) noexcept;
  ~HttpConnection();

  // False: the server has closed the connection, and nothing is left to read. Does not wait.
  bool open() const;
  // Whether the server has sent something that is left to read, or has closed the connection. Waits
  // for that for 10 ms.
  bool HasNews() const;
  // Returns the next bytes, at most `size`; empty: the server has closed the connection, or 20 s
  // are over.
  std::string Receive(size_t size) const;
  void Send(absl::string_view bytes) const;
  // Returns all bytes until the server closes the connection, or for 20 s.
  std::string ReceiveAll() const;
  // Returns all bytes up to the first `text`, which ends the result; without it: the server has
  // closed the connection, or 20 s are over.
  std::string ReceiveUntil(absl::string_view text) const;

 private:
  explicit HttpConnection(int fd) : fd_(fd) {}
  absl::Status Connect(int port) const;

  int fd_;
};

struct HttpAnswer {
  int status = 0;
  std::string head;  // status line and headers
  std::string body;
};

// UNAVAILABLE: no server listens there. DATA_LOSS: no complete answer.
absl::StatusOr<HttpAnswer> AskHttp(int port, absl::string_view method, absl::string_view target);

// Sends a request with these headers ("Name: value\r\n…") and this body.
absl::StatusOr<HttpAnswer> AskHttp(int port, absl::string_view method, absl::string_view target,
                                   absl::string_view headers, absl::string_view body);

// DATA_LOSS: it is no complete answer.
absl::StatusOr<HttpAnswer> ParseHttpAnswer(absl::string_view bytes);

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_HTTP_TESTING_H_
