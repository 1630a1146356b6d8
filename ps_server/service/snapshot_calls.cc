#include "ps_server/service/snapshot_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/background.h"
#include "core/base/status_macros.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"
#include "ps_server/snapshots/table_files.h"

namespace keelson {

absl::Status SnapshotCalls::Prepare(const v1::PrepareCutRequest& request,
                                    v1::PrepareCutResponse* response) {
  constexpr absl::string_view kCall = "PrepareCut";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  if (request.cut_id() == 0) {
    return absl::InvalidArgumentError("PrepareCut: cut_id: expected a number other than 0");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ShardStore> store, store_());
  StoreCut cut = CutNow(std::move(store), clock_);
  response->set_shard_step(cut.cut.shard_step);
  response->set_committed_round(cut.cut.committed.round);
  if (const TableCut* const tables = cut.cut.tables.get(); tables != nullptr) {
    for (size_t t = 0; t < cut.store->tables()->tables_and_ghosts().size(); ++t) {
      response->add_table_rows(tables->Rows(t));
    }
  }
  {
    MutexLock lock(&newest_mu_);
    newest_ = {request.cut_id(), cut.store.get(), cut.cut.changes, /*saved=*/false};
  }
  prepared_.Keep(request.header().incarnation(), request.cut_id(), std::move(cut));
  return absl::OkStatus();
}

void SnapshotCalls::NoteSaved(uint64_t cut_id) {
  MutexLock lock(&newest_mu_);
  if (cut_id == newest_.id) newest_.saved = true;
}

std::optional<uint64_t> SnapshotCalls::SavedChanges(const ShardStore& store) const {
  MutexLock lock(&newest_mu_);
  if (newest_.store != &store) return 0;
  if (!newest_.saved) return std::nullopt;
  return newest_.changes;
}

template <typename Request>
absl::StatusOr<StoreCut> SnapshotCalls::CutOf(const Request& request) {
  ASSIGN_OR_RETURN(std::shared_ptr<ShardStore> store, store_());
  if (request.cut_id() == 0) return CutNow(std::move(store), clock_);
  ASSIGN_OR_RETURN(StoreCut cut, prepared_.Take(request.header().incarnation(), request.cut_id()));
  if (cut.store == store) return cut;
  return absl::UnavailableError(
      absl::StrCat("cut ", request.cut_id(), " is of a shard that was replaced"));
}

template <typename Request>
absl::StatusOr<std::vector<TableRowRange>> SnapshotCalls::PlacesOf(absl::string_view call,
                                                                   const Request& request,
                                                                   const StoreCut& cut) {
  std::vector<TableRowRange> places;
  for (const v1::TableRows& table : request.tables()) {
    places.push_back({table.first_row(), table.total_rows()});
  }
  if (cut.cut.tables == nullptr) {
    if (places.empty()) return places;
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": tables: expected none, found ", places.size()));
  }
  const absl::Status status = CheckTableRanges(*cut.store->tables(), *cut.cut.tables, places);
  if (status.ok()) return places;
  return absl::Status(status.code(), absl::StrCat(call, ": ", status.message()));
}

absl::Status SnapshotCalls::Write(const v1::WriteSnapshotRequest& request,
                                  v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "WriteSnapshot";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  // Before the wait: a call that waits for another's file does not cut later than it was asked to.
  ASSIGN_OR_RETURN(const StoreCut cut, CutOf(request));
  ASSIGN_OR_RETURN(const std::vector<TableRowRange> tables, PlacesOf(kCall, request, cut));
  MutexLock lock(&snapshot_mu_);
  // Another chief may have called during the wait.
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  return Snapshot(
      cut, tables, [&] { return files_->Create(request); },
      [&] { return chiefs_->CheckNotReplaced(kCall, request.header()); }, response);
}

absl::Status SnapshotCalls::Stream(const v1::StreamSnapshotRequest& request,
                                   ParameterControl::ByteSink sink,
                                   v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "StreamSnapshot";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  ASSIGN_OR_RETURN(const StoreCut cut, CutOf(request));
  ASSIGN_OR_RETURN(const std::vector<TableRowRange> tables, PlacesOf(kCall, request, cut));
  const uint64_t stream = ++streams_;
  const auto send = [&](absl::string_view bytes) -> absl::Status {
    RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
    // Each stream keeps a cut in memory until its receiver has taken it.
    if (stream != streams_) {
      return absl::UnavailableError(absl::StrCat(kCall, ": a later call streams the shard"));
    }
    return sink(bytes);
  };
  return Snapshot(
      cut, tables,
      [&]() -> absl::StatusOr<std::unique_ptr<BundleDataWriter>> {
        return BundleDataWriter::CreateOn(FileOn(send), request.data_shard());
      },
      [] { return absl::OkStatus(); }, response);
}

absl::Status SnapshotCalls::Snapshot(const StoreCut& cut, absl::Span<const TableRowRange> tables,
                                     OpenWriter open, GoOn go_on,
                                     v1::WriteSnapshotResponse* response) {
  const absl::Status status = WriteCut(cut, tables, open, go_on, response);
  if (!status.ok()) figures_->CountFailedSnapshot();
  return status;
}

absl::Status SnapshotCalls::WriteCut(const StoreCut& cut, absl::Span<const TableRowRange> tables,
                                     OpenWriter open, GoOn go_on,
                                     v1::WriteSnapshotResponse* response) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer, open());
  absl::StatusOr<WrittenShard> result;
  RunInBackground([&] { result = WriteShard(*cut.store, cut.cut, tables, writer.get(), go_on); });
  ASSIGN_OR_RETURN(WrittenShard written, std::move(result));
  for (BundleIndexEntry& entry : written.entries) {
    v1::WriteSnapshotResponse::Entry* out = response->add_entries();
    out->set_key(std::move(entry.key));
    *out->mutable_entry() = std::move(entry.entry);
  }
  response->set_shard_step(cut.cut.shard_step);
  response->set_bytes_written(written.bytes_written);
  response->set_cut_microseconds(absl::ToInt64Microseconds(cut.time));
  figures_->CountSnapshot(written.bytes_written, clock_->Monotonic() - start, cut.time);
  return absl::OkStatus();
}

}  // namespace keelson
