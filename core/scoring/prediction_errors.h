// Measures the distance of predictions from their targets.
#ifndef KEELSON_CORE_SCORING_PREDICTION_ERRORS_H_
#define KEELSON_CORE_SCORING_PREDICTION_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace keelson {

class PredictionErrors {
 public:
  void Add(double target, double prediction);

  // Not-a-number without examples.
  double MeanSquared() const { return squared_ / static_cast<double>(examples_); }
  double MeanAbsolute() const { return absolute_ / static_cast<double>(examples_); }

 private:
  double squared_ = 0;
  double absolute_ = 0;
  int64_t examples_ = 0;
};

// A sample of (target, prediction): the same records whenever the same records are evaluated, in
// whatever batches, each with the same probability.
class PairSample {
 public:
  static constexpr size_t kPairs = 500;

  // Add each record at most once.
  void Add(int64_t record, float target, float prediction);

  // The sampled pairs, ordered by record.
  std::vector<std::pair<float, float>> Pairs() const;

 private:
  struct Pair {
    uint64_t rank = 0;  // drawn by record
    int64_t record = 0;
    float target = 0;
    float prediction = 0;

    bool operator<(const Pair& other) const { return rank < other.rank; }
  };

  // A heap: the first has the highest rank.
  std::vector<Pair> pairs_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_SCORING_PREDICTION_ERRORS_H_
