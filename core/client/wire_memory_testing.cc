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

HostWire::HostWire(std::vector<VariableWire> wire, int sets) : wire_(std::move(wire)) {
  for (int set = 0; set < sets; ++set) {
    auto& values = memory_.values.emplace_back();
    auto& gradients = memory_.gradients.emplace_back();
    for (const VariableWire& variable : wire_) {
      values.push_back(Allocate(EncodedBytes(variable.values, variable.gradient.num_elements)));
      gradients.push_back(Allocate(variable.gradient.bytes));
    }
  }
  for (const VariableWire& variable : wire_) {
    residuals_.emplace_back(static_cast<size_t>(variable.gradient.num_elements));
  }
}

absl::Span<uint8_t> HostWire::Allocate(size_t bytes) {
  return absl::MakeSpan(owned_.emplace_back(bytes));
}

void HostWire::Encode(int variable, absl::Span<const float> gradient, int set) {
  const auto v = static_cast<size_t>(variable);
  const WireLayout& layout = wire_[v].gradient;
  for (const WireBlock& block : layout.blocks) {
    const auto first = static_cast<size_t>(block.first_element);
    const auto size = static_cast<size_t>(block.num_elements);
    EncodeBlock(layout.format, block, gradient.subspan(first, size),
                absl::MakeSpan(residuals_[v]).subspan(first, size),
                memory_.gradients[static_cast<size_t>(set)][v].data() + block.offset);
  }
}

std::vector<float> HostWire::Values(int variable, int set) const {
  const auto v = static_cast<size_t>(variable);
  std::vector<float> values(static_cast<size_t>(wire_[v].gradient.num_elements));
  DecodeElements(wire_[v].values, memory_.values[static_cast<size_t>(set)][v].data(),
                 absl::MakeSpan(values));
  return values;
}

}  // namespace keelson
