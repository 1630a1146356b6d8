// The memory that an evaluator shares with a script that scores.
#ifndef KEELSON_EVALUATOR_SCORING_MEMORY_H_
#define KEELSON_EVALUATOR_SCORING_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/sealed_memory.h"
#include "core/script/script_message.h"
#include "core/tensor/table_spec.h"
#include "core/tensor/variable.h"
#include "evaluator/script_scoring.h"

namespace keelson {

// A snapshot's values, the scores and labels of a batch, and the numbers of a prediction, float32;
// before them the directory of the variables (docs/agent-protocol.md). Who may touch which part is
// the protocol's to say.
class ScoringMemory {
 public:
  // `inputs`: how many numbers a prediction takes; 0: none. RESOURCE_EXHAUSTED: no memory to share.
  static absl::StatusOr<std::unique_ptr<ScoringMemory>> Create(
      absl::Span<const VariableSpec> variables, const ScriptScoring& scoring, int64_t inputs);

  // Tells the script of it, and of the tables whose rows it may ask for; goes with fd().
  ScriptMessage Description(absl::Span<const TableSpec> tables) const;
  int fd() const { return memory_->fd(); }

  // Of variable `v`, in the order of the directory.
  absl::Span<float> values(size_t v) const;
  // Of the first `records` of a batch; those of a prediction are one record's.
  absl::Span<const float> scores(int64_t records) const;
  absl::Span<const float> labels(int64_t records) const;
  absl::Span<float> inputs() const { return {Floats(inputs_at_), inputs_}; }
  // Where the inputs begin, in bytes.
  uint64_t inputs_at() const { return inputs_at_; }

 private:
  ScoringMemory() = default;

  float* Floats(size_t at) const { return reinterpret_cast<float*>(memory_->data() + at); }

  std::unique_ptr<SealedMemory> memory_;
  size_t directory_bytes_ = 0;
  std::vector<size_t> values_at_, elements_;  // by variable
  size_t outputs_ = 0;                        // scores of a record
  size_t scores_at_ = 0, labels_at_ = 0, inputs_at_ = 0;
  size_t inputs_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_SCORING_MEMORY_H_
