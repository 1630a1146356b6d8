// Says when the training loss grows instead of shrinking: asynchronous steps at too high a learning
// rate may reach 1e21 without ever becoming infinite, and such a job has not succeeded.
#ifndef KEELSON_CHIEF_COORDINATION_DIVERGENCE_WATCH_H_
#define KEELSON_CHIEF_COORDINATION_DIVERGENCE_WATCH_H_

#include <cstdint>
#include <deque>
#include <string>

namespace keelson {

// Compares the mean loss of the newest steps with the lowest one of the first steps: where the
// learning rate is far too high, the second step is at 1e20 already. Not thread-safe.
class DivergenceWatch {
 public:
  // Losses per mean.
  static constexpr size_t kWindow = 20;
  // Training diverges above this multiple of the first loss, and has diverged above the second,
  // whose base is at least 1, because a restored job begins with a small loss.
  static constexpr double kDivergingFactor = 10;
  static constexpr double kDivergedFactor = 1e6;

  // `max_loss`: training has diverged above it; 0: kDivergedFactor says when.
  // `restored`: the first steps are not those of the job.
  DivergenceWatch(double max_loss, bool restored) : max_loss_(max_loss), restored_(restored) {}

  // The finite loss of a step.
  void Add(double loss);

  // Whether the newest mean is that high; also true once training has diverged.
  bool diverging() const;
  // One line for an error, "the mean training loss of 20 steps is 3e+07, …"; empty: training has
  // not diverged. `ended`: no steps follow, so that fewer than kWindow count, too.
  std::string Diverged(bool ended = false) const;

  double mean() const;  // of the newest steps; 0: none yet
  double first() const { return first_; }

 private:
  bool full() const { return newest_.size() == kWindow; }
  double DivergedAbove() const;

  const double max_loss_;
  const bool restored_;
  std::deque<double> newest_;
  double first_ = 0;        // the lowest loss of the first window
  size_t first_count_ = 0;  // losses that it was taken of
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_DIVERGENCE_WATCH_H_
