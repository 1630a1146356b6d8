#include "core/base/thread_pool.h"

namespace keelson {

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { HelperLoop(); });
}

ThreadPool::~ThreadPool() {
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    work_cv_.NotifyAll();
  }
  for (Thread& thread : threads_) thread.Join();
}

void ThreadPool::RunAll(size_t count, absl::FunctionRef<void(size_t)> part) {
  MutexLock lock(&mu_);
  part_ = &part;
  next_ = 0;
  count_ = count;
  if (count > 1) work_cv_.NotifyAll();
  RunParts();
  while (running_ > 0) done_cv_.Wait(&mu_);
  part_ = nullptr;
  count_ = 0;
  next_ = 0;
}

void ThreadPool::RunParts() {
  while (next_ < count_) {
    const size_t index = next_++;
    const absl::FunctionRef<void(size_t)>& part = *part_;
    ++running_;
    mu_.Unlock();
    part(index);
    mu_.Lock();
    if (--running_ == 0) done_cv_.NotifyAll();
  }
}

void ThreadPool::HelperLoop() {
  MutexLock lock(&mu_);
  while (true) {
    while (!stopping_ && next_ >= count_) work_cv_.Wait(&mu_);
    if (stopping_) return;
    RunParts();
  }
}

}  // namespace keelson
