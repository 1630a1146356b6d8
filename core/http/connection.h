// A client's connection: reads one request and writes its answer, without waiting.
#ifndef KEELSON_CORE_HTTP_CONNECTION_H_
#define KEELSON_CORE_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/http/exchange.h"
#include "core/http/request_reader.h"
#include "core/http/transfer_deadline.h"

namespace keelson {

// Goes on when its socket is ready or its deadline has passed. For one thread at a time.
class ClientConnection {
 public:
  // As HttpServer::Options has them.
  struct Limits {
    absl::Duration connection_timeout;
    absl::Duration head_timeout;
    int64_t max_body_bytes = 0;
  };

  // What is to be done after Advance.
  enum class Next {
    kWait,    // for the client; then Advance
    kAdmit,   // the request's first bytes have come: Advance, or refuse it with Send
    kAnswer,  // the request has come, or all that will: TakeRequest, then Send
    kClose,
  };

  // Owns the socket, which does not block. `id`: the owner's. `clock` outlives this.
  ClientConnection(int fd, uint64_t id, const Limits& limits, const Clock* clock);
  ~ClientConnection();
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  int fd() const { return fd_; }
  uint64_t id() const { return id_; }
  // The client's numeric address, and what counts as one client (ClientOf).
  const std::string& address() const { return address_; }
  const std::string& client() const { return client_; }
  // Whether a byte of the request has come.
  bool begun() const { return begun_; }
  // Whether it waits until the client takes bytes, rather than sends some.
  bool sends() const { return part_ == Part::kSending; }
  bool overdue() const { return deadline_.TimeLeft() <= absl::ZeroDuration(); }

  // Reads or writes as much as there is, and gives up a client that is overdue.
  Next Advance();
  ReceivedRequest TakeRequest() { return request_.Take(); }
  // Sends the answer with the next calls of Advance.
  void Send(std::string answer);
  // Gives the socket to the caller. Nothing else may be called then.
  int ReleaseSocket();

 private:
  enum class Part { kReceiving, kSending, kDraining };

  Next Receive();
  void Take(const char* bytes, size_t size);
  Next SendMore();
  Next Drain();

  int fd_;  // -1: released
  const uint64_t id_;
  const Limits limits_;
  const std::string address_;
  const std::string client_;
  TransferDeadline deadline_;
  Part part_ = Part::kReceiving;
  bool begun_ = false;
  RequestReader request_;
  std::string answer_;
  size_t sent_ = 0;  // of the answer
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_CONNECTION_H_
