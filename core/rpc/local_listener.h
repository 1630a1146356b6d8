// Accepts a server's connections of a local socket and hands them over.
#ifndef KEELSON_CORE_RPC_LOCAL_LISTENER_H_
#define KEELSON_CORE_RPC_LOCAL_LISTENER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/thread.h"
#include "core/rpc/local_socket.h"

namespace keelson {

// Where the connections are for gRPC: gRPC's own listener would leave the connections the send
// buffer of the system's default (local_socket.h). Thread-compatible.
class LocalListener {
 public:
  // Takes a connected socket over, which does not block.
  using HandOver = std::function<void(int fd)>;

  // Listens on a LocalSocket, or another abstract one. INVALID_ARGUMENT: it is taken, or its name
  // is too long; the text is the system's reason.
  static absl::StatusOr<std::unique_ptr<LocalListener>> Listen(
      const std::string& address, LocalSocketKind kind = LocalSocketKind::kStream);
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

  // Accepts from now on, on a thread of its own.
  void Start(HandOver hand_over);
  // Accepts no more. The connections stay.
  void Stop();

 private:
  LocalListener(int listener, int stop) : listener_(listener), stop_(stop) {}

  void Run();
  void Accept();

  const int listener_;
  const int stop_;
  HandOver hand_over_;
  Thread thread_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_LOCAL_LISTENER_H_
