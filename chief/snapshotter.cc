#include "chief/snapshotter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"

namespace keelson {
namespace {

absl::StatusOr<v1::JobState> ReadJobState(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  v1::JobState state;
  if (bundle->Contains(kJobStateName)) {
    ASSIGN_OR_RETURN(const std::string bytes, bundle->ReadString(kJobStateName));
    if (!state.ParseFromString(bytes)) {
      return absl::DataLossError(absl::StrCat(prefix, ": ", kJobStateName, ": not a JobState"));
    }
    return state;
  }
  ASSIGN_OR_RETURN(const int64_t step, bundle->ReadInt64("global_step"));
  state.set_global_step(step);
  return state;
}

bool IsDamage(const absl::Status& status) {
  return status.code() == absl::StatusCode::kDataLoss ||
         status.code() == absl::StatusCode::kNotFound;
}

}  // namespace

absl::Status Snapshotter::Write(const v1::JobState& state) {
  const std::string prefix = directory_->SnapshotPrefix(state.global_step());
  // Not a second time over its own files: an interruption would damage what is good.
  if (prefix == latest_prefix()) return absl::OkStatus();
  const absl::Status status = WriteParts(prefix, state);
  if (status.ok()) {
    SetLatest(prefix);
    return status;
  }
  RemoveFile(IndexPath(prefix)).IgnoreError();
  const int num_data_shards = servers_->size() + 1;
  for (int i = 0; i < num_data_shards; ++i) {
    RemoveFile(DataPath(prefix, i, num_data_shards)).IgnoreError();
  }
  return status;
}

absl::Status Snapshotter::WriteParts(const std::string& prefix, const v1::JobState& state) {
  const absl::Duration start = clock_->Monotonic();
  const int num_data_shards = servers_->size() + 1;
  ASSIGN_OR_RETURN(ServerGroup::WrittenSnapshot written,
                   servers_->WriteSnapshot(prefix, num_data_shards));
  ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> own,
                   WriteChiefPart(prefix, servers_->size(), num_data_shards, state));
  std::move(own.begin(), own.end(), std::back_inserter(written.entries));
  RETURN_IF_ERROR(WriteBundleIndex(prefix, num_data_shards, std::move(written.entries)));
  RETURN_IF_ERROR(directory_->Commit(state.global_step(), retention_));
  LogInfo("snapshot of step ", state.global_step(), ": ", written.bytes, " bytes in ",
          absl::FormatDuration(absl::Trunc(clock_->Monotonic() - start, absl::Milliseconds(1))),
          ", pushes waited at most ", written.longest_cut_microseconds, " us, ", prefix);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<BundleIndexEntry>> Snapshotter::WriteChiefPart(
    const std::string& prefix, int data_shard, int num_data_shards, const v1::JobState& state) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<BundleDataWriter> writer,
      BundleDataWriter::Create(DataPath(prefix, data_shard, num_data_shards), data_shard));
  RETURN_IF_ERROR(writer->AddInt64("global_step", state.global_step()));
  RETURN_IF_ERROR(writer->AddString(kJobStateName, state.SerializeAsString()));
  return writer->Finish();
}

absl::StatusOr<Snapshotter::Restored> Snapshotter::RestoreLatest(
    absl::FunctionRef<absl::Status(const Restored&)> restore) {
  ASSIGN_OR_RETURN(std::vector<SnapshotInfo> snapshots, directory_->List());
  std::reverse(snapshots.begin(), snapshots.end());
  for (const SnapshotInfo& snapshot : snapshots) {
    absl::StatusOr<v1::JobState> state = ReadJobState(snapshot.prefix);
    absl::Status status = state.status();
    if (status.ok()) {
      const Restored restored = {snapshot.prefix, *std::move(state)};
      status = restore(restored);
      if (status.ok()) {
        SetLatest(snapshot.prefix);
        return restored;
      }
    }
    if (!IsDamage(status)) return status;
    LogError("snapshot ", snapshot.prefix,
             " cannot be used, trying the one before: ", status.message());
  }
  if (snapshots.empty()) return Restored();
  return absl::DataLossError(absl::StrCat(directory_->model_dir(), ": none of its ",
                                          snapshots.size(), " snapshots can be used"));
}

std::string Snapshotter::latest_prefix() const {
  MutexLock lock(&mu_);
  return latest_prefix_;
}

void Snapshotter::SetLatest(const std::string& prefix) {
  MutexLock lock(&mu_);
  latest_prefix_ = prefix;
}

}  // namespace keelson
