#include "core/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/presence.h"
#include "core/checkpoint/snapshot_chain.h"
#include "core/checkpoint/snapshot_lease.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr char kSnapshotName[] = "model.ckpt-";
// Where nothing can be deleted at all, the state file does not grow with each snapshot.
constexpr size_t kMostDeletedAgain = 100;

// "model.ckpt-100.data-00000-of-00001" -> "model.ckpt-100"; nothing for other files.
std::optional<std::string> SnapshotOfFile(absl::string_view file_name) {
  absl::string_view rest = file_name;
  if (!absl::ConsumePrefix(&rest, kSnapshotName)) return std::nullopt;
  const absl::string_view step = rest.substr(0, rest.find('.'));
  int64_t number;
  if (step.size() == rest.size() || !absl::SimpleAtoi(step, &number)) return std::nullopt;
  return absl::StrCat(kSnapshotName, step);
}

// A file of a snapshot itself, whatever its name until the commit; not a lease.
bool IsOfSnapshot(const std::string& file_name) {
  return SnapshotOfFile(file_name).has_value() && !absl::StrContains(file_name, kLeaseInfix);
}

int64_t StepOfSnapshot(absl::string_view name) {
  int64_t step = -1;
  return absl::SimpleAtoi(absl::StripPrefix(name, kSnapshotName), &step) ? step : -1;
}

// Names of the snapshots in `directory` that are leased, each with a holder.
absl::StatusOr<std::map<std::string, std::string>> LeasedSnapshots(FileSystem* file_system,
                                                                   const std::string& directory,
                                                                   absl::Time now) {
  ASSIGN_OR_RETURN(const auto leases, ListLeases(file_system, directory));
  std::map<std::string, std::string> leased;
  for (const auto& [name, lease] : leases) {
    if (lease.expires > now) leased.emplace(JoinPath(directory, lease.snapshot), lease.holder);
  }
  return leased;
}

// The prefixes of the bases of those that are deltas, by prefix.
using Bases = std::map<std::string, std::string>;

// Where there are deltas, a damaged snapshot counts as one on the snapshot before it, so that a
// chain to fall back on stays. Other errors of BaseOf.
absl::StatusOr<Bases> BasesOf(absl::Span<const SnapshotInfo> snapshots, FileSystem* file_system) {
  Bases bases, of_damaged;
  const SnapshotInfo* before = nullptr;
  for (const SnapshotInfo& snapshot : snapshots) {
    const auto bundle = BundleReader::Open(snapshot.prefix, file_system);
    absl::Status status = bundle.status();
    if (status.ok()) {
      const auto base = BaseOf(**bundle);
      status = base.status();
      if (base.ok() && base->has_value()) {
        bases[snapshot.prefix] = BasePrefix(snapshot.prefix, **base);
      }
    }
    if (!status.ok() && !absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
    if (!status.ok() && before != nullptr) of_damaged[snapshot.prefix] = before->prefix;
    before = &snapshot;
  }
  if (!bases.empty()) bases.merge(of_damaged);
  return bases;
}

// Adds what the snapshot builds on.
void AddBases(const std::string& prefix, const Bases& bases, std::set<std::string>* needed) {
  for (auto base = bases.find(prefix); base != bases.end(); base = bases.find(base->second)) {
    if (!needed->insert(base->second).second) return;
  }
}

// What the newest `keep` snapshots, leased ones and that of the policy's kept step build on.
std::set<std::string> Needed(const RetentionPolicy& policy,
                             const std::map<std::string, std::string>& leased, const Bases& bases,
                             absl::Span<const SnapshotInfo> snapshots, size_t keep) {
  std::set<std::string> needed;
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const SnapshotInfo& snapshot = snapshots[i];
    const bool stays = i + keep >= snapshots.size() || leased.contains(snapshot.prefix) ||
                       (policy.kept_step != kNoStep && snapshot.step == policy.kept_step);
    if (stays) AddBases(snapshot.prefix, bases, &needed);
  }
  return needed;
}

