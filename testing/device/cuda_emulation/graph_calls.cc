#include <cuda_runtime_api.h>

#include <memory>
#include <utility>

#include "testing/device/cuda_emulation/call.h"

namespace emulation = keelson::cuda_emulation;
using emulation::CurrentGpu;
using emulation::Machine;
using emulation::ReleasingCall;
using emulation::RuntimeCall;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = nullptr;
  return RuntimeCall("cudaGraphInstantiate", [&](Machine* machine) {
    if (!machine->graphs.Has(graph)) return cudaErrorInvalidValue;
    auto made = std::make_unique<CUgraphExec_st>();
    made->graph = *graph;
    made->first_lane = machine->NewLanes(graph->branches);
    *executable = machine->executables.Add(std::move(made));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return RuntimeCall("cudaGraphLaunch", [&](Machine* machine) {
    if (!machine->executables.Has(executable)) return cudaErrorInvalidValue;
    CUstream_st* const stream = machine->Find(handle, CurrentGpu());
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) return cudaErrorNotSupported;
    ++machine->statistics().graph_launches;
    return machine->LaunchGraph(executable, stream);
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return ReleasingCall("cudaGraphExecDestroy", [&](Machine* machine) {
    return machine->executables.Remove(executable) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return ReleasingCall("cudaGraphDestroy", [&](Machine* machine) {
    return machine->graphs.Remove(graph) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
