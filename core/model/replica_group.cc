#include "core/model/replica_group.h"

#include <utility>

#include "core/base/random.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

uint64_t SeedOfReplica(uint64_t seed, size_t replica) {
  if (replica == 0) return seed;
  const auto bits = Philox(seed, StableHash("replica"), replica);
  return uint64_t{bits[0]} << 32 | bits[1];
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplicaGroup>> ReplicaGroup::Create(
    const ModelSpec* spec, DeviceGroup* group, absl::Span<Device* const> devices) {
  std::unique_ptr<ReplicaGroup> made(new ReplicaGroup(spec, group));
  for (Device* device : devices) {
    ASSIGN_OR_RETURN(std::unique_ptr<Replica> replica, Replica::Create(spec, device));
    made->replicas_.push_back(std::move(replica));
  }
  return made;
}

absl::Status ReplicaGroup::Failure() const {
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    if (!replica->failure().ok()) return replica->failure();
  }
  return absl::OkStatus();
}

absl::Status ReplicaGroup::Explain(absl::Status status) const {
  if (status.ok()) return status;
  if (Failure().ok()) first().SetFailure(std::move(status));
  return Failure();
}

absl::Status ReplicaGroup::Synchronize() const {
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    RETURN_IF_ERROR(Explain(replica->device()->Synchronize()));
  }
  return absl::OkStatus();
}

void ReplicaGroup::SetValue(size_t variable, absl::Span<const float> values) {
  for (const std::unique_ptr<Replica>& replica : replicas_) replica->SetValue(variable, values);
}

void ReplicaGroup::Divide(int64_t rows) {
  const auto replicas = static_cast<int64_t>(replicas_.size());
  passes_.clear();
  for (int64_t r = 0; r < replicas; ++r) {
    passes_.push_back({rows / replicas + (r < rows % replicas ? 1 : 0), /*training=*/true});
  }
  rows_ = rows;
}

absl::Status ReplicaGroup::Reserve(const Batch& batch) {
  Divide(batch.size());
  int64_t begin = 0;
  for (size_t r = 0; r < replicas_.size(); ++r) {
    const int64_t rows = passes_[r].batch;
    if (rows == 0) break;
    RETURN_IF_ERROR(replicas_[r]->Reserve(batch, begin, rows, /*training=*/true));
    begin += rows;
  }
  return absl::OkStatus();
}

void ReplicaGroup::LoadBatch(const Batch& batch, uint64_t dropout_seed) {
  int64_t begin = 0;
  for (size_t r = 0; r < replicas_.size(); ++r) {
    const int64_t rows = passes_[r].batch;
    if (rows == 0) break;
    replicas_[r]->LoadBatch(batch, begin, rows, /*training=*/true);
    replicas_[r]->device()->SetSeed(SeedOfReplica(dropout_seed, r));
    begin += rows;
  }
}

void ReplicaGroup::Forward() {
  const float weight = 1.0f / static_cast<float>(rows_);
  std::vector<DeviceMemory*> sums;
  for (size_t r = 0; r < replicas_.size(); ++r) {
    if (passes_[r].batch == 0) {
      replicas_[r]->ClearLossAndGradients();
    } else {
      replicas_[r]->Forward(passes_[r]);
      replicas_[r]->ComputeLosses(passes_[r], weight);
    }
    sums.push_back(replicas_[r]->loss_sum());
  }
  if (sums.size() > 1) group_->ReduceToFirst(1, sums);
}

void ReplicaGroup::Backward(size_t stage) {
  for (size_t r = 0; r < replicas_.size(); ++r) {
    if (passes_[r].batch > 0) replicas_[r]->Backward(passes_[r], stage);
  }
  if (replicas_.size() > 1) Reduce(first().variables_of(stage));
}

void ReplicaGroup::Reduce(absl::Span<const size_t> variables) {
  for (const size_t variable : variables) {
    const bool trained = spec_->variables[variable].trained();
    std::vector<DeviceMemory*> parts;
    for (size_t r = 0; r < replicas_.size(); ++r) {
      DeviceMemory* const part = replicas_[r]->gradient(variable);
      parts.push_back(part);
      if (trained) continue;
      const double share = static_cast<double>(passes_[r].batch) / static_cast<double>(rows_);
      replicas_[r]->device()->Scale(static_cast<float>(share), part->size(), part);
    }
    group_->ReduceToFirst(parts.front()->size(), parts);
  }
}

}  // namespace keelson
