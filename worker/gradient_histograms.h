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
#include "core/summary/event_writer.h"
#include "core/summary/histogram.h"
#include "core/tensor/variable.h"
#include "core/wire/wire_layout.h"

namespace keelson {

// Of the trained variables, every so many steps of the worker, the first one included: an event
// with a histogram "gradients/<variable>" each, and the scalar "gradients/non_finite", the number
// of elements that are in none of them because they are not finite. The gradients are those that
// are pushed: clipped, and where devices encode them (wire memory) what the encoding has left.
//
// What goes wrong with the file is logged, once until it works again, and costs those histograms
// only. Used by one thread.
class GradientHistograms {
 public:
  struct Options {
    std::string directory;
    int64_t every = 0;  // > 0
  };

  // Clock and file system outlive this. The file is created with the first histograms.
  GradientHistograms(Options options, std::vector<VariableSpec> variables, const Clock* clock,
                     FileSystem* file_system = FileSystem::Real());

  // From here on gradients may come from `gradients` ([set][variable]), laid out as `layouts` (by
  // variable) say. The memory outlives this, or the next call.
  void UseWireMemory(std::vector<WireLayout> layouts,
                     std::vector<std::vector<absl::Span<uint8_t>>> gradients);

  // A step begins. What is left of the one before is dropped.
  void BeginStep();
  // Whether the step's gradients are wanted: all of them, or the variables that are added.
  bool wanted() const { return wanted_; }
  // Once for each variable of a step that is wanted, when its gradient is complete.
  void Add(int variable, absl::Span<const float> gradient);
  void AddEncoded(int variable, int set);
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
  std::unique_ptr<EventWriter> writer_;
  int64_t steps_ = 0;
  bool wanted_ = false;
  bool failing_ = false;
  std::vector<std::pair<std::string, Histogram>> histograms_;
  std::vector<float> decoded_;  // reused
};

}  // namespace keelson

#endif  // KEELSON_WORKER_GRADIENT_HISTOGRAMS_H_
