#include "chief/servers/snapshotter.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/job_state.h"
#include "core/checkpoint/presence.h"
#include "core/checkpoint/shard_state.h"

namespace keelson {
namespace {

absl::StatusOr<v1::JobState> ReadJobState(const std::string& prefix, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle,
                   BundleReader::Open(prefix, file_system));
  ASSIGN_OR_RETURN(const std::optional<v1::JobState> stored, ReadJobState(*bundle));
  if (stored.has_value()) return *stored;
  v1::JobState state;
  ASSIGN_OR_RETURN(const int64_t step, bundle->ReadInt64("global_step"));
  state.set_global_step(step);
  return state;
}

// The files were written, and their directory was there, so what is not found is out of sight.
absl::Status AsPassing(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::UnavailableError(status.message()) : status;
}

}  // namespace

bool IsDamagedSnapshot(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kNotFound;
}

absl::Status Snapshotter::Write(absl::FunctionRef<v1::JobState()> take_state,
                                absl::FunctionRef<absl::Status()> confirm, int64_t kept_step) {
  v1::JobState state;
  const absl::StatusOr<ServerCuts::Cut> cut =
      servers_->cuts()->Prepare([&] { state = take_state(); }, deltas_.ChangesToTell());
  // A snapshot's files are not written a second time: an interruption would damage a good snapshot.
  if (cut.ok() && directory_->SnapshotPrefix(state.global_step()) == latest_prefix()) {
    servers_->cuts()->NoteSaved(*cut);
    return absl::OkStatus();
  }
  absl::Status status = cut.status();
  if (status.ok()) status = WriteCut(*cut, state, confirm, kept_step);
  if (!status.ok()) {
    NoteFailure(status);
    return status;
  }
  MutexLock lock(&mu_);
  ++figures_.written;
  figures_.error.clear();
  return status;
}

void Snapshotter::NoteFailure(const absl::Status& status) {
  MutexLock lock(&mu_);
  ++figures_.failures;
  figures_.error = std::string(status.message());
}

absl::Status Snapshotter::WriteCut(const ServerCuts::Cut& cut, const v1::JobState& state,
                                   absl::FunctionRef<absl::Status()> confirm, int64_t kept_step) {
  const std::string prefix = directory_->SnapshotPrefix(state.global_step());
  absl::Status status = EnsureDirectory();
  Attempt attempt = {prefix, servers_->size() + 1, servers_->term(), cut};
  attempt.base = deltas_.BaseFor(cut);
  if (status.ok()) status = WriteParts(attempt, state, confirm, kept_step);
  if (status.ok()) SetLatest({state.global_step(), prefix, clock_->Now()});
  if (!status.ok()) RemovePending(attempt);
  return status;
}

absl::Status Snapshotter::EnsureDirectory() {
  const std::string& model_dir = directory_->model_dir();
  ASSIGN_OR_RETURN(const bool exists, directory_->file_system()->Exists(model_dir));
  if (exists) return absl::OkStatus();
  LogWarning(model_dir, " is gone; creating it again");
  return directory_->file_system()->CreateDirectories(model_dir);
}

// Removes the temporary files of servers that ended while they wrote, too. Files with final names
// stay: those of this name may be a snapshot that is committed.
void Snapshotter::RemovePending(const Attempt& attempt) {
  const auto names = directory_->file_system()->List(directory_->model_dir());
  if (!names.ok()) return;
  const std::string file_prefix = absl::StrCat(BaseName(attempt.prefix), ".");
  const std::string pending = attempt.Pending("");
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, file_prefix) || !absl::StrContains(name, pending)) continue;
    directory_->file_system()->Remove(JoinPath(directory_->model_dir(), name)).IgnoreError();
  }
}

absl::Status Snapshotter::WriteParts(const Attempt& attempt, const v1::JobState& state,
                                     absl::FunctionRef<absl::Status()> confirm, int64_t kept_step) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(ServerCuts::Written written,
                   servers_->cuts()->Write(attempt.cut, state.global_step(),
                                           attempt.num_data_shards, attempt.base));
  RETURN_IF_ERROR(
      AsPassing(Complete(attempt, state, std::move(written.entries), confirm, kept_step)));
  servers_->cuts()->NoteSaved(attempt.cut);
  deltas_.Note(attempt.cut.id, attempt.base.has_value(), state, written.bytes);
  const absl::Duration took = clock_->Monotonic() - start;
  LogInfo("snapshot of step ", state.global_step(),
          attempt.base.has_value() ? absl::StrCat(", a delta on step ", attempt.base->step()) : "",
          ": ", written.bytes, " bytes in ",
          absl::FormatDuration(absl::Trunc(took, absl::Milliseconds(1))),
          ", pushes waited at most ", written.longest_cut_microseconds, " us, ", attempt.prefix);
  MutexLock lock(&mu_);
  figures_.write_time = took;
  figures_.bytes = written.bytes;
  figures_.longest_cut_microseconds = written.longest_cut_microseconds;
  return absl::OkStatus();
}

