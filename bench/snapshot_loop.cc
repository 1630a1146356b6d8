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
  while (written_.status.ok()) {
    written_.status = WriteOne();
    if (stop_ || !written_.status.ok()) return;
    written_.status = RemoveFile(written_.path);
  }
}

absl::Status SnapshotLoop::WriteOne() {
  const double start = MonotonicSeconds();
  v1::PrepareCutRequest prepare;
  *prepare.mutable_header() = Header();
  prepare.set_cut_id(RandomId());
  v1::PrepareCutResponse cut;
  RETURN_IF_ERROR(server_->PrepareCut(prepare, &cut));
  v1::WriteSnapshotRequest request;
  *request.mutable_header() = Header();
  request.set_num_data_shards(1);
  request.set_cut_id(prepare.cut_id());
  for (const int64_t rows : cut.table_rows()) request.add_tables()->set_total_rows(rows);
  v1::WriteSnapshotResponse response;
  RETURN_IF_ERROR(server_->WriteSnapshot(request, &response));
  written_.seconds += MonotonicSeconds() - start;
  written_.path = PendingPath(JoinPath(directory_, "model.ckpt-0.data-00000-of-00001"), kTerm,
                              prepare.cut_id());
  written_.bytes = response.bytes_written();
  written_.entries.clear();
  for (const auto& entry : response.entries()) {
    written_.entries.push_back({entry.key(), entry.entry()});
  }
  written_.longest_cut_microseconds =
      std::max(written_.longest_cut_microseconds, response.cut_microseconds());
  ++written_.snapshots;
  return absl::OkStatus();
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
