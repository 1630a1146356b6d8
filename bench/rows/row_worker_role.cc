#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bench/load_client.h"
#include "bench/meter.h"
#include "bench/rows/keelson_row_client.h"
#include "bench/rows/row_batches.h"
#include "bench/rows/row_client.h"
#include "bench/rows/row_roles.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

// More rows than caches hold.
constexpr size_t kBatches = 16;

class RowWorker : public PeerRole {
 public:
  RowWorker(RowTarget target, uint64_t rows, std::unique_ptr<RowClient> client)
      : target_(std::move(target)), rows_(rows), client_(std::move(client)) {}

  absl::StatusOr<json> Do(const json& command) override {
    const auto what = command.at("do").get<std::string>();
    if (what == "run") {
      return Run(static_cast<Direction>(command.at("direction").get<int>()),
                 IdLawFromName(command.at("law").get<std::string>()), WindowOf(command));
    }
    if (what == "wire") return Bytes(command.at("format").get<std::string>());
    if (what == "touch") return Touch(command.at("every").get<uint64_t>());
    RETURN_IF_ERROR(what == "fill" ? client_->Fill(rows_) : InitializeTable(target_));
    return json::object();
  }

 private:
  const std::vector<RowBatch>& BatchesOf(IdLaw law) {
    std::vector<RowBatch>& batches = batches_[law];
    if (batches.empty()) {
      batches = DrawBatches(law, rows_, kBatches, static_cast<uint64_t>(target_.client));
    }
    return batches;
  }

  absl::StatusOr<json> Run(Direction direction, IdLaw law, const Window& window) {
    const std::vector<RowBatch>& batches = BatchesOf(law);
    if (direction == Direction::kPushPull) RETURN_IF_ERROR(client_->Pull(batches.back()));
    Meter meter(window);
    Meter::Operation operation;
    do {
      const RowBatch& batch = batches[next_++ % batches.size()];
      const double before = MonotonicSeconds();
      if (direction == Direction::kPush) RETURN_IF_ERROR(client_->BeforePush(batch));
      operation.started = MonotonicSeconds();
      operation.left_out = operation.started - before;
      operation.calls = NumIds(batch);
      RETURN_IF_ERROR(Move(direction, batch));
      operation.ended = MonotonicSeconds();
    } while (meter.Count(operation));
    return ToJson(meter.Report());
  }

  absl::Status Move(Direction direction, const RowBatch& batch) {
    if (direction == Direction::kPull) return client_->Pull(batch);
    return direction == Direction::kPush ? client_->Push(batch) : client_->PushPull(batch);
  }

  // Updates every so-manieth row.
  absl::StatusOr<json> Touch(uint64_t every) {
    for (uint64_t next = 0; next < rows_; next += every * kFillIds) {
      const RowBatch batch = BatchOfRows(next, std::min(next + every * kFillIds, rows_), every);
      RETURN_IF_ERROR(client_->Pull(batch));
      RETURN_IF_ERROR(client_->Push(batch));
    }
    return json::object();
  }

  absl::StatusOr<json> Bytes(const std::string& format) {
    const bool half = format == Name(Wire::kBfloat16);
    RowTarget target = target_;
    // A member of its own, since it counts its pushes from 1.
    target.client += half ? kMostClients / 2 : kMostClients / 4;
    ASSIGN_OR_RETURN(
        const auto client,
        KeelsonRowClient::Create(target, half ? WireFormat::kBfloat16 : WireFormat::kFloat32));
    ASSIGN_OR_RETURN(const RowWireBytes bytes, MeasureRowBytes(client.get(), rows_));
    return json{{"push", bytes.push}, {"pull", bytes.pull}, {"absent", bytes.absent}};
  }

  const RowTarget target_;
  const uint64_t rows_;
  const std::unique_ptr<RowClient> client_;
  std::map<IdLaw, std::vector<RowBatch>> batches_;
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PeerRole>> MakeRowWorker(const json& spec) {
  RowTarget target;
  target.system = RowSystemFromName(spec.at("system").get<std::string>());
  target.address = spec.at("address").get<std::string>();
  target.dim = spec.at("dim").get<int64_t>();
  target.expire_after_steps = spec.at("expire_after_steps").get<int64_t>();
  target.client = spec.at("index").get<int>();
  ASSIGN_OR_RETURN(std::unique_ptr<RowClient> client, MakeRowClient(target));
  return std::make_unique<RowWorker>(target, spec.at("rows").get<uint64_t>(), std::move(client));
}

}  // namespace keelson::bench
