// The chief's calls that write a shard's part of a snapshot.
#ifndef KEELSON_PS_SERVER_SERVICE_SNAPSHOT_CALLS_H_
#define KEELSON_PS_SERVER_SERVICE_SNAPSHOT_CALLS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/client/services/parameter_control.h"
#include "ps_server/service/chief_admission.h"
#include "ps_server/service/server_figures.h"
#include "ps_server/snapshots/prepared_cuts.h"
#include "ps_server/snapshots/snapshot_files.h"
#include "ps_server/snapshots/table_files.h"
#include "ps_server/units/shard_store.h"

namespace keelson {

// Thread-safe. Errors: see ParameterService.
class SnapshotCalls {
 public:
  // The store of the current shard. UNAVAILABLE: there is none, or not the one with this id; 0:
  // any.
  using FindStore = std::function<absl::StatusOr<std::shared_ptr<ShardStore>>(uint64_t id)>;

  // All outlive this.
  SnapshotCalls(SnapshotFiles* files, FindStore store, ChiefAdmission* chiefs,
                FigureCounter* figures, const Clock* clock)
      : files_(files),
        store_(std::move(store)),
        chiefs_(chiefs),
        figures_(figures),
        clock_(clock),
        prepared_(clock) {}

  absl::Status Prepare(const v1::PrepareCutRequest& request, v1::PrepareCutResponse* response);
  absl::Status Write(const v1::WriteSnapshotRequest& request, v1::WriteSnapshotResponse* response);
  absl::Status Stream(const v1::StreamSnapshotRequest& request, ParameterControl::ByteSink sink,
                      v1::WriteSnapshotResponse* response);

  // Drops a prepared cut: of another chief than this one; whose time has passed; of a shard that is
  // dropped. While one waits, pushes copy the blocks that they change.
  void DropCutOfOthers(uint64_t chief) { prepared_.DropOthers(chief); }
  void DropExpiredCut() { prepared_.DropExpired(); }
  void DropCut() { prepared_.Drop(); }

  // The snapshot of this cut is committed.
  void NoteSaved(uint64_t cut_id);
  // The number of the store's changes (ShardStore::changes) that a committed snapshot has: those
  // before its newest cut, and none if it has no cut yet; nothing while that cut is not committed.
  std::optional<uint64_t> SavedChanges(const ShardStore& store) const;

 private:
  // The newest prepared cut.
  struct NewestCut {
    uint64_t id = 0;
    const ShardStore* store = nullptr;  // compared, never used
    uint64_t changes = 0;
    bool saved = false;
  };

  // A prepared cut of a store with tables, on which a delta may build once its snapshot is
  // committed.
  struct EarlierCut {
    uint64_t id = 0;
    std::weak_ptr<const ShardStore> store;
    uint64_t generation = 0;  // TableCut's
  };
  static constexpr size_t kMostEarlierCuts = RowChanges::kMostGenerations;

  using GoOn = absl::FunctionRef<absl::Status()>;
  using OpenWriter = absl::FunctionRef<absl::StatusOr<std::unique_ptr<BundleDataWriter>>()>;

  // The cut that the request names, or one of now. UNAVAILABLE also: the cut is of a shard that is
  // no longer this server's.
  template <typename Request>
  absl::StatusOr<StoreCut> CutOf(const Request& request);
  // Where the request says that the rows of tables are. INVALID_ARGUMENT: the cut's are others.
  template <typename Request>
  static absl::StatusOr<TablePlaces> PlacesOf(absl::string_view call, const Request& request,
                                              const StoreCut& cut);
  // What the request says of earlier cuts; those before its base are forgotten.
  CutChanges ChangesOf(const v1::PrepareCutRequest& request,
                       const std::shared_ptr<ShardStore>& store);
  // Ends with the error of `go_on` (WriteShard), and then leaves no file behind.
  absl::Status Snapshot(const StoreCut& cut, const TablePlaces& places, OpenWriter open, GoOn go_on,
                        v1::WriteSnapshotResponse* response);
  absl::Status WriteCut(const StoreCut& cut, const TablePlaces& places, OpenWriter open, GoOn go_on,
                        v1::WriteSnapshotResponse* response);

  SnapshotFiles* const files_;
  const FindStore store_;
  ChiefAdmission* const chiefs_;
  FigureCounter* const figures_;
  const Clock* const clock_;
  PreparedCuts prepared_;

  // Held while a snapshot is written, so that one that an earlier chief began ends before its
  // successor's of the same name begins.
  Mutex snapshot_mu_;
  mutable Mutex newest_mu_;
  NewestCut newest_ ABSL_GUARDED_BY(newest_mu_);
  std::vector<EarlierCut> earlier_ ABSL_GUARDED_BY(newest_mu_);  // oldest first
  // The number of streams of a snapshot that were begun; only the last one goes on.
  std::atomic<uint64_t> streams_{0};
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_SNAPSHOT_CALLS_H_
