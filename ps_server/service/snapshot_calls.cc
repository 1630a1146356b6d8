#include "ps_server/service/snapshot_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/background.h"
#include "core/base/status_macros.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"

namespace keelson {

absl::Status SnapshotCalls::Write(const v1::WriteSnapshotRequest& request,
                                  v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "WriteSnapshot";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header().incarnation()));
  MutexLock lock(&snapshot_mu_);
  // Another chief may have called during the wait.
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header().incarnation()));
  return Snapshot([&] { return files_->Create(request); }, response);
}

absl::Status SnapshotCalls::Stream(const v1::StreamSnapshotRequest& request,
                                   ParameterControl::ByteSink sink,
                                   v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "StreamSnapshot";
  const uint64_t chief = request.header().incarnation();
  RETURN_IF_ERROR(chiefs_->Admit(kCall, chief));
  const uint64_t stream = ++streams_;
  const auto send = [&](absl::string_view bytes) -> absl::Status {
    RETURN_IF_ERROR(chiefs_->Admit(kCall, chief));
    // Each stream keeps a cut in memory until its receiver has taken it.
    if (stream != streams_) {
      return absl::UnavailableError(absl::StrCat(kCall, ": a later call streams the shard"));
    }
    return sink(bytes);
  };
  return Snapshot(
      [&]() -> absl::StatusOr<std::unique_ptr<BundleDataWriter>> {
        return BundleDataWriter::CreateOn(FileOn(send), request.data_shard());
      },
      response);
}

absl::Status SnapshotCalls::Snapshot(OpenWriter open, v1::WriteSnapshotResponse* response) {
  ASSIGN_OR_RETURN(const std::shared_ptr<BlockStore> store, store_());
  const absl::Status status = WriteCut(*store, open, response);
  if (!status.ok()) figures_->CountFailedSnapshot();
  return status;
}

absl::Status SnapshotCalls::WriteCut(const BlockStore& store, OpenWriter open,
                                     v1::WriteSnapshotResponse* response) {
  const absl::Duration start = clock_->Monotonic();
  const ShardCut cut = store.Cut();
  const absl::Duration cut_time = clock_->Monotonic() - start;
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer, open());
  absl::StatusOr<WrittenShard> result;
  RunInBackground([&] { result = WriteShard(store, cut, writer.get()); });
  ASSIGN_OR_RETURN(WrittenShard written, std::move(result));
  for (BundleIndexEntry& entry : written.entries) {
    v1::WriteSnapshotResponse::Entry* out = response->add_entries();
    out->set_key(std::move(entry.key));
    *out->mutable_entry() = std::move(entry.entry);
  }
  response->set_shard_step(cut.shard_step);
  response->set_bytes_written(written.bytes_written);
  response->set_cut_microseconds(absl::ToInt64Microseconds(cut_time));
  figures_->CountSnapshot(written.bytes_written, clock_->Monotonic() - start, cut_time);
  return absl::OkStatus();
}

}  // namespace keelson
