// Serves calls through memory (memory_call.h) beside a gRPC server.
#ifndef KEELSON_CORE_RPC_MEMORY_SERVER_H_
#define KEELSON_CORE_RPC_MEMORY_SERVER_H_

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/rpc/access.h"
#include "core/rpc/byte_method.h"
#include "core/rpc/local_listener.h"
#include "core/rpc/raw_server.h"

namespace keelson {

struct MemoryMethods {
  std::vector<RawMethod> raw;
  std::vector<ByteMethod> bytes;
};

// Each connection has a thread, which handles one call after the other; answers of ByteMethods that
// come later are sent by the threads that give them. Thread-safe.
class MemoryServer {
 public:
  // A process of the same machine has a few; those that come when there are so many are sent away,
  // and take the gRPC server.
  static constexpr size_t kMostConnections = 256;

  // Listens on a MemorySocket. INVALID_ARGUMENT: it is taken; the text is the system's reason.
  static absl::StatusOr<std::unique_ptr<MemoryServer>> Listen(const std::string& address);
  ~MemoryServer();

  // Serves from now on those processes of the same user that `guard` (null: none is asked) lets
  // call, once for each call. It outlives the server. A method that is not here is UNIMPLEMENTED.
  void Start(MemoryMethods methods, const AccessGuard* guard);
  // Ends the connections, each after the call that it is handling. The waits of ByteMethods are
  // cancelled; their answers may come later.
  void Stop();

 private:
  class Connection;

  explicit MemoryServer(std::unique_ptr<LocalListener> listener);

  void Add(int fd);
  void JoinEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<LocalListener> listener_;
  MemoryMethods methods_;               // since Start
  const AccessGuard* guard_ = nullptr;  // likewise

  Mutex mu_;
  std::list<std::unique_ptr<Connection>> connections_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_MEMORY_SERVER_H_
