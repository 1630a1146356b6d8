#include "core/rpc/event_poller.h"

namespace keelson {

EventPoller::EventPoller(grpc::ServerBuilder* builder)
    : queue_(builder->AddCompletionQueue(/*is_frequently_polled=*/true)) {}

EventPoller::~EventPoller() { Shutdown(); }

void EventPoller::Start() {
  MutexLock lock(&mu_);
  thread_ = std::thread([this] {
    // No method puts anything into this queue: Next works for the other queues until the end.
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) {
    }
  });
}

void EventPoller::Shutdown() {
  MutexLock lock(&mu_);
  if (shut_down_) return;
  shut_down_ = true;
  queue_->Shutdown();
  if (thread_.joinable()) {
    thread_.join();
    return;
  }
  void* tag;
  bool ok;
  while (queue_->Next(&tag, &ok)) {
  }
}

}  // namespace keelson
