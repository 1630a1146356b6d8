// The measurements of a scenario, with the others of the same comparison.
#ifndef KEELSON_BENCH_RESULT_H_
#define KEELSON_BENCH_RESULT_H_

#include <cstdint>
#include <vector>

#include "bench/run.h"
#include "bench/scenario.h"
#include "bench/statistics.h"

namespace keelson::bench {

// The measurements of one contender. Bytes are payload on the wire; GB are 1e9 bytes.
struct Measured {
  Spread push;  // GB/s
  Spread pull;
  // The payload rate of each direction that the contender uses.
  Spread goodput;
  Spread calls;       // per second
  Spread client_cpu;  // processor seconds per GB, both directions together
  Spread server_cpu;
  double p50_us = 0;
  double p99_us = 0;
  // Largest by smallest rate of a client, in the run of the median; 0 with one client.
  double unfairness = 0;
  int64_t failures = 0;

  double cpu() const { return client_cpu.median + server_cpu.median; }
};

// `runs` are repetitions.
Measured Summarize(const std::vector<RunResult>& runs);

// The limits at the comparison's message size.
struct MeasuredLimits {
  Measured raw_socket;
  Measured memory_copy;
  Measured empty_rpc;
};

struct Memory {
  // The resident memory of all servers, and of the largest worker.
  int64_t server_resident = 0;
  int64_t worker_resident = 0;
  // The least memory that the model needs: values and slots.
  int64_t values = 0;
  int64_t slots = 0;
};

struct Result {
  Scenario scenario;
  int64_t message_bytes = 0;  // largest payload on the wire
  Measured measured;
  Measured baseline;  // the generated stubs, in the same direction
  MeasuredLimits limits;
  Memory memory;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_RESULT_H_
