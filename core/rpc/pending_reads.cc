#include "core/rpc/pending_reads.h"

#include <utility>

namespace keelson {

PendingReads::Scope::Scope(PendingReads* reads, std::function<void()> cancel)
    : reads_(reads), cancel_(std::move(cancel)) {
  MutexLock lock(&reads_->mu_);
  place_ = reads_->reads_.insert(reads_->reads_.end(), this);
  if (reads_->reads_.size() <= reads_->most_) return;
  // A read that was cancelled leaves the list, and is cancelled once.
  Scope* const oldest = reads_->reads_.front();
  reads_->reads_.pop_front();
  oldest->place_ = reads_->reads_.end();
  oldest->cancel_();
}

PendingReads::Scope::~Scope() {
  MutexLock lock(&reads_->mu_);
  if (place_ != reads_->reads_.end()) reads_->reads_.erase(place_);
}

}  // namespace keelson
