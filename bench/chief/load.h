// Makes calls at fixed rates, however long each takes.
#ifndef KEELSON_BENCH_CHIEF_LOAD_H_
#define KEELSON_BENCH_CHIEF_LOAD_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/stop_signal.h"

namespace keelson::bench {

// Calls of one kind, numbered from 0.
struct Stream {
  double per_second = 0;
  std::function<void(int64_t number)> call;  // returns at once
};

// Used by one thread.
class Load {
 public:
  // `stop` outlives this; null: one that is never raised.
  explicit Load(std::vector<Stream> streams, const StopSignal* stop = nullptr);

  // Makes the calls that are due within the next seconds, on the calling thread; a later Run goes
  // on with the numbers. Calls that are late are made, so that as many are made as are due. Returns
  // early when `stop` is raised.
  void Run(double seconds);
  // The same with the time given: makes the calls that are due `elapsed` seconds after the start.
  void MakeDue(double elapsed);

 private:
  const std::vector<Stream> streams_;
  const StopSignal* const stop_;
  std::vector<int64_t> made_;  // by stream
  double elapsed_ = 0;         // of all that ran so far
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_LOAD_H_