absl::Status Snapshotter::Complete(const Attempt& attempt, const v1::JobState& state,
                                   std::vector<BundleIndexEntry> entries,
                                   absl::FunctionRef<absl::Status()> confirm, int64_t kept_step) {
  const absl::Status parts = CheckParts(attempt);
  // Another chief, which has removed them, says more of what is wrong.
  if (absl::IsFailedPrecondition(parts)) RETURN_IF_ERROR(confirm());
  RETURN_IF_ERROR(parts);
  ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> own, WriteChiefPart(attempt, state));
  std::move(own.begin(), own.end(), std::back_inserter(entries));
  RETURN_IF_ERROR(WriteBundleIndexTo(directory_->file_system(),
                                     attempt.Pending(IndexPath(attempt.prefix)),
                                     attempt.num_data_shards, std::move(entries)));
  RetentionPolicy retention = retention_;
  retention.kept_step = kept_step;
  return directory_->Commit(state.global_step(), retention, [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckNotCommitted(attempt));
    RETURN_IF_ERROR(confirm());
    return Publish(attempt);
  });
}

absl::Status Snapshotter::CheckNotCommitted(const Attempt& attempt) const {
  if (!latest_prefix().empty() || damaged_.contains(attempt.prefix)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> named, directory_->ListNamed());
  const bool committed = std::any_of(named.begin(), named.end(), [&](const SnapshotInfo& snapshot) {
    return snapshot.prefix == attempt.prefix;
  });
  if (!committed) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      attempt.prefix, ": expected none, found in the state file, which was out of sight before"));
}

absl::Status Snapshotter::Publish(const Attempt& attempt) {
  FileSystem* const files = directory_->file_system();
  for (size_t s = 0; s < attempt.num_data_shards; ++s) {
    const std::string path = DataPath(attempt.prefix, s, attempt.num_data_shards);
    RETURN_IF_ERROR(files->Rename(attempt.Pending(path), path));
  }
  // The index in sight says that the snapshot is whole, so its name must not outlive a power cut
  // that the names of the others do not.
  RETURN_IF_ERROR(files->SyncDirectory(directory_->model_dir()));
  const std::string index = IndexPath(attempt.prefix);
  RETURN_IF_ERROR(files->Rename(attempt.Pending(index), index));
  return files->SyncDirectory(directory_->model_dir());
}

absl::Status Snapshotter::CheckParts(const Attempt& attempt) const {
  // Opening the directory makes network file systems look again; a name that was missed before may
  // be cached as missing.
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   directory_->file_system()->List(directory_->model_dir()));
  for (size_t s = 0; s < servers_->size(); ++s) {
    const std::string path = attempt.Pending(DataPath(attempt.prefix, s, attempt.num_data_shards));
    if (std::binary_search(names.begin(), names.end(), BaseName(path))) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        servers_->name(s), " wrote its part elsewhere: expected ", path,
        "; do all roles share the directory of --model_dir? (if not: --checkpoint_writer=chief)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BundleIndexEntry>> Snapshotter::WriteChiefPart(const Attempt& attempt,
                                                                          v1::JobState state) {
  const size_t data_shard = attempt.num_data_shards - 1;
  state.set_format(kJobStateFormat);
  if (attempt.cut.committed_round >= 0) state.set_committed_round(attempt.cut.committed_round);
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer,
                   BundleDataWriter::Create(directory_->file_system(),
                                            attempt.Pending(DataPath(attempt.prefix, data_shard,
                                                                     attempt.num_data_shards)),
                                            data_shard));
  RETURN_IF_ERROR(writer->AddInt64("global_step", state.global_step()));
  ASSIGN_OR_RETURN(const std::string bytes, SerializeState(state, kJobStateName));
  RETURN_IF_ERROR(writer->AddString(kJobStateName, bytes));
  return writer->Finish();
}