// Removes the snapshots that neither `policy` nor a lease keeps, nor one that stays builds on, from
// `snapshots` (oldest first) and returns those whose files must be deleted.
std::vector<SnapshotInfo> TakeSurplus(const RetentionPolicy& policy,
                                      const std::map<std::string, std::string>& leased,
                                      const Bases& bases, std::vector<SnapshotInfo>* snapshots,
                                      absl::Time* last_preserved) {
  const size_t keep = std::max<int64_t>(policy.keep_max, 0);
  if (keep == 0 || snapshots->size() <= keep) return {};
  const std::set<std::string> needed = Needed(policy, leased, bases, *snapshots, keep);
  const auto end = snapshots->end() - static_cast<std::ptrdiff_t>(keep);
  std::vector<SnapshotInfo> kept;
  std::vector<SnapshotInfo> surplus;
  for (auto it = snapshots->begin(); it != end; ++it) {
    const bool preserve = policy.keep_every_n_hours > 0 && !bases.contains(it->prefix) &&
                          it->time - absl::Hours(policy.keep_every_n_hours) >= *last_preserved;
    if (const auto lease = leased.find(it->prefix); lease != leased.end()) {
      LogInfo("snapshot ", it->prefix, " stays until ", lease->second, " has read it");
      kept.push_back(*it);
    } else if ((policy.kept_step != kNoStep && it->step == policy.kept_step) ||
               needed.contains(it->prefix)) {
      kept.push_back(*it);
    } else if (preserve) {
      *last_preserved = it->time;
    } else {
      surplus.push_back(*it);
    }
  }
  kept.insert(kept.end(), end, snapshots->end());
  *snapshots = std::move(kept);
  return surplus;
}

// Of the snapshots that a state file names (oldest first), the remains of deletions that failed:
// the index is gone, and they are older than those that `policy` keeps of `present`. Another
// snapshot whose index is out of sight is not touched, since storage may show it again.
std::vector<SnapshotInfo> Remains(const RetentionPolicy& policy, const Bases& bases,
                                  const std::vector<SnapshotInfo>& named,
                                  const std::vector<SnapshotInfo>& present) {
  const size_t keep = std::max<int64_t>(policy.keep_max, 0);
  if (keep == 0 || present.size() < keep) return {};
  std::set<std::string> there;
  for (const SnapshotInfo& snapshot : present) {
    there.insert(snapshot.prefix);
    AddBases(snapshot.prefix, bases, &there);
  }
  const std::string& oldest_kept = present[present.size() - keep].prefix;
  std::vector<SnapshotInfo> remains;
  for (const SnapshotInfo& snapshot : named) {
    if (snapshot.prefix == oldest_kept) break;
    const bool kept = policy.kept_step != kNoStep && snapshot.step == policy.kept_step;
    if (!kept && !there.contains(snapshot.prefix)) remains.push_back(snapshot);
  }
  return remains;
}

}  // namespace

CheckpointDirectory::CheckpointDirectory(FileSystem* file_system, std::string model_dir,
                                         const Clock* clock, ForeignPaths foreign,
                                         SnapshotNames names)
    : file_system_(file_system),
      model_dir_(std::move(model_dir)),
      clock_(clock),
      state_file_(file_system, model_dir_, foreign, names) {}

std::string CheckpointDirectory::SnapshotPrefix(int64_t step) const {
  return JoinPath(model_dir_, absl::StrCat(kSnapshotName, step));
}

std::string CheckpointDirectory::FindSnapshot(int64_t step) const {
  const absl::StatusOr<std::vector<SnapshotInfo>> named = ListNamed();
  if (named.ok()) {
    const auto found = std::find_if(named->rbegin(), named->rend(),
                                    [step](const SnapshotInfo& s) { return s.step == step; });
    if (found != named->rend()) return found->prefix;
  }
  return SnapshotPrefix(step);
}

absl::StatusOr<std::vector<SnapshotInfo>> CheckpointDirectory::ListNamed() const {
  ASSIGN_OR_RETURN(std::optional<StateFile::State> state, state_file_.Read());
  return state.has_value() ? std::move(state->snapshots) : std::vector<SnapshotInfo>();
}

absl::StatusOr<std::vector<SnapshotInfo>> CheckpointDirectory::List() const {
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> named, ListNamed());
  std::vector<SnapshotInfo> present;
  for (SnapshotInfo& snapshot : named) {
    ASSIGN_OR_RETURN(const bool exists, IsPresent(IndexPath(snapshot.prefix), file_system_));
    if (exists) present.push_back(std::move(snapshot));
  }
  return present;
}

