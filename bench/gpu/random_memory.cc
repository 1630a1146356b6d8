#include "bench/gpu/random_memory.h"

#include <random>

#include "core/base/status_macros.h"

namespace keelson::bench {

std::vector<float> RandomNumbers(int64_t n) {
  std::vector<float> numbers(n);
  std::minstd_rand random(1);
  const float scale = 2.0f / static_cast<float>(std::minstd_rand::max());
  for (float& number : numbers) number = static_cast<float>(random()) * scale - 1;
  return numbers;
}

absl::StatusOr<std::unique_ptr<DeviceMemory>> RandomMemory(Device* device, int64_t n) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceMemory> memory, device->Allocate(n));
  device->CopyToDevice(RandomNumbers(n), memory.get());
  RETURN_IF_ERROR(device->Synchronize());
  return memory;
}

}  // namespace keelson::bench
