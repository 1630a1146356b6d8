// The replicas of a model, one on each device: they compute nearly equal parts of a batch.
#ifndef KEELSON_CORE_MODEL_REPLICA_GROUP_H_
#define KEELSON_CORE_MODEL_REPLICA_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/device/device_group.h"
#include "core/model/replica.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

// Enqueues operations and waits for none. Not thread-safe.
//
// A step: Reserve, LoadBatch, Forward, and Backward of each stage with Replica::runs_backward, the
// last one first. Sums and gradients are those of the whole batch at the first replica.
class ReplicaGroup {
 public:
  // The spec, the devices and the group, which is null for one device, must outlive it.
  // RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ReplicaGroup>> Create(const ModelSpec* spec,
                                                              DeviceGroup* group,
                                                              absl::Span<Device* const> devices);

  size_t size() const { return replicas_.size(); }
  Replica& first() const { return *replicas_.front(); }
  absl::Span<const std::unique_ptr<Replica>> replicas() const { return replicas_; }

  // The first error of a replica; OK: none.
  absl::Status Failure() const;
  // Returns Failure(), which may name a layer or variable, in place of a device's `status`.
  absl::Status Explain(absl::Status status) const;
  // Waits for all operations.
  absl::Status Synchronize() const;

  void SetValue(size_t variable, absl::Span<const float> values);

  // Cuts the batch into parts and makes room for them. RESOURCE_EXHAUSTED.
  absl::Status Reserve(const Batch& batch);
  // Each replica has its own seed for dropout, which depends on `dropout_seed`.
  void LoadBatch(const Batch& batch, uint64_t dropout_seed);
  // With the losses, and the sum of them over all replicas.
  void Forward();
  // The gradients that are complete then are those of the whole batch; of a variable that is not
  // trained, the mean of the replicas' samples, weighted by their rows.
  void Backward(size_t stage);
  // The rows of the batch of the last Reserve.
  int64_t rows() const { return rows_; }

 private:
  ReplicaGroup(const ModelSpec* spec, DeviceGroup* group) : spec_(spec), group_(group) {}

  void Divide(int64_t rows);
  // Reduces all replicas' gradients to the first replica's.
  void Reduce(absl::Span<const size_t> variables);

  const ModelSpec* const spec_;
  DeviceGroup* const group_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Pass> passes_;  // the parts of the batch, by replica
  int64_t rows_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_REPLICA_GROUP_H_
