// A fixed set of threads that run the parts of one caller's work side by side.
#ifndef KEELSON_CORE_BASE_THREAD_POOL_H_
#define KEELSON_CORE_BASE_THREAD_POOL_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace keelson {

// RunAll may be called by one thread at a time. The destructor joins the threads.
class ThreadPool {
 public:
  // `threads` helpers beside the calling thread; 0 runs everything in the caller.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  // Calls part(0) … part(count - 1), each once, on the helpers and the caller; returns when all
  // have returned. A part must not wait for another part.
  void RunAll(size_t count, absl::FunctionRef<void(size_t)> part);

 private:
  void HelperLoop();
  // Takes and runs parts until none is left. Called with `mu_` held; holds it again on return.
  void RunParts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Mutex mu_;
  CondVar work_cv_;
  CondVar done_cv_;
  const absl::FunctionRef<void(size_t)>* part_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
  size_t count_ ABSL_GUARDED_BY(mu_) = 0;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Thread> threads_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_THREAD_POOL_H_
