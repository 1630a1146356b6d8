// A step is many small kernels, and launching each costs the host about as long as it runs. A graph
// is one launch. Only the second run is captured: the first one may load kernels and grow scratch
// memory, which a capture does not allow. A graph has addresses in it, so all graphs are dropped
// when memory was freed.
#include "core/device/cuda/cuda_graphs.h"

namespace keelson {
namespace {

constexpr size_t kMostGraphs = 8;

}  // namespace

CudaGraphs::~CudaGraphs() {
  context_->BeginRelease();
  context_->SynchronizeStreams();
  Clear();
}

void CudaGraphs::Clear() {
  for (const auto& [key, graph] : graphs_) {
    if (graph != nullptr) context_->Check("cudaGraphExecDestroy", cudaGraphExecDestroy(graph));
  }
  graphs_.clear();
}

void CudaGraphs::Repeat(uint64_t key, absl::FunctionRef<void()> operations) {
  if (frees_ != context_->frees()) Clear();
  frees_ = context_->frees();
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) return Run(key, operations);
  if (found->second == nullptr) found->second = Capture(operations);
  if (found->second == nullptr) return;
  // Copies that were put on the download stream directly are executed before the graph's.
  if (!context_->Order(context_->download(), context_->compute())) return;
  context_->Check("cudaGraphLaunch", cudaGraphLaunch(found->second, context_->compute()));
}

void CudaGraphs::Run(uint64_t key, absl::FunctionRef<void()> operations) {
  context_->BeginRepeat(/*captured=*/false);
  operations();
  context_->EndRepeat();
  // Memory was freed (scratch memory that has grown, for example) which the graphs may use.
  if (frees_ != context_->frees()) Clear();
  frees_ = context_->frees();
  if (graphs_.size() < kMostGraphs) graphs_.emplace(key, nullptr);
}

cudaGraphExec_t CudaGraphs::Capture(absl::FunctionRef<void()> operations) {
  const cudaStream_t compute = context_->compute(), download = context_->download();
  if (!context_->Check("cudaStreamBeginCapture",
                       cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal))) {
    return nullptr;
  }
  context_->BeginRepeat(/*captured=*/true);
  context_->Order(compute, download);
  operations();
  // The capture ends on the stream where it began, after all work that was captured.
  context_->Order(download, compute);
  context_->EndRepeat();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  if (context_->Check("cudaStreamEndCapture", cudaStreamEndCapture(compute, &graph)) &&
      context_->status().ok()) {
    context_->Check("cudaGraphInstantiate", cudaGraphInstantiate(&executable, graph, 0));
  }
  if (graph != nullptr) context_->Check("cudaGraphDestroy", cudaGraphDestroy(graph));
  return executable;
}

}  // namespace keelson
