// Trains step by step: takes a batch and the newest values, computes gradients, exchanges them with
// the servers.
#ifndef KEELSON_WORKER_TRAINING_LOOP_H_
#define KEELSON_WORKER_TRAINING_LOOP_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/client/services/parameter_client.h"
#include "core/data/batcher.h"
#include "core/model/model.h"
#include "worker/chief_session.h"
#include "worker/gradient_histograms.h"
#include "worker/progress.h"

namespace keelson {

// The loop of one membership. Used by one thread.
//
// A step takes a batch, loads the values that came with the answer to the last push (or pulls them,
// if they are old or the ticket wants fresh ones), and computes. Each gradient is given to the
// client as soon as it is complete; or all are given at the end, if they are clipped first or the
// ticket is contested. A model that uses wire memory begins to load a variable's new values as soon
// as they arrive. Steps of the synchronous mode are not overlapped.
class TrainingLoop {
 public:
  struct Options {
    uint64_t seed = 0;
    float clip_global_norm = 0;  // 0: not clipped
  };

  // All outlive the loop. The client works on the model's wire memory, where the model uses that;
  // the histograms (null: none) read it.
  TrainingLoop(const Options& options, ChiefSession* session, Progress* progress,
               ParameterClient* client, Model* model, GradientHistograms* histograms,
               const Clock* clock)
      : options_(options),
        session_(session),
        progress_(progress),
        client_(client),
        model_(model),
        histograms_(histograms),
        clock_(clock),
        uses_wire_memory_(model->uses_wire_memory()),
        loaded_(model->variables().size()) {}

  // Trains until there are no more batches, or the session ends. A step that the servers have
  // counts, whatever ended the training. Errors are those of the batcher, the session, the client,
  // and the model. FAILED_PRECONDITION: the device is out of memory.
  absl::Status Run(Batcher* batcher);

  // The number of steps that the servers have acknowledged.
  int64_t finished_steps() const { return finished_steps_; }

 private:
  absl::Status TrainOnBatches(Batcher* batcher);
  absl::Status TrainStep(const PreparedBatch& prepared, FinishedStep step);
  absl::Status PrepareValues(const Ticket& ticket);
  // Loads the variables that are not loaded.
  absl::Status LoadValues();
  // Loads variables as they arrive, while others are on their way.
  absl::Status LoadArriving();
  absl::Status Load(int variable);
  // Marks all variables as not loaded, because the client's values change.
  void ValuesChange() { loaded_.assign(loaded_.size(), false); }
  // False: the loss is not finite, and nothing is pushed. The gradients of a contested ticket are
  // not offered.
  absl::StatusOr<bool> ComputeAndOffer(const PreparedBatch& prepared, FinishedStep* step);
  // False: the chief no longer wants the gradient.
  absl::StatusOr<bool> OfferContested(const Ticket& ticket);
  // The variable's gradient is complete.
  void Offer(int variable);
  GradientTarget Target() const { return {client_->gradients(), client_->gradient_set()}; }
  // Waits for the step that is still under way at depth 2.
  absl::Status Drain();
  // Records the oldest step under way as acknowledged by the servers.
  void Acknowledge(const std::optional<PushResult>& pushed);

  const Options options_;
  ChiefSession* const session_;
  Progress* const progress_;
  ParameterClient* const client_;
  Model* const model_;
  GradientHistograms* const histograms_;
  const Clock* const clock_;
  const bool uses_wire_memory_;

  // Steps given to the client and not acknowledged yet, the oldest first.
  std::deque<FinishedStep> under_way_;
  // By variable: the model holds the client's current values.
  std::vector<bool> loaded_;
  // When the values arrived that the model uses next.
  absl::Duration values_from_ = -absl::InfiniteDuration();
  // The newest lease for which fresh values were pulled.
  uint64_t fresh_lease_ = 0;
  int64_t finished_steps_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_TRAINING_LOOP_H_
