// Holds connections until their clients send something.
#ifndef KEELSON_CORE_HTTP_WAITING_ROOM_H_
#define KEELSON_CORE_HTTP_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/http/sockets.h"

namespace keelson {

// Accepts connections and hands out those that have something to read, so that silent ones, which
// browsers open in advance, cost no thread. A connection that stays silent for `patience` is
// closed; of more than kMaxWaiting, or where the process has no file left, the oldest. Thread-safe.
class WaitingRoom {
 public:
  static constexpr size_t kMaxWaiting = 128;

  WaitingRoom(std::unique_ptr<ListeningSocket> socket, absl::Duration patience);
  // Closes the waiting connections.
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  const ListeningSocket& socket() const { return *socket_; }

  // Waits for a connection whose client has sent something, or has closed it, and returns its
  // socket, which is the caller's; -1: interrupted.
  int Next();

  // Ends all calls of Next, including later ones.
  void Interrupt();

 private:
  struct Silent {
    int fd = -1;
    absl::Duration until;
  };

  // Wakes Next with `id` when `fd` has something to read; clients once only.
  void Watch(int fd, uint64_t id, uint32_t events);
  // Accepts one connection, if there is one.
  void Admit();
  // Takes the socket of a client that has sent something; -1: it was closed meanwhile.
  int Take(uint64_t id);
  // Closes connections that have been silent too long. Returns the milliseconds until the next one
  // is due; -1: none.
  int CloseSilent();
  // Closes the connection that has waited longest. False: none waits.
  bool CloseOldest();
  void CloseFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<ListeningSocket> socket_;
  const absl::Duration patience_;
  const int epoll_fd_;
  const int interrupt_fd_;

  Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_);
  // By id, so the oldest is the first. Socket numbers are reused, so they are no keys.
  std::map<uint64_t, Silent> silent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_WAITING_ROOM_H_