absl::Status CheckpointDirectory::Commit(int64_t step, const RetentionPolicy& policy,
                                         absl::FunctionRef<absl::Status()> publish) {
  const std::string prefix = SnapshotPrefix(step);
  ASSIGN_OR_RETURN(std::optional<StateFile::State> old, state_file_.Read());
  RETURN_IF_ERROR(publish());
  ASSIGN_OR_RETURN(const bool exists, IsPresent(IndexPath(prefix), file_system_));
  if (!exists) {
    return absl::UnavailableError(absl::StrCat(IndexPath(prefix), ": not in sight; cannot commit"));
  }
  const absl::Time now = clock_->Now();
  StateFile::State state;
  if (old.has_value()) {
    state.version = old->version;
    ASSIGN_OR_RETURN(state.snapshots, List());
  } else {
    ASSIGN_OR_RETURN(state.snapshots, UnnamedBefore(step));
  }
  // Without a state file nobody knows which of them shall stay.
  const bool deletes = old.has_value() || state.snapshots.empty();
  // A clock that was set back must not suspend preserving for that time. TensorFlow takes what is
  // not newer than the time in the file for preserved, so it begins a second before the first
  // commit.
  state.last_preserved =
      old.has_value() ? std::min(old->last_preserved, now) : now - absl::Seconds(1);
  if (!deletes) state.last_preserved = absl::UnixEpoch() + absl::Seconds(1);
  std::vector<SnapshotInfo>& snapshots = state.snapshots;
  snapshots.erase(std::remove_if(snapshots.begin(), snapshots.end(),
                                 [&](const SnapshotInfo& s) { return s.prefix == prefix; }),
                  snapshots.end());
  snapshots.push_back({step, prefix, now});
  ASSIGN_OR_RETURN(const auto leased, LeasedSnapshots(file_system_, model_dir_, now));
  std::vector<SnapshotInfo> surplus;
  absl::StatusOr<Bases> bases = Bases();
  const bool may_delete =
      policy.keep_max > 0 && snapshots.size() >= static_cast<size_t>(policy.keep_max);
  if (policy.deltas && may_delete) bases = BasesOf(snapshots, file_system_);
  if (!bases.ok()) LogWarning("no surplus snapshot is deleted now: ", bases.status().message());
  if (bases.ok() && old.has_value()) surplus = Remains(policy, *bases, old->snapshots, snapshots);
  if (bases.ok() && deletes) {
    const std::vector<SnapshotInfo> dropped =
        TakeSurplus(policy, leased, *bases, &snapshots, &state.last_preserved);
    surplus.insert(surplus.end(), dropped.begin(), dropped.end());
  }
  RETURN_IF_ERROR(state_file_.Write(&state));
  DeleteSurplus(surplus, &state);
  return absl::OkStatus();
}

void CheckpointDirectory::DeleteSurplus(absl::Span<const SnapshotInfo> surplus,
                                        StateFile::State* state) const {
  std::vector<SnapshotInfo> left;
  absl::Status failure;
  for (const SnapshotInfo& snapshot : surplus) {
    const absl::Status status = DeleteSnapshot(snapshot);
    if (!status.ok()) left.push_back(snapshot);
    failure.Update(status);
  }
  if (left.empty()) return;
  const size_t again = std::min(left.size(), kMostDeletedAgain);
  LogWarning("surplus snapshots: cannot delete ", left.size(), ", the next commit tries ", again,
             " again: ", failure.message());
  std::vector<SnapshotInfo>& named = state->snapshots;
  named.insert(named.begin(), left.begin(), left.begin() + static_cast<std::ptrdiff_t>(again));
  std::stable_sort(named.begin(), named.end() - 1,
                   [](const SnapshotInfo& a, const SnapshotInfo& b) { return a.time < b.time; });
  const absl::Status status = state_file_.Write(state);
  if (!status.ok()) LogWarning("surplus snapshots left behind: ", status.message());
}

absl::StatusOr<std::vector<SnapshotInfo>> CheckpointDirectory::UnnamedBefore(int64_t step) const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(model_dir_));
  std::vector<SnapshotInfo> snapshots;
  for (const std::string& name : names) {
    const std::optional<std::string> snapshot = SnapshotOfFile(name);
    if (!snapshot.has_value() || name != IndexPath(*snapshot)) continue;
    if (StepOfSnapshot(*snapshot) >= step) continue;
    SnapshotInfo unnamed = {StepOfSnapshot(*snapshot), JoinPath(model_dir_, *snapshot), {}};
    unnamed.time = ModificationTimeOf(unnamed, file_system_);
    snapshots.push_back(std::move(unnamed));
  }
  std::sort(snapshots.begin(), snapshots.end(),
            [](const SnapshotInfo& a, const SnapshotInfo& b) { return a.step < b.step; });
  return snapshots;
}

absl::StatusOr<std::vector<std::string>> CheckpointDirectory::SnapshotFiles() const {
  const auto names = file_system_->List(model_dir_);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  RETURN_IF_ERROR(names.status());
  std::vector<std::string> files;
  for (const std::string& name : *names) {
    if (SnapshotOfFile(name).has_value()) files.push_back(name);
  }
  return files;
}

