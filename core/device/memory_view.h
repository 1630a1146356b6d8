// A part of a device's memory.
#ifndef KEELSON_CORE_DEVICE_MEMORY_VIEW_H_
#define KEELSON_CORE_DEVICE_MEMORY_VIEW_H_

#include <cstdint>

#include "core/device/device.h"

namespace keelson {

// Floats [begin, begin + size) of another memory, which frees them. Operations in flight may use
// the view, too, so it is destroyed after the whole, whose destructor waits for them.
class MemoryView : public DeviceMemory {
 public:
  // The view begins at float `begin` of the whole, which should be a multiple of kAlignedFloats.
  MemoryView(const DeviceMemory& whole, int64_t begin, int64_t size)
      : DeviceMemory(whole.data() + begin, size) {}

  // Vector instructions and copies are fastest from multiples of 256 bytes on.
  static constexpr int64_t kAlignedFloats = 64;
  // The least multiple of it that is not below `floats`.
  static constexpr int64_t Aligned(int64_t floats) {
    return (floats + kAlignedFloats - 1) / kAlignedFloats * kAlignedFloats;
  }
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_MEMORY_VIEW_H_
