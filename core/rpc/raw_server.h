// Serves unary methods whose messages are bytes, on completion-queue threads that also do the
// server's input and output: a request is handled on the thread that received it.
#ifndef KEELSON_CORE_RPC_RAW_SERVER_H_
#define KEELSON_CORE_RPC_RAW_SERVER_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/access.h"
#include "core/rpc/byte_method.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// One method, which a generated service must not serve (WithGenericMethod_X).
struct RawMethod {
  std::string name;  // "/keelson.v1.ParameterService/Push"
  // Called on the serving threads; while it runs, the connections of its thread wait.
  std::function<absl::StatusOr<ByteRope>(ByteRope)> handle;
  // Whether `handle` can answer the request now. Otherwise `wake` is called once, by any thread,
  // and this is asked again; the request is kept meanwhile, and takes nothing of the budget. Null:
  // it always can.
  std::function<bool(const ByteRope& request, std::function<void()> wake)> may_answer = nullptr;
};

// Methods that are served as bytes, beside the ordinary ones, and the threads that do the input and
// output.
struct RawServing {
  std::vector<RawMethod> methods;
  // The number of threads that receive, handle and answer; each has its own connections.
  int threads = 1;
  // Zero: the threads block on the sockets. Otherwise they poll at this interval: a thread that
  // blocks also takes input of the process's other connections, and has to pass it to their
  // threads.
  absl::Duration pause = absl::ZeroDuration();
  // Checks the callers of the methods, and outlives the server; null: everyone may call.
  const AccessGuard* guard = nullptr;
  // The bytes of requests that are received at a time, each counted with the size that its method's
  // may have. Each thread has an equal part, and receives at least one.
  size_t receive_budget_bytes = 256 << 20;
  // A request that takes longer than this is cancelled when others wait for its room.
  absl::Duration receive_limit = absl::Seconds(10);
  // Methods that processes of this machine may call through memory (memory_server.h), beside the
  // services of gRPC that have them.
  std::vector<ByteMethod> through_memory = {};
};

// The threads and queues of raw methods. A caller is checked when its call arrives, and its request
// received when there is room for it: until then gRPC's flow control holds the caller back.
// RpcServer owns one and starts and ends it in the right order.
class RawServer {
 public:
  // The calls of a thread that wait for room; others are RESOURCE_EXHAUSTED.
  static constexpr size_t kMostWaiting = 1024;

  // Adds a queue per thread to the builder. Nothing is served before Start.
  RawServer(RawServing serving, grpc::ServerBuilder* builder);
  ~RawServer();

  // Call after the server was started.
  void Start();
  // Calls that wait for room, or to be answered, are refused from now on. Call before the server is
  // shut down.
  void BeginShutdown();
  // Call after the server was shut down and its calls have ended. Joins the threads.
  void Shutdown();

 private:
  struct Call;
  struct Waits;
  class Lane;

  const RawMethod* FindMethod(const std::string& name) const;

  const RawServing serving_;
  grpc::AsyncGenericService service_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> ending_{false};

  Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_RAW_SERVER_H_
