#include "testing/device/cuda_emulation/machine.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace keelson::cuda_emulation {
namespace {

// For timestamps of events, so that they are the same in each run.
constexpr double kMicrosecondsPerWork = 1.0;

void Count(size_t n, absl::string_view what, std::vector<std::string>* parts) {
  if (n > 0) parts->push_back(absl::StrCat(n, " ", what));
}

}  // namespace

Machine::Machine(const Options& options) : options_(options) {
  const int count = options.driver ? options.gpus : 0;
  for (int i = 0; i < count; ++i) {
    gpus_.push_back(std::make_unique<Gpu>());
    gpus_.back()->default_stream.gpu = i;
    gpus_.back()->default_stream.lane = NewLanes(1);
  }
  scheduler_ =
      std::make_unique<Scheduler>(options.order_seed, [this](Work* work) { Execute(work); });
}

Machine::~Machine() {
  for (void* allocation : host_allocations_) free(allocation);
}

void Machine::Complain(const std::string& text) {
  fprintf(stderr, "emulated CUDA: %s\n", text.c_str());
  complaints_.push_back(text);
}

std::string Machine::Leaks() const {
  size_t allocations = 0;
  for (const auto& gpu : gpus_) allocations += gpu->arena.allocations();
  std::vector<std::string> parts;
  Count(allocations, "allocations of GPU memory", &parts);
  Count(page_locked_.size(), "page-locked memories", &parts);
  Count(streams.size(), "streams", &parts);
  Count(events.size(), "events", &parts);
  Count(graphs.size(), "graphs", &parts);
  Count(executables.size(), "executable graphs", &parts);
  Count(captures_.size(), "captures", &parts);
  std::map<std::string, size_t> library_objects;
  for (const auto& [address, object] : library_objects_) ++library_objects[object.what];
  for (const auto& [what, n] : library_objects) Count(n, what, &parts);
  return absl::StrJoin(parts, ", ");
}

void Machine::AddCallFault(absl::string_view name, int64_t count, int error) {
  call_faults_.push_back({std::string(name), count, error});
}

void Machine::AddExecutionFault(int64_t count, int error) {
  execution_faults_.push_back({"", count, error});
}

int Machine::pending_faults() const {
  return static_cast<int>(call_faults_.size() + execution_faults_.size());
}

int Machine::FaultOf(absl::string_view name) {
  int error = 0;
  for (auto fault = call_faults_.begin(); fault != call_faults_.end();) {
    const bool meant = fault->name == name || fault->name == "*";
    if (!meant || --fault->count > 0) {
      ++fault;
      continue;
    }
    error = fault->error;
    fault = call_faults_.erase(fault);
  }
  return error;
}

std::string Machine::Misuse(int gpu_ordinal, const void* pointer, size_t bytes) {
  if (PageLocked(pointer, bytes)) return "";
  const int owner = OwnerOf(pointer);
  if (owner < 0) return absl::StrFormat("%p is no memory of a GPU and not page-locked", pointer);
  if (owner != gpu_ordinal && !gpu(gpu_ordinal).peers.contains(owner)) {
    return absl::StrFormat("%p is memory of GPU %d, without peer access", pointer, owner);
  }
  if (!gpu(owner).arena.Holds(pointer, bytes)) {
    return absl::StrFormat("%d bytes at %p lie outside of every allocation", bytes, pointer);
  }
  return "";
}

int Machine::OwnerOf(const void* pointer) const {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i]->arena.Contains(pointer)) return static_cast<int>(i);
  }
  return -1;
}

bool Machine::PageLocked(const void* pointer, size_t bytes) const {
  char* const address = static_cast<char*>(const_cast<void*>(pointer));
  auto found = page_locked_.upper_bound(address);
  if (found == page_locked_.begin()) return false;
  --found;
  const size_t offset = address - found->first;
  return offset <= found->second && bytes <= found->second - offset;
}

CUstream_st* Machine::Find(cudaStream_t stream, int current_gpu) {
  if (stream == nullptr) return &gpu(current_gpu).default_stream;
  return streams.Has(stream) ? stream : nullptr;
}

