// Snapshots that one server writes: one, or one after the other while it is at work.
#ifndef KEELSON_BENCH_SNAPSHOT_LOOP_H_
#define KEELSON_BENCH_SNAPSHOT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/checkpoint/bundle_index.h"
#include "core/client/services/parameter_control.h"

namespace keelson::bench {

struct WrittenSnapshot {
  uint64_t cut_id = 0;
  // The data file, which is the caller's to remove, and the entries of its index.
  std::string path;
  int64_t bytes = 0;
  std::vector<BundleIndexEntry> entries;
  double seconds = 0;  // from the cut on
  int64_t cut_microseconds = 0;
};

struct SnapshotKind {
  // The server accounts for the changes of rows from this snapshot on.
  bool keep_changes = false;
  // WrittenSnapshot::cut_id of one with keep_changes, on which this one is a delta.
  std::optional<uint64_t> base_cut = {};
};

// Has a server that is a job's only one cut and write a snapshot into `directory`. Errors of the
// calls; FAILED_PRECONDITION: no delta is possible.
absl::StatusOr<WrittenSnapshot> WriteSnapshot(ParameterControl* server,
                                              const std::string& directory,
                                              const SnapshotKind& kind = {});

struct WrittenSnapshots {
  int snapshots = 0;
  WrittenSnapshot newest;
  double seconds = 0;  // of all, from their cuts on
  int64_t longest_cut_microseconds = 0;
  absl::Status status;

  double GigabytesPerSecond() const {
    return seconds > 0 ? static_cast<double>(newest.bytes) * snapshots / seconds / 1e9 : 0;
  }
};

// Has a server that is a job's only one cut and write one snapshot after the other, from
// construction to Finish, on a thread of its own.
class SnapshotLoop {
 public:
  // `server`, which outlives this, writes into `directory`.
  SnapshotLoop(ParameterControl* server, std::string directory)
      : server_(server), directory_(std::move(directory)), thread_([this] { Run(); }) {}
  ~SnapshotLoop() {
    if (thread_.joinable()) Finish();
  }

  // The last one is written to its end.
  WrittenSnapshots Finish();

 private:
  void Run();

  ParameterControl* const server_;
  const std::string directory_;
  std::atomic<bool> stop_{false};
  WrittenSnapshots written_;  // the thread's, until it has ended
  std::thread thread_;
};

// The GB/s at which a durable file of that size is written, with nothing else running; it is
// removed.
absl::StatusOr<double> PlainWrite(const std::string& path, int64_t bytes);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SNAPSHOT_LOOP_H_
