#include "ps_server/service/chief_record.h"

#include <tuple>
#include <utility>

namespace keelson {

void ChiefRecord::Take(const v1::ChiefHeartbeatRequest& request) {
  MutexLock lock(&mu_);
  if (!request.chief_address().empty()) address_ = request.chief_address();
  const auto newer = std::pair(request.header().chief_term(), request.job_state_version());
  if (request.job_state().empty() || newer < std::pair(term_, version_)) return;
  state_ = request.job_state();
  std::tie(term_, version_) = newer;
}

std::string ChiefRecord::address() const {
  MutexLock lock(&mu_);
  return address_;
}

uint64_t ChiefRecord::state_version() const {
  MutexLock lock(&mu_);
  return version_;
}

void ChiefRecord::FillJobState(v1::ShardStatus* status) const {
  MutexLock lock(&mu_);
  status->set_job_state(state_);
  status->set_job_state_version(version_);
  status->set_job_state_term(term_);
}

}  // namespace keelson
