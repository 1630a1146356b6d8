// The measurements of one client within a window of time that all processes of a run share.
#ifndef KEELSON_BENCH_METER_H_
#define KEELSON_BENCH_METER_H_

#include <cstdint>
#include <vector>

#include "bench/statistics.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Seconds of the system's monotonic clock, the same for all processes of a host.
double MonotonicSeconds();

// Seconds as MonotonicSeconds.
struct Window {
  double begin = 0;
  double end = 0;
  // Clients continue until then, so that the last operations of others, which may end after the
  // window, run under the same load. Not before `end`.
  double until = 0;
};

// A client's transfer rates, and the durations of its calls.
struct ClientRates {
  double calls = 0;  // RPCs
  double pushed_bytes = 0;
  double pulled_bytes = 0;
};

// The rates of a process's clients.
struct ClientReport {
  std::vector<ClientRates> clients;
  LatencyHistogram latencies;
  int64_t failures = 0;

  void Add(const ClientReport& other);
};

nlohmann::json ToJson(const ClientReport& report);
// Reads the JSON that ToJson wrote.
ClientReport ReportFromJson(const nlohmann::json& json);

// Counts from the first operation that ends within the window to the first that ends after it, so
// that whole operations are divided by the time that they took, however long one takes. Operations
// that end before the window are warm-up, those that end later are load for others. Used by one
// thread.
class Meter {
 public:
  explicit Meter(const Window& window) : window_(window) {}

  struct Operation {
    double started = 0;
    double ended = 0;
    // Time before `started` that is not the client's work but the measurement's.
    double left_out = 0;
    int64_t calls = 1;
    int64_t pushed_bytes = 0;
    int64_t pulled_bytes = 0;
  };

  // False when the client may stop.
  bool Count(const Operation& operation);
  bool over() const { return over_; }

  // The report of one client.
  ClientReport Report() const;

 private:
  const Window window_;
  bool counting_ = false;
  bool counted_ = false;
  bool over_ = false;
  double begin_ = 0;
  double end_ = 0;
  double left_out_ = 0;  // of the time between
  int64_t calls_ = 0;
  int64_t pushed_bytes_ = 0;
  int64_t pulled_bytes_ = 0;
  ClientReport report_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_METER_H_
