// Serves unary methods whose messages are bytes, on completion-queue threads that also do the
// server's input and output: a request is handled on the thread that received it.
#ifndef KEELSON_CORE_RPC_RAW_SERVER_H_
#define KEELSON_CORE_RPC_RAW_SERVER_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/rpc/access.h"
#include "core/wire/byte_rope.h"

namespace keelson {

// One method of a generated service that is marked raw (WithRawMethod_X).
struct RawMethod {
  using Writer = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

  // Asks for the next call: RequestX of the generated service.
  std::function<void(grpc::ServerContext*, grpc::ByteBuffer*, Writer*, grpc::CompletionQueue*,
                     grpc::ServerCompletionQueue*, void* tag)>
      request;
  // Called on the serving threads; while it runs, the connections of its thread wait.
  std::function<absl::StatusOr<ByteRope>(ByteRope)> handle;
  // "/keelson.v1.ParameterService/Push", for an AccessGuard.
  std::string name = "";
};

// The threads and queues of raw methods. RpcServer owns one and starts and ends it in the right
// order.
class RawServer {
 public:
  // Adds `threads` queues to the builder. `pause`: see RawServing. Nothing is served before Start.
  // `guard`: checks each caller before its request is handled; null: everyone may call.
  RawServer(std::vector<RawMethod> methods, int threads, absl::Duration pause,
            const AccessGuard* guard, grpc::ServerBuilder* builder);
  ~RawServer();

  // Call after the server was started.
  void Start();
  // Call after the server was shut down and its calls have ended. Joins the threads.
  void Shutdown();

 private:
  struct Call;

  void Serve(grpc::ServerCompletionQueue* queue);
  // False: the queue is shut down and empty.
  bool Next(grpc::ServerCompletionQueue* queue, void** tag, bool* ok) const;
  void Request(const RawMethod* method, grpc::ServerCompletionQueue* queue);
  void Handle(Call* call);
  absl::StatusOr<ByteRope> Answer(Call* call) const;

  const std::vector<RawMethod> methods_;
  const absl::Duration pause_;
  const AccessGuard* const guard_;
  const std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::vector<std::thread> threads_;

  Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_RAW_SERVER_H_
