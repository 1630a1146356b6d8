// The examples with the largest errors of a model, with what they have of its features.
#ifndef KEELSON_CORE_SCORING_WORST_EXAMPLES_H_
#define KEELSON_CORE_SCORING_WORST_EXAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/data/columns/record_columns.h"
#include "core/model/spec/batch.h"

namespace keelson {

// The first WorstExamples::kValues values that an example has of a feature: numbers, or ids and
// their weights, where they have any.
struct ExampleValues {
  std::vector<float> numbers = {};
  std::vector<uint64_t> ids = {};
  std::vector<float> weights = {};
  int64_t count = 0;  // of all of them
};

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
  // Of a model that takes one feature, of numbers: these, [0, 1] as 0 to 255 with clipping. Empty:
  // there are more than WorstExamples::kMaxInputBytes of them.
  std::vector<uint8_t> input = {};
  // Of any other model: by feature.
  std::vector<ExampleValues> features = {};
  // What the record has in the columns of its file; empty: it has none, or nobody has asked.
  RecordColumns columns = {};
};

class WorstExamples {
 public:
  static constexpr size_t kExamples = 24;
  static constexpr size_t kMaxInputBytes = 64 * 1024;
  static constexpr size_t kValues = 32;

  // Takes the example, of the batch's row, if it is among the worst so far, with its values.
  // Equally bad ones are ordered by record. Badness that is not a number is the worst.
  void Add(WrongExample example, const Batch& batch, int64_t row);

  // The worst first.
  const std::vector<WrongExample>& worst() const { return worst_; }

 private:
  std::vector<WrongExample> worst_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_WORST_EXAMPLES_H_
