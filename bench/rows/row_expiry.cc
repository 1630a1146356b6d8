#include "bench/rows/row_expiry.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/client/services/grpc_parameter_control.h"

namespace keelson::bench {
namespace {

// A pass over the rows takes a quarter of it (RowSweep).
constexpr int64_t kExpireAfterSteps = 400;
constexpr int kMostRuns = 60;

class ExpiryMeasurement {
 public:
  ExpiryMeasurement(const RowBenchOptions& options, const RowClusterOptions& cluster_options,
                    RowCluster* lasting)
      : timing_(options.timing), lasting_(lasting), cluster_options_(cluster_options) {
    cluster_options_.expire_after_steps = kExpireAfterSteps;
  }

  absl::StatusOr<RowExpiryResult> Run() {
    ASSIGN_OR_RETURN(const std::unique_ptr<RowCluster> expiring,
                     RowCluster::Start(cluster_options_));
    server_ = ConnectParameterControl("ps-0", expiring->address(), CredentialsAs("chief"));
    ASSIGN_OR_RETURN(const int64_t filled, Rows());
    result_.rows = filled;
    result_.resident = expiring->server()->PeakResidentBytes();
    RETURN_IF_ERROR(TakeTurns(expiring.get()));
    ASSIGN_OR_RETURN(result_.left, Rows());
    RETURN_IF_ERROR(expiring->worker()->Call({{"do", "fill"}}, absl::Minutes(5)).status());
    result_.resident_again = expiring->server()->PeakResidentBytes();
    return result_;
  }

 private:
  absl::Status TakeTurns(RowCluster* expiring) {
    const RowScenario scenario = {"", Direction::kPushPull, IdLaw::kZipf, cluster_options_.dim};
    ASSIGN_OR_RETURN(const Contender without, lasting_->ContenderOf(scenario));
    ASSIGN_OR_RETURN(const Contender with, expiring->ContenderOf(scenario));
    LatencyHistogram latencies_without, latencies_with;
    int64_t before = 0;
    for (int run = 0; run < kMostRuns; ++run) {
      ASSIGN_OR_RETURN(const RunResult lasting_run, RunOnce(without, timing_));
      ASSIGN_OR_RETURN(const RunResult expiring_run, RunOnce(with, timing_));
      latencies_without.Add(lasting_run.report.latencies);
      latencies_with.Add(expiring_run.report.latencies);
      ASSIGN_OR_RETURN(const int64_t expired, Expired());
      // A run without expiry behind those with some.
      if (expired > 0 && expired == before) break;
      before = expired;
    }
    result_.expired = before;
    result_.p99_ms_without = latencies_without.PercentileMicroseconds(0.99) / 1e3;
    result_.p99_ms_with = latencies_with.PercentileMicroseconds(0.99) / 1e3;
    return absl::OkStatus();
  }

  absl::StatusOr<v1::TablePartStatus> Status() {
    v1::ShardStatus status;
    RETURN_IF_ERROR(server_->GetStatus({}, &status));
    if (status.tables_size() == 1) return status.tables(0);
    return absl::InternalError(
        absl::StrCat("a server's status: expected one table, found ", status.tables_size()));
  }
  absl::StatusOr<int64_t> Rows() {
    ASSIGN_OR_RETURN(const v1::TablePartStatus table, Status());
    return table.rows();
  }
  absl::StatusOr<int64_t> Expired() {
    ASSIGN_OR_RETURN(const v1::TablePartStatus table, Status());
    return table.expired_rows();
  }

  const RunTiming timing_;
  RowCluster* const lasting_;
  RowClusterOptions cluster_options_;
  std::unique_ptr<ParameterControl> server_;
  RowExpiryResult result_;
};

}  // namespace

absl::StatusOr<RowExpiryResult> MeasureRowExpiry(const RowBenchOptions& options,
                                                 const RowClusterOptions& cluster_options,
                                                 RowCluster* cluster) {
  return ExpiryMeasurement(options, cluster_options, cluster).Run();
}

}  // namespace keelson::bench
