// Counts predicted classes by label.
#ifndef KEELSON_CORE_SCORING_CLASS_COUNTS_H_
#define KEELSON_CORE_SCORING_CLASS_COUNTS_H_

#include <cstdint>
#include <vector>

namespace keelson {

// Shares of one class's examples and predictions; one whose denominator is 0 is 0.
struct ClassQuality {
  double precision = 0;  // of the examples that were predicted to be of the class
  double recall = 0;     // of the examples of the class
  double f1 = 0;         // harmonic mean of both
  int64_t support = 0;   // examples of the class
};

class ClassCounts {
 public:
  // With more classes than this there is no confusion matrix.
  static constexpr int64_t kMaxConfusionClasses = 200;

  explicit ClassCounts(int64_t classes);

  // Both are in [0, classes); a prediction may be -1, none, which is right for no label.
  void Add(int64_t label, int64_t predicted);

  int64_t examples() const { return examples_; }
  // Share of the examples whose label was predicted. Not-a-number without examples.
  double Accuracy() const;
  // By class.
  std::vector<ClassQuality> Qualities() const;
  // [label][predicted]; empty beyond kMaxConfusionClasses. An example without a prediction is in
  // no column.
  std::vector<std::vector<int64_t>> Confusion() const;

 private:
  struct Class {
    int64_t support = 0;
    int64_t predicted = 0;
    int64_t right = 0;
  };

  std::vector<Class> classes_;
  std::vector<int64_t> confusion_;  // by label * classes + predicted
  int64_t examples_ = 0;
  int64_t right_ = 0;
};

// The mean of each measure over all classes that have examples; `support` is their sum. Zeros when
// there are none.
ClassQuality MeanOfClasses(const std::vector<ClassQuality>& qualities);

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_CLASS_COUNTS_H_
