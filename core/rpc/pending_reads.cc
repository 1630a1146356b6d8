#include "core/rpc/pending_reads.h"

#include <utility>

namespace keelson {

PendingReads::Scope::Scope(PendingReads* reads, std::function<void()> cancel)
    : reads_(reads), begun_(reads->clock_->Monotonic()), cancel_(std::move(cancel)) {
  MutexLock lock(&reads_->mu_);
  place_ = reads_->reads_.insert(reads_->reads_.end(), this);
  while (reads_->TooMany()) {
    // A read that was cancelled leaves the list, and is cancelled once.
    Scope* const oldest = reads_->reads_.front();
    reads_->reads_.pop_front();
    oldest->place_ = reads_->reads_.end();
    oldest->cancel_();
  }
}

bool PendingReads::TooMany() const {
  return reads_.size() > most_ && clock_->Monotonic() - reads_.front()->begun_ >= patience_;
}

PendingReads::Scope::~Scope() {
  MutexLock lock(&reads_->mu_);
  if (place_ != reads_->reads_.end()) reads_->reads_.erase(place_);
}

}  // namespace keelson
