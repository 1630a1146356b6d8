#include <cuda_runtime.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/device/cuda_emulation/block.h"
#include "testing/device/cuda_emulation/call.h"

namespace keelson::cuda_emulation {
namespace {

constexpr unsigned kMostThreads = 1024, kMostThreadsInZ = 64;
constexpr unsigned kMostBlocksInX = 0x7fffffffu, kMostBlocksInYz = 65535;
// An address below is a null pointer with an offset.
constexpr uintptr_t kLowestAddress = uintptr_t{1} << 32;

bool Between(unsigned value, unsigned least, unsigned most) {
  return least <= value && value <= most;
}

bool Possible(const cudaLaunchConfig_t& config) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  return Between(grid.x, 1, kMostBlocksInX) && Between(grid.y, 1, kMostBlocksInYz) &&
         Between(grid.z, 1, kMostBlocksInYz) && Between(block.x, 1, kMostThreads) &&
         Between(block.y, 1, kMostThreads) && Between(block.z, 1, kMostThreadsInZ) &&
         uint64_t{block.x} * block.y * block.z <= kMostThreads;
}

// Whether all arguments are memory that the kernel may use.
bool Usable(Machine* machine, int gpu, const std::vector<const void*>& pointers) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    if (reinterpret_cast<uintptr_t>(pointers[i]) < kLowestAddress) continue;
    const std::string misuse = machine->Misuse(gpu, pointers[i], 0);
    if (misuse.empty()) continue;
    machine->Complain(absl::StrCat("a kernel's argument ", i, ": ", misuse));
    return false;
  }
  return true;
}

}  // namespace

cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, std::function<void()> thread,
                         std::initializer_list<const void*> pointers) {
  return RuntimeCall("cudaLaunchKernelEx", [&](Machine* machine) {
    CUstream_st* const stream = machine->Find(config.stream, CurrentGpu());
    if (stream == nullptr || stream->gpu != CurrentGpu()) return cudaErrorInvalidResourceHandle;
    if (!Possible(config)) return cudaErrorInvalidConfiguration;
    if (config.dynamicSmemBytes != 0 || config.numAttrs != 0) return cudaErrorNotSupported;
    const int gpu = stream->gpu;
    std::vector<const void*> arguments(pointers);
    if (!Usable(machine, gpu, arguments)) return cudaErrorIllegalAddress;
    if (stream->capture == nullptr) ++machine->statistics().kernel_launches;
    auto run = [machine, gpu, arguments = std::move(arguments), thread = std::move(thread),
                grid = config.gridDim, block = config.blockDim]() -> int {
      if (!Usable(machine, gpu, arguments)) return cudaErrorIllegalAddress;
      const std::string failure =
          BlockExecutor::Instance().Run(grid, block, machine->Chance(9), thread);
      if (failure.empty()) return cudaSuccess;
      machine->Complain(absl::StrCat("a kernel: ", failure));
      return cudaErrorLaunchFailure;
    };
    return machine->Enqueue(stream, machine->KernelMemories(gpu), std::move(run));
  });
}

}  // namespace keelson::cuda_emulation
