// The emulation's stand-in for CUDA's header of this name: kernels, their launches, and the typed
// forms of the runtime's calls. See testing/device/cuda_emulation/emulation.h.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUDA_RUNTIME_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUDA_RUNTIME_H_

#include <functional>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "emulated_kernel.h"

namespace keelson::cuda_emulation {

// Puts a kernel on config.stream; `thread` is what each of its threads does, `pointers` are its
// arguments that are pointers.
cudaError_t LaunchKernel(const cudaLaunchConfig_t& config, std::function<void()> thread,
                         std::initializer_list<const void*> pointers);

template <typename T>
const void* PointerOrNull(const T& argument) {
  if constexpr (std::is_pointer_v<T>) {
    return argument;
  } else {
    return nullptr;
  }
}

}  // namespace keelson::cuda_emulation

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "arguments travel as bytes");
  return [config, kernel](Parameters... values) {
    return keelson::cuda_emulation::LaunchKernel(
        *config, [kernel, values...] { kernel(values...); },
        {keelson::cuda_emulation::PointerOrNull(values)...});
  }(std::forward<Arguments>(arguments)...);
}

template <typename T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}

// Every kernel is there for every GPU.
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel* kernel) {
  *attributes = cudaFuncAttributes{};
  attributes->maxThreadsPerBlock = 1024;
  return kernel == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_CUDA_RUNTIME_H_
