// Holds connections while they wait for their clients.
#ifndef KEELSON_CORE_HTTP_WAITING_ROOM_H_
#define KEELSON_CORE_HTTP_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/http/connection.h"
#include "core/http/sockets.h"

namespace keelson {

// Accepts connections, and hands out those whose client has sent or taken something or is overdue,
// so that slow clients and silent ones, which browsers open in advance, cost no thread.
// Thread-safe.
//
// When more than kMaxWaiting connections wait, or the process has no file left, the client that has
// most loses its oldest. A client may have Options::max_per_client connections whose requests have
// begun and are not whole, and as many whose answers are not yet taken; one more closes the oldest
// of its kind.
class WaitingRoom {
 public:
  static constexpr size_t kMaxWaiting = 128;

  struct Options {
    ClientConnection::Limits limits;
    size_t max_per_client = 4;
    const Clock* clock = nullptr;  // outlives the room
  };

  WaitingRoom(std::unique_ptr<ListeningSocket> socket, const Options& options);
  ~WaitingRoom();
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  const ListeningSocket& socket() const { return *socket_; }

  // Waits for a connection that can go on (ClientConnection::Advance); null: interrupted.
  std::unique_ptr<ClientConnection> Next();

  // Takes back a connection that waits again.
  void Return(std::unique_ptr<ClientConnection> connection);

  // Ends all calls of Next, including later ones.
  void Interrupt();

 private:
  // By id, so the oldest is the first. Socket numbers are reused, so they are no keys.
  using Connections = std::map<uint64_t, std::unique_ptr<ClientConnection>>;

  void Watch(int fd, uint64_t id, uint32_t events) const;
  // Accepts one connection, if there is one.
  void Admit();
  // Keeps the connection until its socket is ready, once, or it is overdue.
  void Keep(int epoll_operation, std::unique_ptr<ClientConnection> connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null: it was closed meanwhile.
  std::unique_ptr<ClientConnection> Take(uint64_t id);
  // Null: none is overdue.
  std::unique_ptr<ClientConnection> TakeOverdue();
  // Closes the oldest connection that is under way as `newest` is, of the same client, where there
  // are too many.
  void BoundClientOf(const ClientConnection& newest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Closes the oldest connection of the client that has most. False: none waits.
  bool CloseOne();
  void CloseOneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Looks for overdue connections from time to time while any wait.
  void Tick();
  void SetTicking(bool ticking) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<ListeningSocket> socket_;
  const Options options_;
  const int epoll_fd_;
  const int interrupt_fd_;
  const int timer_fd_;

  Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_);
  bool ticking_ ABSL_GUARDED_BY(mu_) = false;
  Connections waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_HTTP_WAITING_ROOM_H_
