#include "ps_server/service/snapshot_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/background.h"
#include "core/base/status_macros.h"
#include "ps_server/snapshots/shard_files.h"
#include "ps_server/snapshots/streamed_shard.h"

namespace keelson {

absl::Status SnapshotCalls::Prepare(const v1::PrepareCutRequest& request,
                                    v1::PrepareCutResponse* response) {
  constexpr absl::string_view kCall = "PrepareCut";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  if (request.cut_id() == 0) {
    return absl::InvalidArgumentError("PrepareCut: cut_id: expected a number other than 0");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ShardStore> store, store_(request.store_id()));
  const CutChanges changes = ChangesOf(request, store);
  StoreCut cut = CutNow(std::move(store), clock_, changes);
  response->set_shard_step(cut.cut.shard_step);
  response->set_committed_round(cut.cut.committed.round);
  if (const TableCut* const tables = cut.cut.tables.get(); tables != nullptr) {
    for (size_t t = 0; t < cut.store->tables()->tables_and_ghosts().size(); ++t) {
      response->add_table_rows(tables->Rows(t));
      if (!tables->has_changes()) continue;
      v1::PrepareCutResponse::Changes* const of_table = response->add_changes();
      of_table->set_rows(tables->Rows(t, TableCut::Part::kChanged));
      of_table->set_erased(tables->NumErased(t));
    }
  }
  {
    MutexLock lock(&newest_mu_);
    if (changes.keep && cut.cut.tables != nullptr) {
      if (earlier_.size() == kMostEarlierCuts) earlier_.erase(earlier_.begin());
      earlier_.push_back({request.cut_id(), cut.store, cut.cut.tables->generation()});
    }
    newest_ = {request.cut_id(), cut.store.get(), cut.cut.changes, /*saved=*/false};
  }
  prepared_.Keep(request.header().incarnation(), request.cut_id(), std::move(cut));
  return absl::OkStatus();
}

CutChanges SnapshotCalls::ChangesOf(const v1::PrepareCutRequest& request,
                                    const std::shared_ptr<ShardStore>& store) {
  CutChanges changes;
  changes.keep = request.keep_changes();
  MutexLock lock(&newest_mu_);
  const auto base = std::find_if(earlier_.begin(), earlier_.end(), [&](const EarlierCut& cut) {
    return cut.id == request.base_cut() && cut.store.lock() == store;
  });
  if (base != earlier_.end()) changes.since = base->generation;
  earlier_.erase(earlier_.begin(), base);
  return changes;
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
  ASSIGN_OR_RETURN(std::shared_ptr<ShardStore> store, store_(/*id=*/0));
  if (request.cut_id() == 0) return CutNow(std::move(store), clock_);
  ASSIGN_OR_RETURN(StoreCut cut, prepared_.Take(request.header().incarnation(), request.cut_id()));
  if (cut.store == store) return cut;
  return absl::UnavailableError(
      absl::StrCat("cut ", request.cut_id(), " is of a shard that was replaced"));
}

template <typename Request>
absl::StatusOr<TablePlaces> SnapshotCalls::PlacesOf(absl::string_view call, const Request& request,
                                                    const StoreCut& cut) {
  TablePlaces places;
  if (request.has_base()) places.base = request.base();
  for (const v1::TableRows& table : request.tables()) {
    places.rows.push_back({table.first_row(), table.total_rows()});
    places.erased.push_back({table.first_erased(), table.total_erased()});
  }
  if (cut.cut.tables == nullptr) {
    if (places.rows.empty() && !request.has_base()) return places;
    return absl::InvalidArgumentError(
        absl::StrCat(call, ": tables: expected none, and no base, found ", places.rows.size()));
  }
  const absl::Status status = CheckTablePlaces(*cut.store->tables(), *cut.cut.tables, places);
  if (status.ok()) return places;
  return absl::Status(status.code(), absl::StrCat(call, ": ", status.message()));
}

absl::Status SnapshotCalls::Write(const v1::WriteSnapshotRequest& request,
                                  v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "WriteSnapshot";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  // Before the wait: a call that waits for another's file does not cut later than it was asked to.
  ASSIGN_OR_RETURN(const StoreCut cut, CutOf(request));
  ASSIGN_OR_RETURN(const TablePlaces places, PlacesOf(kCall, request, cut));
  MutexLock lock(&snapshot_mu_);
  // Another chief may have called during the wait.
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  return Snapshot(
      cut, places, [&] { return files_->Create(request); },
      [&] { return chiefs_->CheckNotReplaced(kCall, request.header()); }, response);
}

absl::Status SnapshotCalls::Stream(const v1::StreamSnapshotRequest& request,
                                   ParameterControl::ByteSink sink,
                                   v1::WriteSnapshotResponse* response) {
  constexpr absl::string_view kCall = "StreamSnapshot";
  RETURN_IF_ERROR(chiefs_->Admit(kCall, request.header()));
  ASSIGN_OR_RETURN(const StoreCut cut, CutOf(request));
  ASSIGN_OR_RETURN(const TablePlaces places, PlacesOf(kCall, request, cut));
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
      cut, places,
      [&]() -> absl::StatusOr<std::unique_ptr<BundleDataWriter>> {
        return BundleDataWriter::CreateOn(FileOn(send), request.data_shard());
      },
      [] { return absl::OkStatus(); }, response);
}

absl::Status SnapshotCalls::Snapshot(const StoreCut& cut, const TablePlaces& places,
                                     OpenWriter open, GoOn go_on,
                                     v1::WriteSnapshotResponse* response) {
  const absl::Status status = WriteCut(cut, places, open, go_on, response);
  if (!status.ok()) figures_->CountFailedSnapshot();
  return status;
}

absl::Status SnapshotCalls::WriteCut(const StoreCut& cut, const TablePlaces& places,
                                     OpenWriter open, GoOn go_on,
                                     v1::WriteSnapshotResponse* response) {
  const absl::Duration start = clock_->Monotonic();
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer, open());
  absl::StatusOr<WrittenShard> result;
  RunInBackground([&] { result = WriteShard(*cut.store, cut.cut, places, writer.get(), go_on); });
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
