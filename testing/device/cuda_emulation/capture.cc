#include <algorithm>
#include <utility>

#include "testing/device/cuda_emulation/machine.h"

namespace keelson::cuda_emulation {
namespace {

// Everything that `last` come after, themselves included.
std::set<const Node*> WithPredecessors(const std::vector<Node*>& last) {
  std::set<const Node*> found;
  std::vector<const Node*> open(last.begin(), last.end());
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!found.insert(node).second) continue;
    open.insert(open.end(), node->after.begin(), node->after.end());
  }
  return found;
}

// Whether the origin comes after everything that the other streams do.
bool Joined(const Capture& capture) {
  const std::set<const Node*> before = WithPredecessors(capture.origin->capture_after);
  return std::all_of(capture.nodes.begin(), capture.nodes.end(),
                     [&](const auto& node) { return before.contains(node.get()); });
}

}  // namespace

cudaError_t Machine::BeginCapture(CUstream_st* stream, cudaStreamCaptureMode mode) {
  if (stream->capture != nullptr) return cudaErrorIllegalState;
  if (stream == &gpu(stream->gpu).default_stream) return cudaErrorStreamCaptureUnsupported;
  auto capture = std::make_unique<Capture>();
  capture->origin = stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.push_back(stream);
  stream->capture = capture.get();
  captures_.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t Machine::EndCapture(CUstream_st* stream, cudaGraph_t* graph) {
  *graph = nullptr;
  Capture* const capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != stream) return cudaErrorStreamCaptureUnmatched;
  const bool any_thread = capture->mode == cudaStreamCaptureModeRelaxed;
  if (!any_thread && capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  cudaError_t error = cudaSuccess;
  if (capture->invalid) {
    error = cudaErrorStreamCaptureInvalidated;
  } else if (!Joined(*capture)) {
    error = cudaErrorStreamCaptureUnjoined;
  } else {
    auto captured = std::make_unique<CUgraph_st>();
    captured->branches = capture->streams.size();
    for (auto& node : capture->nodes) captured->nodes.push_back(std::move(node));
    *graph = graphs.Add(std::move(captured));
  }
  LeaveCapture(capture);
  return error;
}

void Machine::LeaveCapture(Capture* capture) {
  for (CUstream_st* stream : capture->streams) {
    if (!streams.Has(stream)) continue;
    stream->capture = nullptr;
    stream->capture_after.clear();
  }
  for (const auto& event : capture->events) {
    if (event->capture != capture) continue;
    event->capture = nullptr;
    event->captured_after.clear();
  }
  std::erase_if(captures_, [capture](const auto& other) { return other.get() == capture; });
}

bool Machine::ForbiddenByCapture() {
  bool forbidden = false;
  for (const auto& capture : captures_) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool meant = capture->mode == cudaStreamCaptureModeGlobal ||
                       (own && capture->mode == cudaStreamCaptureModeThreadLocal);
    if (meant) capture->invalid = forbidden = true;
  }
  return forbidden;
}

cudaError_t Machine::JoinCapture(CUstream_st* stream, const EventState& event) {
  if (stream->capture != nullptr && stream->capture != event.capture) {
    stream->capture->invalid = event.capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (event.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream->capture == nullptr) {
    stream->capture = event.capture;
    event.capture->streams.push_back(stream);
  }
  for (Node* node : event.captured_after) stream->capture_after.push_back(node);
  return cudaSuccess;
}

Node* Machine::AddNode(CUstream_st* stream) {
  Capture* const capture = stream->capture;
  auto node = std::make_unique<Node>();
  node->work.gpu = stream->gpu;
  node->after = std::move(stream->capture_after);
  node->branch =
      static_cast<uint64_t>(std::find(capture->streams.begin(), capture->streams.end(), stream) -
                            capture->streams.begin());
  stream->capture_after = {node.get()};
  capture->nodes.push_back(std::move(node));
  return capture->nodes.back().get();
}

}  // namespace keelson::cuda_emulation
