#include "bench/snapshot_loop.h"

#include <algorithm>
#include <memory>

#include "bench/meter.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"

namespace keelson::bench {
namespace {

constexpr size_t kPlainPieceBytes = 1 << 20;
// Above that with which the server was initialized.
constexpr uint64_t kTerm = 1'000'000;
constexpr uint64_t kChief = 1;

v1::RequestHeader Header() {
  v1::RequestHeader header;
  header.set_chief_term(kTerm);
  header.set_incarnation(kChief);
  return header;
}

}  // namespace

WrittenSnapshots SnapshotLoop::Finish() {
  stop_ = true;
  thread_.join();
  return written_;
}

void SnapshotLoop::Run() {
  while (true) {
    absl::StatusOr<WrittenSnapshot> written = WriteSnapshot(server_, directory_);
    written_.status = written.status();
    if (!written.ok()) return;
    ++written_.snapshots;
    written_.seconds += written->seconds;
    written_.longest_cut_microseconds =
        std::max(written_.longest_cut_microseconds, written->cut_microseconds);
    written_.newest = *std::move(written);
    if (stop_) return;
    written_.status = RemoveFile(written_.newest.path);
    if (!written_.status.ok()) return;
  }
}

absl::StatusOr<WrittenSnapshot> WriteSnapshot(ParameterControl* server,
                                              const std::string& directory,
                                              const SnapshotKind& kind) {
  const double start = MonotonicSeconds();
  WrittenSnapshot written;
  written.cut_id = RandomId();
  v1::PrepareCutRequest prepare;
  *prepare.mutable_header() = Header();
  prepare.set_cut_id(written.cut_id);
  prepare.set_keep_changes(kind.keep_changes);
  if (kind.base_cut.has_value()) prepare.set_base_cut(*kind.base_cut);
  v1::PrepareCutResponse cut;
  RETURN_IF_ERROR(server->PrepareCut(prepare, &cut));
  v1::WriteSnapshotRequest request;
  *request.mutable_header() = Header();
  request.set_num_data_shards(1);
  request.set_cut_id(written.cut_id);
  if (kind.base_cut.has_value()) {
    if (cut.changes().empty()) {
      return absl::FailedPreconditionError("a delta: the server does not know what has changed");
    }
    request.mutable_base()->set_snapshot_id(*kind.base_cut);
    for (const auto& changes : cut.changes()) {
      v1::TableRows* const table = request.add_tables();
      table->set_total_rows(changes.rows());
      table->set_total_erased(changes.erased());
    }
  } else {
    for (const int64_t rows : cut.table_rows()) request.add_tables()->set_total_rows(rows);
  }
  v1::WriteSnapshotResponse response;
  RETURN_IF_ERROR(server->WriteSnapshot(request, &response));
  written.seconds = MonotonicSeconds() - start;
  written.path =
      PendingPath(JoinPath(directory, "model.ckpt-0.data-00000-of-00001"), kTerm, written.cut_id);
  written.bytes = response.bytes_written();
  for (const auto& entry : response.entries()) {
    written.entries.push_back({entry.key(), entry.entry()});
  }
  written.cut_microseconds = response.cut_microseconds();
  return written;
}

absl::StatusOr<double> PlainWrite(const std::string& path, int64_t bytes) {
  const std::string piece(kPlainPieceBytes, 'x');
  const double start = MonotonicSeconds();
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                   FileSystem::Real()->OpenForAppend(path, /*truncate=*/true));
  for (int64_t done = 0; done < bytes; done += static_cast<int64_t>(piece.size())) {
    RETURN_IF_ERROR(file->Append(piece));
  }
  RETURN_IF_ERROR(file->Close());
  const double seconds = MonotonicSeconds() - start;
  RETURN_IF_ERROR(RemoveFile(path));
  return static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace keelson::bench