cudaError_t Machine::Enqueue(CUstream_st* stream, unsigned memories, std::function<int()> run,
                             std::vector<WorkPointer> after) {
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    Node* const node = AddNode(stream);
    node->work.memories = memories;
    node->work.run = std::move(run);
    return cudaSuccess;
  }
  auto work = std::make_shared<Work>();
  work->gpu = stream->gpu;
  work->memories = memories;
  work->run = std::move(run);
  work->after = std::move(after);
  CUstream_st* const legacy = &gpu(stream->gpu).default_stream;
  if (stream == legacy) {
    for (const auto& [other, owned] : streams) {
      const bool waits = other->gpu == stream->gpu && !other->non_blocking;
      if (waits && other->last != nullptr) work->after.push_back(other->last);
    }
  } else if (!stream->non_blocking && legacy->last != nullptr) {
    work->after.push_back(legacy->last);
  }
  if (stream->last != nullptr) work->after.push_back(stream->last);
  stream->last = work;
  AddToLane(stream->lane, std::move(work));
  return cudaSuccess;
}

unsigned Machine::KernelMemories(int ordinal) {
  unsigned memories = 1u << ordinal;
  for (int peer : gpu(ordinal).peers) memories |= 1u << peer;
  return memories;
}

void Machine::AddToLane(uint64_t lane, WorkPointer work) {
  scheduler_->Add(lane, std::move(work));
  CloseMemory();
}

void Machine::RunUntil(const WorkPointer& work) {
  if (work != nullptr) scheduler_->RunUntil(work);
  CloseMemory();
}

void Machine::Nudge(const WorkPointer& work) {
  if (work != nullptr) scheduler_->Nudge(work);
  CloseMemory();
}

void Machine::RunAll() {
  scheduler_->RunAll();
  CloseMemory();
}

uint64_t Machine::NewLanes(uint64_t count) {
  next_lane_ += count;
  return next_lane_ - count;
}

void Machine::Execute(Work* work) {
  now_microseconds_ += kMicrosecondsPerWork;
  cudaError_t* const error = &gpu(work->gpu).error;
  if (work->run != nullptr && *error == cudaSuccess) {
    ++statistics_.executed;
    for (int i = 0; i < gpus(); ++i) {
      const bool used = (work->memories >> i & 1) != 0;
      used ? gpu(i).arena.Open() : gpu(i).arena.Close();
    }
    for (auto fault = execution_faults_.begin(); fault != execution_faults_.end();) {
      if (--fault->count > 0) {
        ++fault;
        continue;
      }
      *error = static_cast<cudaError_t>(fault->error);
      fault = execution_faults_.erase(fault);
    }
    if (*error == cudaSuccess) *error = static_cast<cudaError_t>(work->run());
  }
  work->run = nullptr;
  work->done = true;
  work->done_microseconds = now_microseconds_;
}

void Machine::CloseMemory() {
  for (const auto& gpu : gpus_) gpu->arena.Close();
}

cudaError_t Machine::LaunchGraph(CUgraphExec_st* executable, CUstream_st* stream) {
  std::map<const Node*, WorkPointer> works;
  std::vector<WorkPointer> before;
  if (stream->last != nullptr) before.push_back(stream->last);
  if (executable->last_launch != nullptr) before.push_back(executable->last_launch);
  auto end = std::make_shared<Work>();
  end->gpu = stream->gpu;
  end->after = before;
  for (const auto& node : executable->graph.nodes) {
    auto work = std::make_shared<Work>(node->work);
    work->after = before;
    for (const Node* needed : node->after) work->after.push_back(works.at(needed));
    if (node->waits_for != nullptr) {
      if (node->waits_for->destroyed) {
        Complain("a graph waits for an event that has been destroyed");
        return cudaErrorInvalidResourceHandle;
      }
      if (node->waits_for->work != nullptr) work->after.push_back(node->waits_for->work);
    }
    if (node->records != nullptr) {
      if (node->records->destroyed) {
        Complain("a graph records an event that has been destroyed");
        return cudaErrorInvalidResourceHandle;
      }
      node->records->work = work;
    }
    works[node.get()] = work;
    end->after.push_back(work);
    AddToLane(executable->first_lane + node->branch, std::move(work));
  }
  executable->last_launch = stream->last = end;
  AddToLane(stream->lane, std::move(end));
  return cudaSuccess;
}

}  // namespace keelson::cuda_emulation
