// The client that workers use, on a parameter server that has one table and no variables.
#ifndef KEELSON_BENCH_ROWS_KEELSON_ROW_CLIENT_H_
#define KEELSON_BENCH_ROWS_KEELSON_ROW_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rows/row_client.h"
#include "core/base/stop_signal.h"
#include "core/client/services/parameter_client.h"
#include "core/wire/wire_format.h"

namespace keelson::bench {

// Gives the target's server the table, with Adagrad; with `restore_step`, from the snapshot of that
// step in its model directory. Errors of the calls.
absl::Status InitializeTable(const RowTarget& target,
                             std::optional<int64_t> restore_step = std::nullopt);

class KeelsonRowClient : public RowClient {
 public:
  // `format`: of gradients and rows. Errors of ConnectParameterClient.
  static absl::StatusOr<std::unique_ptr<KeelsonRowClient>> Create(
      const RowTarget& target, WireFormat format = WireFormat::kFloat32);

  absl::Status Fill(uint64_t rows) override;
  absl::Status Pull(const RowBatch& batch) override;
  absl::Status BeforePush(const RowBatch& batch) override { return Pull(batch); }
  absl::Status Push(const RowBatch& batch) override;
  absl::Status PushPull(const RowBatch& next) override;

  // What the last Push or PushPull returned.
  const PushResult& result() const { return result_; }

 private:
  explicit KeelsonRowClient(int64_t dim) : dim_(dim) {}

  absl::Status Step(RowBatch next);
  absl::Span<const float> GradientsOf(size_t ids);

  const int64_t dim_;
  StopSignal stop_;
  std::unique_ptr<ParameterClient> client_;
  std::vector<float> gradients_;  // of as many rows as any batch has had
  int64_t step_ = 0;
  PushResult result_;
};

// What rows cost on the wire, with all headers, in bytes.
struct RowWireBytes {
  double push = 0;    // of a gradient with its id
  double pull = 0;    // of a row with its id, both directions together
  double absent = 0;  // of an id that has no row, both directions together
};

// The table has the rows [0, rows).
absl::StatusOr<RowWireBytes> MeasureRowBytes(KeelsonRowClient* client, uint64_t rows);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_ROWS_KEELSON_ROW_CLIENT_H_
