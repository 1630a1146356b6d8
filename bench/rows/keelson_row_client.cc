#include "bench/rows/keelson_row_client.h"

#include <algorithm>
#include <utility>

#include "bench/gradients.h"
#include "bench/load_client.h"
#include "bench/server_start.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/client/grpc_parameter_client.h"
#include "core/cluster/placement.h"

namespace keelson::bench {
namespace {

constexpr float kTableLearningRate = 1e-3f;

Placement PlaceTable(const RowTarget& target) {
  TableSpec table{kBenchTable, target.dim, {Initializer::Kind::kUniform, -0.05f, 0.05f}};
  table.expire_after_steps = target.expire_after_steps;
  return Placement::Compute({}, 1, Placement::kDefaultBlockElements, {table});
}

}  // namespace

absl::Status InitializeTable(const RowTarget& target, std::optional<int64_t> restore_step) {
  const Placement placement = PlaceTable(target);
  keelson::v1::InitializeShardRequest request;
  request.mutable_header()->set_incarnation(RandomId());
  *request.mutable_placement() = placement.ToProto();
  request.set_placement_fingerprint(placement.Fingerprint());
  request.mutable_optimizer()->mutable_adagrad();
  request.mutable_learning_rate()->set_base(kTableLearningRate);
  *request.mutable_members() = AllClients();
  if (restore_step.has_value()) request.set_restore_step(*restore_step);
  return InitializeShards(std::move(request), {target.address});
}

absl::StatusOr<std::unique_ptr<KeelsonRowClient>> KeelsonRowClient::Create(const RowTarget& target,
                                                                           WireFormat format) {
  std::unique_ptr<KeelsonRowClient> client(new KeelsonRowClient(target.dim));
  LoadPlan plan;
  plan.client = target.client;
  ShardedParameterClient::Options options;
  options.self = {Role::kWorker, 0};
  options.membership = plan.membership();
  options.retry.give_up_after = absl::Seconds(10);
  options.table_formats = {{format, format}};
  // What the others that are measured have.
  BulkConnectionOptions connections;
  connections.local_route = LocalRoute::kTcp;
  ASSIGN_OR_RETURN(client->client_,
                   ConnectParameterClient(std::move(options), {}, PlaceTable(target),
                                          ServersAt({target.address}), CredentialsAs("worker"),
                                          Clock::Real(), &client->stop_, connections));
  return client;
}

absl::Span<const float> KeelsonRowClient::GradientsOf(size_t ids) {
  const size_t elements = ids * static_cast<size_t>(dim_);
  if (gradients_.size() < elements) {
    gradients_.resize(elements);
    FillGradient(absl::MakeSpan(gradients_));
  }
  return absl::MakeConstSpan(gradients_).first(elements);
}

absl::Status KeelsonRowClient::Fill(uint64_t rows) {
  RETURN_IF_ERROR(Pull(BatchOfRows(0, std::min(kFillIds, rows))));
  for (uint64_t next = kFillIds; next < rows; next += kFillIds) {
    RETURN_IF_ERROR(PushPull(BatchOfRows(next, std::min(next + kFillIds, rows))));
  }
  return Step(nullptr);
}

absl::Status KeelsonRowClient::Pull(const RowBatch& batch) {
  RETURN_IF_ERROR(client_->table_rows()->Want(batch));
  return client_->Pull();
}

absl::Status KeelsonRowClient::Push(const RowBatch&) { return Step(nullptr); }

absl::Status KeelsonRowClient::PushPull(const RowBatch& next) { return Step(next); }

absl::Status KeelsonRowClient::Step(RowBatch next) {
  TableRows* const rows = client_->table_rows();
  client_->Begin(step_++);
  if (next != nullptr) RETURN_IF_ERROR(rows->Want(std::move(next)));
  const absl::Span<const float> gradients = GradientsOf(rows->ids()->front().size());
  RETURN_IF_ERROR(rows->Offer({gradients}));
  ASSIGN_OR_RETURN(const std::optional<PushResult> result, client_->End());
  result_ = *result;
  return absl::OkStatus();
}

absl::StatusOr<RowWireBytes> MeasureRowBytes(KeelsonRowClient* client, uint64_t rows) {
  const uint64_t ids = std::min(kFillIds, rows);
  const RowBatch none = std::make_shared<RowIds>(1);
  const RowBatch known = BatchOfRows(0, ids), unknown = BatchOfRows(rows, rows + ids);
  const auto each = [&](int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(ids);
  };
  const auto of_pull = [&](const RowBatch& batch) -> absl::StatusOr<double> {
    RETURN_IF_ERROR(client->Pull(none));
    RETURN_IF_ERROR(client->PushPull(batch));
    return each(client->result().bytes_pushed + client->result().bytes_pulled);
  };
  RowWireBytes bytes;
  ASSIGN_OR_RETURN(bytes.absent, of_pull(unknown));
  ASSIGN_OR_RETURN(bytes.pull, of_pull(known));
  RETURN_IF_ERROR(client->Push(known));
  bytes.push = each(client->result().bytes_pushed + client->result().bytes_pulled);
  return bytes;
}

}  // namespace keelson::bench
