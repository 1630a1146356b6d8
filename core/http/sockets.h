// The sockets of a server: its listening socket, and those of its clients.
#ifndef KEELSON_CORE_HTTP_SOCKETS_H_
#define KEELSON_CORE_HTTP_SOCKETS_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"

namespace keelson {

// Whether `address` is a numeric address of IPv4 or IPv6 on which a server can listen.
bool IsNumericAddress(const std::string& address);

// Thread-safe.
class ListeningSocket {
 public:
  // `address`: numeric; empty: all of the host's, of both families where it has IPv6. `port` 0: any
  // free one. INVALID_ARGUMENT: the system's reason why they cannot be had.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Open(const std::string& address,
                                                               int port);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int fd() const { return fd_; }
  int port() const { return port_; }

  // Returns a client's socket, which the caller owns; -1: no client waits, or errno says why. Does
  // not wait.
  int Accept() const;

 private:
  explicit ListeningSocket(int fd);

  const int fd_;
  const int port_;
};

// The sockets of clients that are served, so that all can be cut off. Thread-safe.
class ClientSockets {
 public:
  // False: all have been cut off, including this one; the caller must still close it.
  bool Add(int fd);
  // Closes a socket that was added.
  void Close(int fd);
  // Cuts off all sockets, and those added later. Their owners notice, and close them.
  void CutOff();
  bool cut_off() const;

 private:
  mutable Mutex mu_;
  bool cut_off_ ABSL_GUARDED_BY(mu_) = false;
  std::set<int> sockets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_SOCKETS_H_
