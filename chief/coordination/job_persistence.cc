#include "chief/coordination/job_persistence.h"

#include "core/cluster/task_proto.h"

namespace keelson {
namespace {

void FillMember(const Member& member, v1::PersistedJobState::Member* out) {
  *out->mutable_task() = TaskToProto(member.task);
  out->set_incarnation(member.incarnation);
  out->set_peer(member.peer);
  out->set_restarts(member.restarts);
  out->set_device(member.device);
  out->set_membership_secret(member.secret);
}

}  // namespace

v1::JobState JobPersistence::LedgerState() const {
  MutexLock lock(&state_->mu);
  v1::JobState state = state_->training->ToState();
  state.set_member_epoch(state_->membership.epoch());
  return state;
}

v1::PersistedJobState JobPersistence::PersistedState() const {
  MutexLock lock(&state_->mu);
  v1::PersistedJobState persisted;
  if (!state_->training.has_value()) return persisted;
  state_->training->ToPersisted(&persisted);
  for (const Member& member : state_->membership.Members()) {
    if (!member.over()) FillMember(member, persisted.add_members());
  }
  persisted.set_member_epoch(state_->membership.epoch());
  state_->snapshots.ToPersisted(&persisted);
  return persisted;
}

void JobPersistence::NoteStored(uint64_t version) {
  MutexLock lock(&state_->mu);
  state_->versions.NoteStored(version);
  state_->changed.NotifyAll();
}

bool JobPersistence::WaitUntilStored(absl::Duration longest) {
  const absl::Duration until = Clock::Real()->Monotonic() + longest;
  MutexLock lock(&state_->mu);
  while (state_->versions.urgent()) {
    const absl::Duration rest = until - Clock::Real()->Monotonic();
    if (rest <= absl::ZeroDuration()) return false;
    state_->changed.WaitFor(&state_->mu, rest);
  }
  return true;
}

bool JobPersistence::StateUrgent() const {
  MutexLock lock(&state_->mu);
  return state_->versions.urgent();
}

void JobPersistence::WaitForUrgent(absl::Duration stores_from, const StopSignal& stop) {
  const StopCallback wake(&stop, [this] { state_->Wake(); });
  MutexLock lock(&state_->mu);
  while (!stop.raised()) {
    const bool done = state_->phase == JobPhase::kDone;
    if (!done && !state_->newly_ended.empty()) return;
    const bool urgent = !done && state_->versions.urgent();
    if (urgent && state_->clock->Monotonic() >= stores_from) return;
    state_->WaitUntil(urgent ? stores_from : absl::InfiniteDuration());
  }
}

StateVersions JobPersistence::versions() const {
  MutexLock lock(&state_->mu);
  return {state_->training.has_value() ? state_->training->ledger().version() : 0,
          state_->versions.stored()};
}

}  // namespace keelson
