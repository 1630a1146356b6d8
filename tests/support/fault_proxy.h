// A TCP link between two programs of a test that can be made bad: slow, silent, cut.
#ifndef KEELSON_TESTS_SUPPORT_FAULT_PROXY_H_
#define KEELSON_TESTS_SUPPORT_FAULT_PROXY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace keelson {

// How a link behaves. The default is a good one.
struct LinkConditions {
  enum class Flow {
    kForward,
    // Packets are dropped: nothing moves, in either direction, but connections stay, and new ones
    // come about as far as the proxy. What was under way arrives when the flow is kForward again.
    kHold,
    // As kHold, but new connections are reset at once.
    kPartition,
  };
  Flow flow = Flow::kForward;
  // Each byte arrives so much later, in each direction.
  absl::Duration delay = absl::ZeroDuration();
  // The rate of each connection in each direction; 0: unlimited.
  int64_t bytes_per_second = 0;
  // A connection is reset after a random number of bytes, both directions together, whose mean this
  // is (exponential); in the middle of a message, therefore. Counted from when the condition was
  // set or the connection was made. 0: never.
  int64_t mean_bytes_to_reset = 0;
};

// Listens on 127.0.0.1 and connects each caller to a port of 127.0.0.1, the target. A caller whose
// target does not listen is reset. Thread-safe; all input and output is done by a thread of its
// own.
class FaultProxy {
 public:
  // `seed` decides after how many bytes which connection is reset. `listen_port` 0 takes a free
  // one. UNAVAILABLE: the port cannot be had.
  static absl::StatusOr<std::unique_ptr<FaultProxy>> Start(int target_port, uint64_t seed = 1,
                                                           int listen_port = 0);
  ~FaultProxy();

  int port() const { return port_; }
  // "127.0.0.1:port".
  std::string address() const;

  // Hold once they return.
  void Set(const LinkConditions& conditions);
  void Heal() { Set({}); }
  // Resets all connections there are.
  void Reset();
  // Callers that come from now on are connected to this port.
  void LeadTo(int target_port);

  // Since the start: connections of callers, those of them that the proxy has reset on purpose, and
  // bytes that arrived.
  int64_t connections() const;
  int64_t resets() const;
  int64_t forwarded_bytes() const;

 private:
  using Flow = LinkConditions::Flow;

  struct Stream;
  struct Connection;

  FaultProxy(int target_port, uint64_t seed, int listener, int port, int wake);

  // Has the thread do what was asked, and waits for it.
  void Hand(bool reset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The thread's; all but WaitForEvents hold the lock.
  void Run();
  void WaitForEvents() ABSL_LOCKS_EXCLUDED(mu_);
  void TakeOrders() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AcceptCallers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // False: the connection is over, and was closed.
  bool Serve(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool FinishConnecting(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Receive(Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Deliver(Connection* connection, Stream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DrawLifetime(Connection* connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Close(Connection* connection);

  const uint64_t seed_;
  const int listener_;
  const int port_;
  const int wake_;  // an eventfd

  mutable Mutex mu_;
  CondVar obeyed_;
  int target_port_ ABSL_GUARDED_BY(mu_);
  LinkConditions conditions_ ABSL_GUARDED_BY(mu_);
  bool reset_wanted_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  int64_t orders_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t obeyed_orders_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::unique_ptr<Connection>> open_ ABSL_GUARDED_BY(mu_);
  int64_t connections_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t draws_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t resets_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t forwarded_bytes_ ABSL_GUARDED_BY(mu_) = 0;

  std::thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_FAULT_PROXY_H_
