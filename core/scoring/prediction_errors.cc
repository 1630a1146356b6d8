#include "core/scoring/prediction_errors.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace keelson {
namespace {

uint64_t RankOf(int64_t record) {
  constexpr uint64_t kKey = 0x7061697273;  // any
  const auto bits = Philox(kKey, 0, static_cast<uint64_t>(record));
  return uint64_t{bits[0]} << 32 | bits[1];
}

}  // namespace

void PredictionErrors::Add(double target, double prediction) {
  const double error = prediction - target;
  squared_ += error * error;
  absolute_ += std::abs(error);
  ++examples_;
}

void PairSample::Add(int64_t record, float target, float prediction) {
  const Pair pair{RankOf(record), record, target, prediction};
  if (pairs_.size() == kPairs) {
    if (!(pair < pairs_.front())) return;
    std::pop_heap(pairs_.begin(), pairs_.end());
    pairs_.pop_back();
  }
  pairs_.push_back(pair);
  std::push_heap(pairs_.begin(), pairs_.end());
}

std::vector<std::pair<float, float>> PairSample::Pairs() const {
  std::vector<Pair> by_record = pairs_;
  std::sort(by_record.begin(), by_record.end(),
            [](const Pair& a, const Pair& b) { return a.record < b.record; });
  std::vector<std::pair<float, float>> pairs;
  pairs.reserve(by_record.size());
  for (const Pair& pair : by_record) pairs.emplace_back(pair.target, pair.prediction);
  return pairs;
}

}  // namespace keelson
