// The examples with the largest errors of a model, with their features.
#ifndef KEELSON_CORE_SCORING_WORST_EXAMPLES_H_
#define KEELSON_CORE_SCORING_WORST_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace keelson {

struct WrongExample {
  int64_t record = 0;
  // The size of the error, by which the worst are chosen.
  double badness = 0;
  // With classes, their numbers (a prediction of -1 is none); otherwise target and prediction.
  float label = 0;
  float prediction = 0;
  // With classes, the probabilities of the predicted class and of the label.
  float confidence = 0;
  float label_probability = 0;
  // The features, [0, 1] as 0 to 255 with clipping. Empty: there are more than
  // WorstExamples::kMaxInputBytes of them.
  std::vector<uint8_t> input;
};

class WorstExamples {
 public:
  static constexpr size_t kExamples = 24;
  static constexpr size_t kMaxInputBytes = 64 * 1024;

  // Takes the example if it is among the worst so far; `example.input` is made of `features`.
  // Equally bad ones are ordered by record. Badness that is not a number is the worst.
  void Add(WrongExample example, absl::Span<const float> features);

  // The worst first.
  const std::vector<WrongExample>& worst() const { return worst_; }

 private:
  std::vector<WrongExample> worst_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_WORST_EXAMPLES_H_
