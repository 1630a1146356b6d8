#include "bench/rows/row_snapshot.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/host_memory.h"
#include "bench/meter.h"
#include "bench/snapshot_loop.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_index.h"
#include "core/client/services/grpc_parameter_control.h"

namespace keelson::bench {
namespace {

class SnapshotMeasurement {
 public:
  SnapshotMeasurement(const RowBenchOptions& options, const RowClusterOptions& cluster_options,
                      RowCluster* cluster)
      : options_(options),
        cluster_options_(cluster_options),
        cluster_(cluster),
        prefix_(JoinPath(cluster_options.model_dir, "model.ckpt-0")) {}

  absl::StatusOr<RowSnapshotResult> Run() {
    ASSIGN_OR_RETURN(contender_, cluster_->ContenderOf({"", Direction::kPushPull, IdLaw::kZipf,
                                                        cluster_options_.dim}));
    server_ = ConnectParameterControl("ps-0", cluster_->address(), CredentialsAs("chief"));
    result_.resident = cluster_->server()->PeakResidentBytes();
    for (int i = 0; i < options_.snapshot_repeat; ++i) RETURN_IF_ERROR(Repeat());
    for (int i = 0; i < options_.snapshot_repeat; ++i) RETURN_IF_ERROR(RepeatDelta());
    result_.more_resident = cluster_->server()->PeakResidentBytes() - result_.resident;
    result_.rate_before = SpreadOf(before_);
    result_.rate_during = SpreadOf(during_);
    result_.ratio = SpreadOf(ratio_);
    result_.write = SpreadOf(write_);
    result_.plain_write = SpreadOf(plain_);
    result_.restore = SpreadOf(restore_);
    result_.restore_per_core = SpreadOf(restore_per_core_);
    result_.alone = SpreadOf(alone_);
    result_.delta_bytes = SpreadOf(delta_bytes_);
    result_.delta_seconds = SpreadOf(delta_seconds_);
    return result_;
  }

 private:
  absl::Status Repeat() {
    ASSIGN_OR_RETURN(const RunResult before, RunOnce(contender_, options_.snapshot_timing));
    SnapshotLoop loop(server_.get(), cluster_options_.model_dir);
    const absl::StatusOr<RunResult> during = RunOnce(contender_, options_.snapshot_timing);
    const WrittenSnapshots written = loop.Finish();
    RETURN_IF_ERROR(during.status());
    RETURN_IF_ERROR(written.status);
    before_.push_back(MegaRows(before));
    during_.push_back(MegaRows(*during));
    ratio_.push_back(during->Calls() / before.Calls());
    write_.push_back(written.GigabytesPerSecond());
    result_.bytes = written.newest.bytes;
    result_.snapshots += written.snapshots;
    result_.longest_cut_microseconds =
        std::max(result_.longest_cut_microseconds, written.longest_cut_microseconds);
    const absl::Status restored = Restore(written.newest);
    RETURN_IF_ERROR(RemoveFile(DataPath(prefix_, 0, 1)));
    RETURN_IF_ERROR(restored);
    ASSIGN_OR_RETURN(plain_.emplace_back(), PlainWrite(written.newest.path, written.newest.bytes));
    return absl::OkStatus();
  }

  // A whole snapshot with nothing else running, and a delta on it with a hundredth of the rows.
  absl::Status RepeatDelta() {
    ASSIGN_OR_RETURN(const WrittenSnapshot whole,
                     WriteSnapshot(server_.get(), cluster_options_.model_dir, {true}));
    RETURN_IF_ERROR(RemoveFile(whole.path));
    RETURN_IF_ERROR(
        cluster_->worker()->Call({{"do", "touch"}, {"every", 100}}, absl::Minutes(1)).status());
    ASSIGN_OR_RETURN(
        const WrittenSnapshot delta,
        WriteSnapshot(server_.get(), cluster_options_.model_dir, {true, whole.cut_id}));
    RETURN_IF_ERROR(RemoveFile(delta.path));
    alone_.push_back(static_cast<double>(whole.bytes) / whole.seconds / 1e9);
    delta_bytes_.push_back(static_cast<double>(delta.bytes) / static_cast<double>(whole.bytes));
    delta_seconds_.push_back(delta.seconds / whole.seconds);
    return absl::OkStatus();
  }

  absl::Status Restore(const WrittenSnapshot& written) {
    RETURN_IF_ERROR(RenameFile(written.path, DataPath(prefix_, 0, 1)));
    RETURN_IF_ERROR(WriteBundleIndex(FileSystem::Real(), prefix_, 1, written.entries));
    HaveTheHostGiveMemory(static_cast<size_t>(result_.resident));
    ASSIGN_OR_RETURN(const std::unique_ptr<Peer> server, StartEmptyServer(cluster_options_));
    const auto address = server->ready().at("address").get<std::string>();
    const double began = MonotonicSeconds(), used = server->CpuSeconds();
    RETURN_IF_ERROR(InitializeTable({RowSystem::kKeelson, address, cluster_options_.dim},
                                    /*restore_step=*/0));
    const double seconds = MonotonicSeconds() - began, cpu = server->CpuSeconds() - used;
    RETURN_IF_ERROR(RemoveFile(IndexPath(prefix_)));
    result_.rows = static_cast<int64_t>(cluster_options_.rows);
    const double rows = static_cast<double>(cluster_options_.rows) / 1e6;
    restore_.push_back(rows / seconds);
    restore_per_core_.push_back(rows / cpu);
    return absl::OkStatus();
  }

  const RowBenchOptions& options_;
  const RowClusterOptions& cluster_options_;
  RowCluster* const cluster_;
  const std::string prefix_;
  Contender contender_;
  std::unique_ptr<ParameterControl> server_;
  RowSnapshotResult result_;
  std::vector<double> before_, during_, ratio_, write_, plain_, restore_, restore_per_core_, alone_;
  std::vector<double> delta_bytes_, delta_seconds_;
};

}  // namespace

absl::StatusOr<RowSnapshotResult> MeasureRowSnapshots(const RowBenchOptions& options,
                                                      const RowClusterOptions& cluster_options,
                                                      RowCluster* cluster) {
  return SnapshotMeasurement(options, cluster_options, cluster).Run();
}

}  // namespace keelson::bench
