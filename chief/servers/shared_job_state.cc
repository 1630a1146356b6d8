#include "chief/servers/shared_job_state.h"

#include <algorithm>

namespace keelson {

std::shared_ptr<const SharedJobState::State> SharedJobState::Get(const Wanted& wanted) {
  MutexLock lock(&mu_);
  const absl::Duration now = clock_->Monotonic();
  const bool serves = newest_ != nullptr && newest_->number >= wanted.number &&
                      newest_->members.epoch() >= wanted.epoch && request_ >= wanted.request &&
                      now - made_ <= longest_age_;
  if (serves) return newest_;
  auto made = std::make_shared<State>();
  made->number = newest_ == nullptr ? 1 : newest_->number + 1;
  // Before the state, which so knows of every member of the list.
  made->members = members_();
  const v1::PersistedJobState persisted = persisted_();
  made->version = persisted.job().state_version();
  made->bytes = persisted.SerializeAsString();
  newest_ = std::move(made);
  request_ = std::max(request_, wanted.request);
  made_ = now;
  return newest_;
}

}  // namespace keelson
