// Measures how fast the lines of a file become batches.
#ifndef KEELSON_BENCH_DATA_MEASUREMENT_H_
#define KEELSON_BENCH_DATA_MEASUREMENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/statistics.h"
#include "core/data/record_format.h"

namespace keelson::bench {

struct LineFile {
  std::string name;
  // The file, whose lines are all records of the format.
  std::string path;
  std::function<std::unique_ptr<const RecordFormat>()> new_format;
  // What parsing should reach, in 10^9 bytes in a second; 0: there is no goal.
  double goal = 0;
  // A path for the same records as a columnar file, which is written there, and stays.
  std::string columnar = {};
};

// So many times as fast as lines of the file columnar records should be, in their order.
inline constexpr double kColumnarGoal = 3;

struct MeasuredLines {
  std::string subject;
  // "memchr": finds the ends of the lines in memory. "parse": these lines to batches. "index":
  // reads the file, and notes where lines begin. "in order" and "at random": batches of the records
  // of the file, by their numbers; "columnar, in order" and "columnar, at random": of the columnar
  // file.
  std::string operation;
  Spread gigabytes;  // of the lines, in a second of the thread's time on a core
  Spread records;    // millions, likewise
  double goal = 0;   // of gigabytes; 0: none
};

// Measures all operations in turns, `repeat` times, on this thread. A batch has `batch` records.
// Errors: those of the file and of its records.
absl::StatusOr<std::vector<MeasuredLines>> Measure(const LineFile& subject, int64_t batch,
                                                   int repeat);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_DATA_MEASUREMENT_H_
