// Wire memory of the host for tests: encodes and decodes as a device does.
#ifndef KEELSON_CORE_CLIENT_WIRE_MEMORY_TESTING_H_
#define KEELSON_CORE_CLIENT_WIRE_MEMORY_TESTING_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "core/wire/wire_layout.h"

namespace keelson {

class HostWire {
 public:
  HostWire(std::vector<VariableWire> wire, size_t sets);
  HostWire(const HostWire&) = delete;
  HostWire& operator=(const HostWire&) = delete;

  const WireMemory& memory() const { return memory_; }
  // Encodes a gradient into the set's bytes, with error feedback.
  void Encode(size_t variable, absl::Span<const float> gradient, size_t set);
  // Decodes the values in the set's bytes.
  std::vector<float> Values(size_t variable, size_t set) const;

 private:
  absl::Span<uint8_t> Allocate(size_t bytes);

  const std::vector<VariableWire> wire_;
  std::deque<std::vector<uint8_t>> owned_;
  WireMemory memory_;
  std::vector<std::vector<float>> residuals_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_CLIENT_WIRE_MEMORY_TESTING_H_
