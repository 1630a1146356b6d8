// Cuts of all shards at one instant, as the chief has the parameter servers prepare and write them.
#ifndef KEELSON_CHIEF_SERVERS_SERVER_CUTS_H_
#define KEELSON_CHIEF_SERVERS_SERVER_CUTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/servers/round_commits.h"
#include "chief/servers/server_calls.h"
#include "chief/servers/shard_storage.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_index.h"
#include "keelson/v1/checkpoint.pb.h"
#include "keelson/v1/parameter_service.pb.h"

namespace keelson {

// Thread-safe. Errors of a server begin with its name. ABORTED: the server obeys another chief.
class ServerCuts {
 public:
  // What the cuts have of all tables.
  struct RowCounts {
    int64_t all = 0;
    int64_t changed = 0;  // since the base
  };
  // A cut of all shards, which the servers keep for Write.
  struct Cut {
    uint64_t id = 0;
    int64_t committed_round = -1;  // the same in all shards; -1: none
    // Each server has an entry for each table, which says where its rows are in the whole.
    std::vector<std::vector<v1::TableRows>> tables = {};
    // The same of what has changed since the base, for a delta; empty: none is possible.
    std::vector<std::vector<v1::TableRows>> changes = {};
    RowCounts rows = {};
  };
  // Of tables' rows: see PrepareCutRequest.
  struct Changes {
    bool keep = false;
    uint64_t base = 0;  // id of a cut whose snapshot is committed; 0: none
  };
  struct Written {
    std::vector<BundleIndexEntry> entries;
    int64_t bytes = 0;
    int64_t longest_cut_microseconds = 0;
  };

  // All outlive this.
  ServerCuts(ServerCalls* calls, RoundCommits* rounds, ShardStorage* storage,
             const StopSignal* stop)
      : calls_(calls), rounds_(rounds), storage_(storage), stop_(stop) {}

  // Has every server prepare a cut while no round is committed. `begin` is called right before, so
  // that a ledger's state that it takes has the rounds of the cut, and counts no other step as done
  // whose push is not in it. UNAVAILABLE: a server does not answer, or the shards have not
  // committed the same rounds. Those that are behind then count the rounds as lost, so that the
  // next cut is possible.
  absl::StatusOr<Cut> Prepare(absl::FunctionRef<void()> begin, const Changes& changes);

  // Has every server write its part of this cut as the snapshot of `step`, which has
  // `num_data_shards` data files; with `base`, the snapshot of the cut's base, as a delta on that,
  // which Cut::changes says is possible.
  absl::StatusOr<Written> Write(const Cut& cut, int64_t step, size_t num_data_shards,
                                const std::optional<v1::SnapshotBase>& base);

  // The snapshot of this cut is committed; the servers learn it with the next heartbeats.
  void NoteSaved(const Cut& cut) { saved_ = cut.id; }
  // The id of the newest one; 0: none.
  uint64_t saved() const { return saved_; }

 private:
  // Puts the servers' rows of each table one behind the other. INTERNAL: their tables differ.
  absl::Status PlaceRows(const std::vector<v1::PrepareCutResponse>& cuts, Cut* cut) const;
  // UNAVAILABLE: a shard has committed other rounds than another.
  absl::Status CheckEqual(const std::vector<v1::PrepareCutResponse>& cuts);

  ServerCalls* const calls_;
  RoundCommits* const rounds_;
  ShardStorage* const storage_;
  const StopSignal* const stop_;
  std::atomic<uint64_t> saved_{0};
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_SERVER_CUTS_H_
