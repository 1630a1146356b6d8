// The objects behind the handles of the emulated runtime.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_OBJECTS_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_OBJECTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "testing/device/cuda_emulation/scheduler.h"

namespace keelson::cuda_emulation {

struct Capture;
struct Node;

// Outlives its handle where a graph names it.
struct EventState {
  bool destroyed = false;
  WorkPointer work;  // of the last record; null before it
  // While it is recorded within a capture, not as an external event.
  Capture* capture = nullptr;
  std::vector<Node*> captured_after;
};

// Something that a graph does.
struct Node {
  Work work;  // `after` is empty
  std::vector<Node*> after;
  uint64_t branch = 0;  // the stream that it was captured from, from 0
  std::shared_ptr<EventState> records;
  std::shared_ptr<EventState> waits_for;
};

// A capture under way; of some streams.
struct Capture {
  CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<CUstream_st*> streams;  // the index is the branch
  std::vector<std::unique_ptr<Node>> nodes;
  std::set<std::shared_ptr<EventState>> events;  // that were recorded within it
};

}  // namespace keelson::cuda_emulation

struct CUstream_st {
  int gpu = 0;
  uint64_t lane = 0;
  bool non_blocking = false;
  keelson::cuda_emulation::WorkPointer last;  // null when there was none
  // Null when it is not being captured.
  keelson::cuda_emulation::Capture* capture = nullptr;
  std::vector<keelson::cuda_emulation::Node*> capture_after;
};

struct CUevent_st {
  int gpu = 0;
  bool timing = true;
  std::shared_ptr<keelson::cuda_emulation::EventState> state;
};

struct CUgraph_st {
  std::vector<std::shared_ptr<keelson::cuda_emulation::Node>> nodes;
  uint64_t branches = 0;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  uint64_t first_lane = 0;
  keelson::cuda_emulation::WorkPointer last_launch;
};

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_OBJECTS_H_
