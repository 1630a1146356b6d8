// Trains step by step: takes a batch and the newest values, computes gradients, exchanges them with
// the servers.
#ifndef KEELSON_WORKER_TRAINING_LOOP_H_
#define KEELSON_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/client/services/parameter_client.h"
#include "core/data/batcher.h"
#include "core/model/model.h"
#include "worker/chief_session.h"
#include "worker/gradient_histograms.h"
#include "worker/model_values.h"
#include "worker/progress.h"
#include "worker/step_exchange.h"

namespace keelson {

// The loop of one membership. Used by one thread.
//
// A step takes a batch, loads the values that came with the answer to the last push (or pulls them,
// if they are old or the ticket wants fresh ones), and computes. What happens to its gradients
// depends on the kind of its ticket (StepExchange).
class TrainingLoop {
 public:
  struct Options {
    uint64_t seed = 0;
    float clip_global_norm = 0;  // 0: not clipped
  };

  // All outlive the loop. The client works on the model's wire memory, where the model uses that;
  // the histograms (null: none) read it. `tables` are of the batcher that Run gets; null: the model
  // has none.
  TrainingLoop(const Options& options, ChiefSession* session, Progress* progress,
               ParameterClient* client, Model* model, GradientHistograms* histograms,
               TableExchange* tables, const Clock* clock)
      : options_(options),
        session_(session),
        progress_(progress),
        client_(client),
        clock_(clock),
        values_(client, model, clock),
        parts_{session, client, model, histograms, &values_, tables} {}

  // Trains until there are no more batches, or the session ends. A step that the servers have
  // counts, whatever ended the training. Errors are those of the batcher, the session, the client,
  // and the model. FAILED_PRECONDITION: the device is out of memory.
  absl::Status Run(Batcher* batcher);

  // The number of steps that the servers have acknowledged.
  int64_t finished_steps() const { return finished_steps_; }

 private:
  absl::Status TrainOnBatches(Batcher* batcher);
  absl::Status TrainStep(const PreparedBatch& prepared, FinishedStep step);
  absl::Status PrepareValues(const PreparedBatch& prepared);
  // False: the loss is not finite, and nothing is pushed.
  absl::StatusOr<bool> Compute(const PreparedBatch& prepared, StepExchange* exchange,
                               FinishedStep* step);
  // Has the client send the step, if the chief still wants it, and loads the values that come back.
  absl::Status Push(StepExchange* exchange, const FinishedStep& step);
  // Waits for the step that is still under way at depth 2.
  absl::Status Drain();
  // Records the oldest step under way as acknowledged by the servers.
  void Acknowledge(const std::optional<PushResult>& pushed);

  const Options options_;
  ChiefSession* const session_;
  Progress* const progress_;
  ParameterClient* const client_;
  const Clock* const clock_;
  ModelValues values_;
  const StepExchange::Parts parts_;

  // Steps given to the client and not acknowledged yet, the oldest first.
  std::deque<FinishedStep> under_way_;
  int64_t finished_steps_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_TRAINING_LOOP_H_
