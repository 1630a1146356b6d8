// A thread that waits for what the connections of a gRPC server bring.
#ifndef KEELSON_CORE_RPC_EVENT_POLLER_H_
#define KEELSON_CORE_RPC_EVENT_POLLER_H_

#include <grpcpp/server_builder.h>

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace keelson {

// Where a server has raw-callback methods (waiting_call.h), gRPC leaves its input to the threads
// that serve these. There are few of them, and each sleeps for 100 ms when it has had no event for
// a second, which are the answers of those methods alone. Other calls then waited for up to a
// second until a thread saw them (gRPC 1.51, src/cpp/common/completion_queue_cc.cc,
// CallbackAlternativeCQ). This thread never sleeps. Thread-safe.
class EventPoller {
 public:
  // Adds a queue to the builder.
  explicit EventPoller(grpc::ServerBuilder* builder);
  // Shuts it down.
  ~EventPoller();

  // Call after the server was started, at most once.
  void Start();
  // Call after the server was shut down. Joins the thread.
  void Shutdown();

 private:
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Mutex mu_;
  bool shut_down_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_EVENT_POLLER_H_
