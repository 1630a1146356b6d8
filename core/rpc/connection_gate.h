// Accepts a server's TCP connections, bounds them, and hands them to gRPC.
#ifndef KEELSON_CORE_RPC_CONNECTION_GATE_H_
#define KEELSON_CORE_RPC_CONNECTION_GATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log_limit.h"
#include "core/base/mutex.h"
#include "core/rpc/hand_over_queue.h"

namespace keelson {

// A connection is unknown until a caller on it has shown that it belongs to the job. Those who
// belong find room whoever else comes: of too many unknown connections the address with the most
// loses its oldest. gRPC gets a connection when its peer has sent something and the queue has room
// for it (HandOverQueue). Thread-safe.
class ConnectionGate {
 public:
  struct Limits {
    // Of both kinds. Known ones are never closed; beyond this a new one is.
    size_t connections = 4096;
    size_t unknown = 1024;
    HandOverQueue::Limits hand_over = {};
    // What an unknown connection may send, besides so much each second. It is closed when it has
    // sent more for `patience`, within which a busy server knows a member by its first call: gRPC
    // keeps a message that is not whole, however long it says it will be.
    int64_t unknown_bytes = 512 << 10;
    int64_t unknown_bytes_per_second = 16 << 10;
    absl::Duration patience = absl::Seconds(1);
    // Without patience: what one may send, far more than the calls of a member that are under way
    // before the server has looked at the first; and all of them together, of which the one that
    // has sent most is closed.
    int64_t most_unknown_bytes = 4 << 20;
    int64_t all_unknown_bytes = 64 << 20;
    // How long other connections of its address wait then.
    absl::Duration delay = absl::Seconds(1);

    // The defaults, or less where the process may not open as many files. Raises that limit as far
    // as it may.
    static Limits OfProcess();
  };
  // Takes a connected socket over.
  using HandOver = std::function<void(int fd)>;

  // Listens on "host:port"; port 0 is any free one, the same for all addresses of the host.
  // INVALID_ARGUMENT: the address cannot be used; the text is the system's reason.
  static absl::StatusOr<std::unique_ptr<ConnectionGate>> Listen(absl::string_view address,
                                                                const Limits& limits);
  ~ConnectionGate();
  ConnectionGate(const ConnectionGate&) = delete;
  ConnectionGate& operator=(const ConnectionGate&) = delete;

  int port() const { return port_; }

  // Accepts from now on, on a thread of its own.
  void Start(HandOver hand_over);
  // Accepts no more. The connections stay.
  void Stop();

  // Whether Know has anything to do, for callers to whom a peer's name costs something.
  bool has_unknown() const { return num_unknown_.load(std::memory_order_relaxed) > 0; }
  // The connection from `peer`, gRPC's name of its address ("ipv4:10.0.0.7:40210"), is known from
  // now on. No effect for other names, such as those of local sockets.
  void Know(const std::string& peer);

  struct Counts {
    size_t connections = 0;
    size_t unknown = 0;
    int64_t closed = 0;  // because there were too many, or they sent too much; since the start
  };
  Counts counts() const;

 private:
  struct Connection;
  using Connections = std::map<uint64_t, std::unique_ptr<Connection>>;

  ConnectionGate(std::vector<int> listeners, int port, const Limits& limits);

  void Run();
  void Watch(int fd, uint64_t id, uint32_t events) const;
  void OnEvents(uint64_t id, uint32_t events) ABSL_LOCKS_EXCLUDED(mu_);
  int WaitMilliseconds() const ABSL_LOCKS_EXCLUDED(mu_);
  // False: nobody waits, or there is no room.
  bool AcceptFrom(int listener);
  // Closes it when it is one too many.
  void Keep(std::unique_ptr<Connection> connection) ABSL_LOCKS_EXCLUDED(mu_);
  // Gives gRPC those connections for which the queue has room.
  void HandOverWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  // The socket of the next one; -1: there is none.
  int TakeWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  void NoLongerUnknown(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close(uint64_t id, absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Closes the oldest unknown connection of the address with the most; false: there is none.
  bool CloseOneUnknown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool bounds_bytes() const { return limits_.unknown_bytes != std::numeric_limits<int64_t>::max(); }
  // Reads what unknown connections have sent, where that is due.
  void CountBytes(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Closes unknown connections that have sent too much.
  void CloseTalkative() ABSL_LOCKS_EXCLUDED(mu_);

  const std::vector<int> listeners_;
  const int port_;
  const Limits limits_;
  const int epoll_fd_;
  const int stop_fd_;
  const int room_fd_;  // there may be room for a connection that waits
  HandOver hand_over_;
  LogLimit closings_{Clock::Real()};
  absl::Time next_look_ = absl::InfinitePast();  // of CloseTalkative
  std::thread thread_;

  std::atomic<size_t> num_unknown_{0};
  // Members' calls look here, and so hold it, as the gate's thread does, for one look only: that
  // thread may be kept waiting for long, with mu_ held.
  Mutex unknown_mu_ ABSL_ACQUIRED_AFTER(mu_);
  std::map<std::string, uint64_t> unknown_by_peer_ ABSL_GUARDED_BY(unknown_mu_);
  mutable Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_);
  Connections connections_ ABSL_GUARDED_BY(mu_);  // by id, so the oldest is the first
  std::map<uint64_t, Connection*> unknown_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, size_t> unknown_of_ ABSL_GUARDED_BY(mu_);  // the number by address
  HandOverQueue queue_ ABSL_GUARDED_BY(mu_);
  int64_t closed_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_CONNECTION_GATE_H_
