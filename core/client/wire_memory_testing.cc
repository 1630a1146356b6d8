#include "core/client/wire_memory_testing.h"

#include <cstring>
#include <string>
#include <utility>

#include "core/wire/value_codec.h"

namespace keelson {
namespace {

void EncodeBlock(WireFormat format, const WireBlock& block, absl::Span<const float> from,
                 absl::Span<float> residual, uint8_t* to) {
  if (IsElementwise(format)) return EncodeElements(format, from, to);
  if (format == WireFormat::kInt8) return EncodeInt8(from, residual, to);
  std::string bytes;
  EncodeTopK(from, block.top_k_count, residual, &bytes);
  std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace

HostWire::HostWire(std::vector<VariableWire> wire, size_t sets) : wire_(std::move(wire)) {
  for (size_t set = 0; set < sets; ++set) {
    auto& values = memory_.values.emplace_back();
    auto& gradients = memory_.gradients.emplace_back();
    for (const VariableWire& variable : wire_) {
      values.push_back(Allocate(EncodedBytes(variable.values, variable.gradient.num_elements)));
      gradients.push_back(Allocate(variable.gradient.bytes));
    }
  }
  for (const VariableWire& variable : wire_) {
    residuals_.emplace_back(variable.gradient.num_elements);
  }
}

absl::Span<uint8_t> HostWire::Allocate(size_t bytes) {
  return absl::MakeSpan(owned_.emplace_back(bytes));
}

void HostWire::Encode(size_t variable, absl::Span<const float> gradient, size_t set) {
  const WireLayout& layout = wire_[variable].gradient;
  for (const WireBlock& block : layout.blocks) {
    const size_t first = block.first_element;
    const size_t size = block.num_elements;
    EncodeBlock(layout.format, block, gradient.subspan(first, size),
                absl::MakeSpan(residuals_[variable]).subspan(first, size),
                memory_.gradients[set][variable].data() + block.offset);
  }
}

std::vector<float> HostWire::Values(size_t variable, size_t set) const {
  std::vector<float> values(wire_[variable].gradient.num_elements);
  DecodeElements(wire_[variable].values, memory_.values[set][variable].data(),
                 absl::MakeSpan(values));
  return values;
}

}  // namespace keelson