absl::Status CheckpointDirectory::RollBack(int64_t step) {
  ASSIGN_OR_RETURN(std::optional<StateFile::State> state, state_file_.Read());
  if (!state.has_value()) state.emplace();
  std::vector<SnapshotInfo>& snapshots = state->snapshots;
  const auto found = std::find_if(snapshots.begin(), snapshots.end(),
                                  [step](const SnapshotInfo& s) { return s.step == step; });
  bool present = found != snapshots.end();
  if (present) {
    ASSIGN_OR_RETURN(present, file_system_->Exists(IndexPath(found->prefix)));
  }
  if (!present) {
    const auto append_step = [](std::string* out, const SnapshotInfo& snapshot) {
      absl::StrAppend(out, snapshot.step);
    };
    return absl::NotFoundError(absl::StrCat(model_dir_, ": no snapshot of step ", step,
                                            ", expected one of ",
                                            absl::StrJoin(snapshots, ", ", append_step)));
  }
  snapshots.erase(found + 1, snapshots.end());
  return state_file_.Write(&*state);
}

absl::StatusOr<std::vector<std::string>> CheckpointDirectory::ListTemporaries() const {
  ASSIGN_OR_RETURN(std::vector<std::string> names, file_system_->List(model_dir_));
  std::erase_if(names,
                [](const std::string& name) { return !absl::StrContains(name, ".tempstate"); });
  return names;
}

absl::Status CheckpointDirectory::RemoveStaleFiles(absl::Span<const std::string> temporaries) {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(model_dir_));
  if (!exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(model_dir_));
  ASSIGN_OR_RETURN(const auto leases, ListLeases(file_system_, model_dir_));
  const std::set<std::string> unused(temporaries.begin(), temporaries.end());
  absl::Status status;
  for (const std::string& name : names) {
    const auto lease = leases.find(name);
    const bool expired = lease != leases.end() && lease->second.expires <= clock_->Now();
    if (!expired && (IsOfSnapshot(name) || !unused.contains(name))) continue;
    status.Update(file_system_->Remove(JoinPath(model_dir_, name)));
  }
  return status;
}

absl::Status CheckpointDirectory::RemoveStaleSnapshots() {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(model_dir_));
  if (!exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> committed, List());
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(model_dir_));
  std::set<std::string> committed_prefixes;
  for (const SnapshotInfo& snapshot : committed) committed_prefixes.insert(snapshot.prefix);
  // Evaluated once for all files of a snapshot: its index may be removed before its data.
  std::set<std::string> complete;
  for (const std::string& name : names) {
    const std::optional<std::string> snapshot = SnapshotOfFile(name);
    if (snapshot.has_value() && name == IndexPath(*snapshot)) complete.insert(*snapshot);
  }
  absl::Status status;
  for (const std::string& name : names) {
    if (!IsOfSnapshot(name)) continue;
    const std::string snapshot = *SnapshotOfFile(name);
    bool stale = absl::StrContains(name, ".tempstate");
    if (committed_prefixes.count(JoinPath(model_dir_, snapshot)) == 0) {
      const int64_t step = StepOfSnapshot(snapshot);
      const bool newer = !committed.empty() && step > committed.back().step;
      const bool known = !committed.empty() || step == 0;
      stale = stale || newer || (known && complete.count(snapshot) == 0);
    }
    if (stale) status.Update(file_system_->Remove(JoinPath(model_dir_, name)));
  }
  return status;
}

absl::Status CheckpointDirectory::WriteDoneMarker(int64_t step, uint64_t config_hash) {
  return keelson::WriteDoneMarker(file_system_, model_dir_, {step, config_hash});
}

absl::StatusOr<std::optional<DoneMarker>> CheckpointDirectory::ReadDoneMarker() const {
  return keelson::ReadDoneMarker(model_dir_, file_system_);
}

absl::Status CheckpointDirectory::RemoveDoneMarker() {
  return keelson::RemoveDoneMarker(file_system_, model_dir_);
}

// The index is deleted first: the rest after an interruption is no snapshot, and
// RemoveStaleSnapshots removes it.
absl::Status CheckpointDirectory::DeleteSnapshot(const SnapshotInfo& snapshot) const {
  RETURN_IF_ERROR(file_system_->Remove(IndexPath(snapshot.prefix)));
  const std::string directory = DirectoryOf(snapshot.prefix);
  RETURN_IF_ERROR(file_system_->SyncDirectory(directory));
  const std::string file_prefix = absl::StrCat(BaseName(snapshot.prefix), ".");
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, file_prefix))
      RETURN_IF_ERROR(file_system_->Remove(JoinPath(directory, name)));
  }
  return absl::OkStatus();
}

}  // namespace keelson
