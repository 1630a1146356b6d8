// Histograms of a worker's gradients, for TensorBoard.
#ifndef KEELSON_WORKER_GRADIENT_HISTOGRAMS_H_
#define KEELSON_WORKER_GRADIENT_HISTOGRAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/summary/histogram.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// Hands an event over to the chief (core/summary/event_handover.h) at the worker's first step and
// every `every` steps after it. It has a histogram "gradients/<variable>" for each trained
// variable, and the scalar "gradients/non_finite", the number of elements that are not finite and
// in no histogram. The gradients are those that are pushed: clipped and, where devices encode them
// (wire memory), as encoded.
//
// An error of the file is logged once until writing works again, and only those histograms are
// lost. Used by one thread.
class GradientHistograms {
 public:
  struct Options {
    std::string directory;
    int64_t every = 0;  // > 0
  };

  // Clock and file system outlive this.
  GradientHistograms(Options options, std::vector<VariableSpec> variables, const Clock* clock,
                     FileSystem* file_system = FileSystem::Real());

  // From now on gradients may come from `gradients` ([set][variable]), laid out as in `layouts` (by
  // variable). The memory outlives this object or the next call.
  void UseWireMemory(std::vector<WireLayout> layouts,
                     std::vector<std::vector<absl::Span<uint8_t>>> gradients);

  // Begins a step and drops the gradients of one that was not ended.
  void BeginStep();
  // Whether histograms of this step are written, so that its gradients must be added.
  bool wanted() const { return wanted_; }
  // Call once for each variable of a wanted step, when its gradient is complete.
  void Add(size_t variable, absl::Span<const float> gradient);
  void AddEncoded(size_t variable, size_t set);
  // The step is pushed; `step` are the steps of the job that are completed with it. A no-op when it
  // is not wanted.
  void EndStep(int64_t step);

 private:
  absl::Status Write(int64_t step);

  const Options options_;
  const std::vector<VariableSpec> variables_;
  const Clock* const clock_;
  FileSystem* const file_system_;

  std::vector<WireLayout> layouts_;
  std::vector<std::vector<absl::Span<uint8_t>>> encoded_;
  int64_t steps_ = 0;
  bool wanted_ = false;
  bool failing_ = false;
  std::vector<std::pair<std::string, Histogram>> histograms_;
  std::vector<float> decoded_;  // reused
};

}  // namespace keelson

#endif  // KEELSON_WORKER_GRADIENT_HISTOGRAMS_H_
