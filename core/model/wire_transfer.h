// Moves a model's values and gradients between its devices and wire memory.
#ifndef KEELSON_CORE_MODEL_WIRE_TRANSFER_H_
#define KEELSON_CORE_MODEL_WIRE_TRANSFER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/device/device.h"
#include "core/model/replica.h"
#include "core/model/spec/model_spec.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// Owns the memory. Values go to all replicas, gradients come from the first. The replicas must
// outlive it, and their devices must be idle when it is destroyed. Not thread-safe.
class WireTransfer {
 public:
  // See Model::PrepareWire.
  static absl::StatusOr<std::unique_ptr<WireTransfer>> Create(
      const ModelSpec* spec, absl::Span<const std::unique_ptr<Replica>> replicas,
      absl::Span<const VariableWire> wire, size_t sets);

  const WireMemory& memory() const { return memory_; }
  size_t sets() const { return memory_.values.size(); }

  // Uploads a value once the replica's operations so far no longer use it.
  void Upload(size_t variable, size_t set);
  // `gate`: see Device::Download.
  void Download(size_t variable, size_t set, const DeviceMemory& gate);
  // Waits for the variable's last Download.
  absl::Status Await(size_t variable) const {
    return first().device()->Await(*downloaded_[variable]);
  }
  const DeviceEvent& downloaded(size_t variable) const { return *downloaded_[variable]; }

 private:
  WireTransfer(const ModelSpec* spec, absl::Span<const std::unique_ptr<Replica>> replicas)
      : spec_(spec), replicas_(replicas) {}

  absl::Status CreateCoders(absl::Span<const VariableWire> wire);
  absl::Status AllocateSet(absl::Span<const VariableWire> wire);
  absl::StatusOr<std::vector<absl::Span<uint8_t>>> AllocateArrays(
      absl::Span<const size_t> array_bytes);
  Replica& first() const { return *replicas_.front(); }

  const ModelSpec* const spec_;
  const absl::Span<const std::unique_ptr<Replica>> replicas_;
  std::vector<std::unique_ptr<GradientEncoder>> encoders_;
  std::vector<std::vector<std::unique_ptr<ValueDecoder>>> decoders_;  // [replica][variable]
  std::vector<std::unique_ptr<DeviceEvent>> downloaded_;
  std::vector<std::unique_ptr<HostMemory>> host_;
  WireMemory memory_;
};

// Copies a replica's sum of losses to the host, beside the operations.
class LossTransfer {
 public:
  // The device must outlive it, and must be idle when it is destroyed. RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<LossTransfer>> Create(Device* device);

  void Download(const DeviceMemory& loss_sum);
  // Waits for the last Download.
  absl::StatusOr<float> Await() const;

 private:
  explicit LossTransfer(Device* device) : device_(device) {}

  Device* const device_;
  std::unique_ptr<GradientEncoder> encoder_;
  std::unique_ptr<HostMemory> host_;
  std::unique_ptr<DeviceEvent> done_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_MODEL_WIRE_TRANSFER_H_
