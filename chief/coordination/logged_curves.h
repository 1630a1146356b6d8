// The numbers that scripts log, over steps: means over the intervals of the loss curve.
#ifndef KEELSON_CHIEF_COORDINATION_LOGGED_CURVES_H_
#define KEELSON_CHIEF_COORDINATION_LOGGED_CURVES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace keelson {

// Not thread-safe. Keeps at most kMaxNames names, and kMaxKept sums of values that are not taken;
// what goes beyond is left out.
class LoggedCurves {
 public:
  static constexpr size_t kMaxNames = 100;
  static constexpr size_t kMaxKept = size_t{1} << 16;

  // One that is not a number, or infinite, is left out of the means.
  void Add(const std::string& name, int64_t step, double value);

  // By name the mean of the values that were logged for steps below `end` and not taken before,
  // whichever worker logged them; those that come later count in the next mean.
  std::map<std::string, double> TakeBelow(int64_t end);

  // By name the newest mean that was taken.
  const std::map<std::string, double>& newest() const { return newest_; }

 private:
  struct Sum {
    double values = 0;
    int64_t count = 0;
  };

  std::map<std::string, std::map<int64_t, Sum>> sums_;  // by name and step
  size_t kept_ = 0;
  std::map<std::string, double> newest_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_LOGGED_CURVES_H_
