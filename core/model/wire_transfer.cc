#include "core/model/wire_transfer.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/wire/wire_format.h"

namespace keelson {
namespace {

constexpr size_t kAlignment = 64;

size_t AlignUp(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

absl::Status CheckWire(const ModelSpec& spec, absl::Span<const VariableWire> wire, size_t sets) {
  if (sets < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("wire memory: expected 1 set or more, found ", sets));
  }
  if (wire.size() != spec.variables.size()) {
    return absl::InvalidArgumentError(absl::StrCat("wire memory: expected ", spec.variables.size(),
                                                   " variables, found ", wire.size()));
  }
  for (size_t i = 0; i < wire.size(); ++i) {
    const int64_t expected = spec.variables[i].shape.num_elements();
    if (wire[i].gradient.num_elements == expected) continue;
    return absl::InvalidArgumentError(absl::StrCat("wire memory: ", spec.variables[i].name,
                                                   ": expected ", expected, " elements, found ",
                                                   wire[i].gradient.num_elements));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<WireTransfer>> WireTransfer::Create(
    const ModelSpec* spec, absl::Span<const std::unique_ptr<Replica>> replicas,
    absl::Span<const VariableWire> wire, size_t sets) {
  RETURN_IF_ERROR(CheckWire(*spec, wire, sets));
  std::unique_ptr<WireTransfer> transfer(new WireTransfer(spec, replicas));
  RETURN_IF_ERROR(transfer->CreateCoders(wire));
  for (size_t i = 0; i < sets; ++i) RETURN_IF_ERROR(transfer->AllocateSet(wire));
  return transfer;
}

absl::Status WireTransfer::CreateCoders(absl::Span<const VariableWire> wire) {
  Device* const device = first().device();
  for (const VariableWire& variable : wire) {
    ASSIGN_OR_RETURN(std::unique_ptr<GradientEncoder> encoder,
                     device->NewGradientEncoder(variable.gradient));
    encoders_.push_back(std::move(encoder));
    ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvent> downloaded, device->NewEvent());
    downloaded_.push_back(std::move(downloaded));
  }
  for (const std::unique_ptr<Replica>& replica : replicas_) {
    std::vector<std::unique_ptr<ValueDecoder>>& decoders = decoders_.emplace_back();
    for (const VariableWire& variable : wire) {
      ASSIGN_OR_RETURN(
          std::unique_ptr<ValueDecoder> decoder,
          replica->device()->NewValueDecoder(variable.values, variable.gradient.num_elements));
      decoders.push_back(std::move(decoder));
    }
  }
  return absl::OkStatus();
}

absl::Status WireTransfer::AllocateSet(absl::Span<const VariableWire> wire) {
  std::vector<size_t> values;
  std::vector<size_t> gradients;
  for (const VariableWire& variable : wire) {
    values.push_back(EncodedBytes(variable.values, variable.gradient.num_elements));
    gradients.push_back(variable.gradient.bytes);
  }
  ASSIGN_OR_RETURN(std::vector<absl::Span<uint8_t>> value_arrays, AllocateArrays(values));
  ASSIGN_OR_RETURN(std::vector<absl::Span<uint8_t>> gradient_arrays, AllocateArrays(gradients));
  memory_.values.push_back(std::move(value_arrays));
  memory_.gradients.push_back(std::move(gradient_arrays));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Span<uint8_t>>> WireTransfer::AllocateArrays(
    absl::Span<const size_t> array_bytes) {
  size_t total = 0;
  for (const size_t bytes : array_bytes) total += AlignUp(bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<HostMemory> host, first().device()->AllocateHost(total));
  std::vector<absl::Span<uint8_t>> arrays;
  size_t offset = 0;
  for (const size_t bytes : array_bytes) {
    arrays.push_back(host->bytes().subspan(offset, bytes));
    offset += AlignUp(bytes);
  }
  host_.push_back(std::move(host));
  return arrays;
}

void WireTransfer::Upload(size_t variable, size_t set) {
  const absl::Span<const uint8_t> from = memory_.values[set][variable];
  for (size_t r = 0; r < replicas_.size(); ++r) {
    Replica& replica = *replicas_[r];
    replica.device()->Upload(from, &replica.unused(variable), decoders_[r][variable].get(),
                             replica.value(variable), replica.uploaded(variable));
    replica.NoteFailure("variable", spec_->variables[variable].name);
  }
}

void WireTransfer::Download(size_t variable, size_t set, const DeviceMemory& gate) {
  first().device()->Download(*first().gradient(variable), &gate, encoders_[variable].get(),
                             memory_.gradients[set][variable], downloaded_[variable].get());
  first().NoteFailure("variable", spec_->variables[variable].name);
}

absl::StatusOr<std::unique_ptr<LossTransfer>> LossTransfer::Create(Device* device) {
  std::unique_ptr<LossTransfer> transfer(new LossTransfer(device));
  const WireLayout layout = WholeArrayLayout(WireFormat::kFloat32, 1);
  ASSIGN_OR_RETURN(transfer->encoder_, device->NewGradientEncoder(layout));
  ASSIGN_OR_RETURN(transfer->host_, device->AllocateHost(layout.bytes));
  ASSIGN_OR_RETURN(transfer->done_, device->NewEvent());
  return transfer;
}

void LossTransfer::Download(const DeviceMemory& loss_sum) {
  device_->Download(loss_sum, nullptr, encoder_.get(), host_->bytes(), done_.get());
}

absl::StatusOr<float> LossTransfer::Await() const {
  RETURN_IF_ERROR(device_->Await(*done_));
  float loss = 0;
  std::memcpy(&loss, host_->bytes().data(), sizeof(loss));
  return loss;
}

}  // namespace keelson
