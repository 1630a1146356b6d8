// A whole training step on a GPU against parameter servers: how much of the exchange is hidden
// behind the computation.
#ifndef KEELSON_BENCH_GPU_STEP_H_
#define KEELSON_BENCH_GPU_STEP_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "bench/scenario.h"
#include "bench/statistics.h"
#include "core/device/precision.h"

namespace keelson::bench {

// A perceptron of equal dense layers with ReLU between them, as many classes as units: "100MB" of
// bench/models.h is 6 layers of 2048 units.
struct PerceptronExtents {
  int layers = 6;
  int64_t units = 2048;
};

struct StepCase {
  std::string name;
  Precision precision = Precision::kFloat32;
  Wire wire = Wire::kFloat32;
  size_t depth = 1;
  int64_t batch = 4096;
  int servers = 2;  // processes on this host, over TCP; SGD
};

struct StepBenchOptions {
  std::string device = "cuda:0";
  PerceptronExtents model;
  int steps = 20;  // of each kind that is measured, after three that do not count
};

// Milliseconds; medians where it is no spread.
struct StepMeasurement {
  StepCase step_case;
  // The time of whole steps, one after the other.
  Spread step;
  // The times of steps without the exchange, and of exchanges without a step beside them: gradients
  // from the GPU to the servers, values back and onto the GPU.
  Spread compute;
  Spread transfer;

  // Within a whole step. The host waits for parameters from its last gradient's leaving until it
  // may begin the next step.
  double wait_for_parameters = 0;
  // The time in which any copy is under way: the batch and values, and gradients.
  double host_to_device = 0;
  double device_to_host = 0;
  double forward = 0;
  double backward = 0;
  // From the first gradient that could be sent to the last answer.
  double push = 0;
  // The time of forward and backward with nothing beside them, which the GPU needs to compute.
  double busy = 0;

  // Part of the transfer that costs no time, in [0, 1].
  double Hidden() const;
  // Part of a step in which the GPU computes nothing, in [0, 1].
  double Idle() const;
};

// Starts servers and trains. Errors of the device, the model, the client and the processes.
absl::StatusOr<StepMeasurement> MeasureStep(const StepCase& step_case,
                                            const StepBenchOptions& options);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_GPU_STEP_H_
