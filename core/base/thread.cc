#include "core/base/thread.h"

#include <cstdlib>
#include <utility>

#include "core/base/scheduler.h"

namespace keelson {

Thread::Thread(std::function<void()> body) {
  if (Scheduler* const scheduler = Scheduler::Current()) {
    scheduled_ = scheduler->Start(std::move(body));
  } else {
    real_ = std::thread(std::move(body));
  }
}

Thread::Thread(Thread&& other) noexcept
    : real_(std::move(other.real_)), scheduled_(std::exchange(other.scheduled_, std::nullopt)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (scheduled_.has_value()) std::abort();
  real_ = std::move(other.real_);
  scheduled_ = std::exchange(other.scheduled_, std::nullopt);
  return *this;
}

Thread::~Thread() {
  if (scheduled_.has_value()) std::abort();
}

void Thread::Join() {
  if (!scheduled_.has_value()) return real_.join();
  Scheduler::Current()->Join(*std::exchange(scheduled_, std::nullopt));
}

}  // namespace keelson
