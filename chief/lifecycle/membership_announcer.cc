#include "chief/lifecycle/membership_announcer.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "core/base/log.h"

namespace keelson {
namespace {

// The pause before urgent job state that is not stored yet is stored again.
constexpr absl::Duration kStorePause = absl::Milliseconds(100);

void LogWaitingWork(const std::vector<std::string>& missing) {
  LogWarning("the work of members that are over waits until every server refuses them; ",
             missing.empty() ? "one" : absl::StrJoin(missing, ", "), " has not answered");
}

}  // namespace

void MembershipAnnouncer::Run(const StopSignal& end) {
  absl::Duration stores_from = -absl::InfiniteDuration();
  while (true) {
    persistence_->WaitForUrgent(stores_from, end);
    if (end.raised()) return;
    AnnounceEnded();
    const absl::Duration now = clock_->Monotonic();
    if (persistence_->StateUrgent() && now >= stores_from) {
      persist_now_();
      stores_from = now + kStorePause;
    }
  }
}

void MembershipAnnouncer::AnnounceEnded() {
  const std::vector<uint64_t> ended = roster_->TakeEnded();
  if (ended.empty()) return;
  const v1::MemberList members = roster_->MemberList();
  ended_.Add(members.epoch(), ended);
  servers_->Announce(members, persistence_->PersistedState());
  HandOnTold(servers_->known_epoch());
  if (!ended_.empty()) LogWaitingWork(servers_->Missing());
}

void MembershipAnnouncer::HandOnTold(uint64_t epoch) {
  const std::vector<uint64_t> told = ended_.TakeTold(epoch);
  if (!told.empty()) roster_->HandOn(told);
}

}  // namespace keelson