absl::StatusOr<std::optional<Snapshotter::Restored>> Snapshotter::FindNewest() {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, Snapshots());
  for (const SnapshotInfo& snapshot : snapshots) {
    absl::StatusOr<v1::JobState> state = ReadJobState(snapshot.prefix, directory_->file_system());
    if (state.ok()) {
      SetLatest(snapshot);
      return Restored{snapshot.prefix, snapshot.step, *std::move(state)};
    }
    if (!IsDamagedSnapshot(state.status())) return state.status();
    if (absl::IsDataLoss(state.status())) damaged_.insert(snapshot.prefix);
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<SnapshotInfo>> Snapshotter::Candidates(MissingFiles missing) const {
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> snapshots, directory_->ListNamed());
  std::reverse(snapshots.begin(), snapshots.end());
  if (!snapshots.empty()) return snapshots;
  RETURN_IF_ERROR(CheckNoneUnnamed(missing));
  // A snapshot of step 0 that is complete has the values from which the job began, whether or not
  // the first chief lived to write the state file.
  const std::string first = directory_->SnapshotPrefix(0);
  ASSIGN_OR_RETURN(const bool complete, IsPresent(IndexPath(first), directory_->file_system()));
  if (complete) snapshots.push_back({0, first, clock_->Now()});
  return snapshots;
}

absl::Status Snapshotter::CheckNoneUnnamed(MissingFiles missing) const {
  const std::string first = absl::StrCat(BaseName(directory_->SnapshotPrefix(0)), ".");
  ASSIGN_OR_RETURN(const std::vector<std::string> files, directory_->SnapshotFiles());
  for (const std::string& file : files) {
    if (absl::StartsWith(file, first)) continue;
    const std::string text = absl::StrCat(
        directory_->model_dir(), ": expected a file \"checkpoint\" that names a snapshot, found ",
        file,
        " without it; restore that file to train on, or move the model.ckpt-* files away to "
        "begin anew");
    return missing == MissingFiles::kError ? absl::NotFoundError(text) : absl::DataLossError(text);
  }
  return absl::OkStatus();
}

absl::StatusOr<Snapshotter::Restored> Snapshotter::RestoreLatest(
    absl::FunctionRef<absl::Status(const Restored&)> restore, MissingFiles missing) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, Candidates(missing));
  for (const SnapshotInfo& snapshot : snapshots) {
    absl::StatusOr<v1::JobState> state = ReadJobState(snapshot.prefix, directory_->file_system());
    absl::Status status = state.status();
    if (status.ok()) {
      const Restored restored = {snapshot.prefix, snapshot.step, *std::move(state)};
      status = restore(restored);
      if (status.ok()) {
        SetLatest(snapshot);
        return restored;
      }
    }
    const bool may_appear = missing == MissingFiles::kError && absl::IsNotFound(status);
    if (may_appear || !IsDamagedSnapshot(status)) return status;
    LogError("snapshot ", snapshot.prefix,
             " cannot be used, trying the one before: ", status.message());
  }
  if (snapshots.empty()) return Restored();
  return absl::DataLossError(absl::StrCat(directory_->model_dir(), ": none of its ",
                                          snapshots.size(), " snapshots can be used"));
}

absl::StatusOr<std::vector<SnapshotInfo>> Snapshotter::Snapshots() const {
  absl::StatusOr<std::vector<SnapshotInfo>> snapshots = directory_->List();
  MutexLock lock(&mu_);
  // The directory or its state file may be away for a while.
  const bool none = !snapshots.ok() || snapshots->empty();
  if (none && latest_.has_value()) return std::vector<SnapshotInfo>{*latest_};
  if (snapshots.ok()) std::reverse(snapshots->begin(), snapshots->end());
  return snapshots;
}

std::string Snapshotter::latest_prefix() const {
  MutexLock lock(&mu_);
  return latest_.has_value() ? latest_->prefix : "";
}

SnapshotFigures Snapshotter::figures() const {
  MutexLock lock(&mu_);
  SnapshotFigures figures = figures_;
  if (latest_.has_value()) {
    figures.step = latest_->step;
    figures.committed = latest_->time;
  }
  return figures;
}

void Snapshotter::SetLatest(const SnapshotInfo& snapshot) {
  MutexLock lock(&mu_);
  latest_ = snapshot;
}

}  // namespace keelson
