// The agent's end of the connection to its script: a local socket that keeps the bounds of
// messages.
#ifndef KEELSON_CORE_SCRIPT_SCRIPT_SOCKET_H_
#define KEELSON_CORE_SCRIPT_SCRIPT_SOCKET_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "core/base/thread.h"
#include "core/script/script_message.h"

namespace keelson {

// Send may be called by any thread, Receive by one. When the script ends, or closes its end, a
// thread of the socket raises `gone`, so that whatever waits for something else ends too.
class ScriptSocket {
 public:
  // Owns `fd`, a connected SOCK_SEQPACKET socket, and closes it. `gone` outlives the socket.
  // INVALID_ARGUMENT: it is no such socket.
  static absl::StatusOr<std::unique_ptr<ScriptSocket>> Create(int fd, StopSignal* gone);
  ~ScriptSocket();
  ScriptSocket(const ScriptSocket&) = delete;
  ScriptSocket& operator=(const ScriptSocket&) = delete;

  // Waits while the script does not read. `fd` >= 0: passes the descriptor along. CANCELLED: the
  // script is gone. UNAVAILABLE: the system refused.
  absl::Status Send(const ScriptMessage& message, int fd = -1);

  // The next message; nullopt: none came within `timeout`. CANCELLED: the script is gone.
  // INVALID_ARGUMENT: what came is no message.
  absl::StatusOr<std::optional<ScriptMessage>> Receive(absl::Duration timeout);

 private:
  ScriptSocket(int fd, int wake, StopSignal* gone);
  void Watch();

  const int fd_;
  const int wake_;  // written to end the watch
  StopSignal* const gone_;
  Mutex send_mu_;
  std::string buffer_;  // of Receive
  Thread watch_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCRIPT_SCRIPT_SOCKET_H_
