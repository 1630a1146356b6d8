// An emulation of CUDA on the CPU, for tests: the runtime, kernels, cuBLAS(Lt) and NCCL as far as
// core/device/cuda uses them. The same sources are compiled against CUDA by nvcc, and against the
// headers in include/ by the C++ compiler.
//
// What it shows: that kernels address the right elements and use barriers rightly, that work on
// several streams and GPUs is ordered by events wherever it must be, and that the host's code keeps
// the rules of CUDA (page-locked memory, capture, errors, freeing).
// What it does not show: speed, how much is overlapped, the rounding of tensor cores or of CUDA's
// math functions, what a driver or GPU does beyond the rules, races between two kernels that run at
// the same time or between warps that no barrier orders.
//
// How it works. Calls queue work; nothing waits. A call that waits executes what it waits for, and
// perhaps more: an order that the streams and events allow, chosen by `order_seed`, without
// favouring the one that the code expects. A kernel is executed block by block; its threads are
// fibers that take turns at barriers only, in an order chosen by the seed. Only the work of a GPU
// can access its memory: host code that does crashes with a line that says so. Fresh memory is full
// of NaN, freed memory is never used again.
//
// The state is one machine per process, as with CUDA. Any thread may call; calls are serialised.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_EMULATION_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_EMULATION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson::cuda_emulation {

struct Options {
  // 0: as on a machine without any.
  int gpus = 1;
  // False: as on a machine without NVIDIA's driver.
  bool driver = true;
  // The memory of each GPU. An allocation beyond it fails with cudaErrorMemoryAllocation.
  size_t memory_bytes = size_t{4} << 30;
  bool peer_access = true;
  // 0: the order of the calls. Odd: work is done as late as the calls that wait allow. Even: some
  // of it earlier.
  uint64_t order_seed = 1;
  int compute_capability_major = 9;
  int compute_capability_minor = 0;
};

// Before the first Reset the options come from the environment: KEELSON_EMULATED_GPUS and
// KEELSON_EMULATED_ORDER_SEED, else the defaults.
//
// Starts over: counters at 0, no faults, no complaints. Remaining objects (memory, streams, events,
// graphs, communicators, handles) are listed as in Leaks() and freed.
std::string Reset(const Options& options);

// The `count`-th call of `name` from here on (1: the next) fails with `error`, a cudaError_t,
// cublasStatus_t or ncclResult_t, and does nothing; "*": any call that may fail. Each fault
// happens once.
void FailCall(absl::string_view name, int64_t count, int error);
// The `count`-th operation from here on that a GPU executes fails with `error`, a cudaError_t. As
// with CUDA, every later call on that GPU returns it.
void FailExecution(int64_t count, int error);
// Faults that have not happened yet.
int PendingFaults();

// Since the last Reset.
struct Statistics {
  int64_t calls = 0;
  int64_t kernel_launches = 0;  // not those of graphs
  int64_t products = 0;         // matrix products by cuBLAS(Lt); not those of graphs
  int64_t graph_captures = 0;
  int64_t graph_launches = 0;
  // Copies, as the calls asked for them; not those of graphs.
  int64_t copies_to_device = 0;
  int64_t copies_to_host = 0;
  int64_t copies_on_device = 0;  // also from GPU to GPU
  int64_t bytes_to_device = 0;
  int64_t bytes_to_host = 0;
  // Calls that wait for a GPU, or may do so.
  int64_t stream_synchronizations = 0;  // also of whole devices
  int64_t event_synchronizations = 0;
  int64_t synchronous_copies = 0;
  int64_t allocations = 0;  // cudaMalloc, cudaHostAlloc, cudaHostRegister
  int64_t frees = 0;        // cudaFree, cudaFreeHost, cudaHostUnregister
  // Operations that the GPUs executed.
  int64_t executed = 0;
};
Statistics CurrentStatistics();

// Violations of CUDA's rules by the program (a barrier that not all threads reach, memory written
// behind its end, work on freed memory, ...), a line each; also on stderr. The call or the GPU
// fails as well.
std::vector<std::string> Complaints();

// What has not been freed: "2 allocations of GPU memory, 1 stream"; empty when nothing is left.
std::string Leaks();
// Bytes of GPU memory in use on `gpu`.
size_t BytesInUse(int gpu);

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_EMULATION_H_
