// The state of the emulation: GPUs, their work, and every handle that is alive.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_MACHINE_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_MACHINE_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "testing/device/cuda_emulation/arena.h"
#include "testing/device/cuda_emulation/emulation.h"
#include "testing/device/cuda_emulation/objects.h"
#include "testing/device/cuda_emulation/scheduler.h"

namespace keelson::cuda_emulation {

struct Gpu {
  Arena arena;
  CUstream_st default_stream;
  std::set<int> peers;              // whose memory its kernels may use
  cudaError_t error = cudaSuccess;  // of its work; stays
};

// Objects of one kind, owned, by their handles.
template <typename T>
class Handles {
 public:
  T* Add(std::unique_ptr<T> object) {
    T* const handle = object.get();
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  bool Has(const T* handle) const { return objects_.contains(const_cast<T*>(handle)); }
  bool Remove(const T* handle) { return objects_.erase(const_cast<T*>(handle)) > 0; }
  size_t size() const { return objects_.size(); }
  auto begin() const { return objects_.begin(); }
  auto end() const { return objects_.end(); }

 private:
  std::map<T*, std::unique_ptr<T>> objects_;
};

// Not thread-safe: see WithMachine in call.h.
class Machine {
 public:
  explicit Machine(const Options& options);
  ~Machine();

  const Options& options() const { return options_; }
  Statistics& statistics() { return statistics_; }
  std::vector<std::string>& complaints() { return complaints_; }
  void Complain(const std::string& text);
  std::string Leaks() const;

  int gpus() const { return static_cast<int>(gpus_.size()); }
  Gpu& gpu(int ordinal) { return *gpus_[ordinal]; }

  // Faults.

  void AddCallFault(absl::string_view name, int64_t count, int error);
  void AddExecutionFault(int64_t count, int error);
  int pending_faults() const;
  // The fault to inject into this call of `name`; 0: none.
  int FaultOf(absl::string_view name);

  // Addresses.

  // "" when `gpu`'s work may use `bytes` from `pointer` on, which is its memory, that of a peer or
  // page-locked; otherwise what is wrong.
  std::string Misuse(int gpu, const void* pointer, size_t bytes);
  // The GPU that the address belongs to; -1: none.
  int OwnerOf(const void* pointer) const;
  bool PageLocked(const void* pointer, size_t bytes) const;
  std::map<char*, size_t>& page_locked() { return page_locked_; }
  // Memory allocated on the host, to be freed by free().
  std::set<void*>& host_allocations() { return host_allocations_; }

  // Work.

  // The stream of a handle, null: the current GPU's; null when the handle is not one.
  CUstream_st* Find(cudaStream_t stream, int current_gpu);
  // Puts work on a stream, or into the graph that is being captured from it. `memories`: the GPUs
  // whose memory it uses, as bits; `after`: what else must be done before, not within a capture.
  cudaError_t Enqueue(CUstream_st* stream, unsigned memories, std::function<int()> run,
                      std::vector<WorkPointer> after = {});
  // The memories of a kernel on `gpu`.
  unsigned KernelMemories(int gpu);
  void RunUntil(const WorkPointer& work);
  void Nudge(const WorkPointer& work);
  void RunAll();
  uint64_t NewLanes(uint64_t count);
  // See Scheduler.
  uint64_t Chance(uint64_t bound) { return scheduler_->Chance(bound); }
  double now_microseconds() const { return now_microseconds_; }

  // Adds the graph's work after `stream`'s.
  cudaError_t LaunchGraph(CUgraphExec_st* executable, CUstream_st* stream);

  // Captures.

  cudaError_t BeginCapture(CUstream_st* stream, cudaStreamCaptureMode mode);
  cudaError_t EndCapture(CUstream_st* stream, cudaGraph_t* graph);
  // For a call that a capture forbids to the thread; makes the capture invalid.
  bool ForbiddenByCapture();
  // `stream` continues after the nodes of `event`, which was recorded within a capture.
  cudaError_t JoinCapture(CUstream_st* stream, const EventState& event);
  Node* AddNode(CUstream_st* stream);

  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> executables;

  // A copy of `object`, which a library makes; `what` it is, for Leaks: "cuBLASLt handles". Lives
  // until Destroy, else as long as the machine.
  template <typename T>
  T* MakeLibraryObject(const char* what, T object) {
    auto owned = std::make_shared<T>(std::move(object));
    T* const made = owned.get();
    library_objects_[made] = {what, std::move(owned)};
    return made;
  }
  // False: there is none.
  bool DestroyLibraryObject(const void* object) { return library_objects_.erase(object) > 0; }

 private:
  struct Fault {
    std::string name;
    int64_t count;
    int error;
  };
  struct LibraryObject {
    std::string what;
    std::shared_ptr<void> object;
  };

  void AddToLane(uint64_t lane, WorkPointer work);
  void Execute(Work* work);
  void CloseMemory();
  void LeaveCapture(Capture* capture);

  const Options options_;
  Statistics statistics_;
  std::vector<std::string> complaints_;
  std::map<const void*, LibraryObject> library_objects_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::list<Fault> call_faults_;
  std::list<Fault> execution_faults_;
  std::map<char*, size_t> page_locked_;
  std::set<void*> host_allocations_;
  std::vector<std::unique_ptr<Capture>> captures_;
  uint64_t next_lane_ = 0;
  double now_microseconds_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_MACHINE_H_
