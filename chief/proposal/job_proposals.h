// What scripts propose to train (ChiefService.ProposeJob): the first complete proposal decides, and
// later ones are compared with it.
#ifndef KEELSON_CHIEF_PROPOSAL_JOB_PROPOSALS_H_
#define KEELSON_CHIEF_PROPOSAL_JOB_PROPOSALS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/proposal/received_values.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/mutex.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/chief_service.pb.h"

namespace keelson {

// The answer of a chief whose job is decided; `config` is final. INVALID_ARGUMENT: the proposed
// configuration makes no sense, or is not of an external model. FAILED_PRECONDITION: it is another
// job, the first difference.
absl::Status AnswerProposal(const v1::TrainConfig& config, const v1::ProposeJobRequest& request,
                            v1::ProposeJobResponse* response);

struct ProposedJob {
  v1::TrainConfig config;                  // final, with the model directory
  std::unique_ptr<ReceivedValues> values;  // null: those that the directory has are the job's
};

// The proposals to a chief whose job is not decided. Thread-safe.
class JobProposals {
 public:
  // Whoever sends no part for so long gives way to another proposal.
  static constexpr absl::Duration kSilence = absl::Seconds(5);

  // `file_system` has the model directory. Both pointers outlive this.
  JobProposals(std::string model_dir, FileSystem* file_system, const Clock* clock)
      : model_dir_(std::move(model_dir)), file_system_(file_system), clock_(clock) {}

  // See chief_service.proto. Initial values are asked for unless the model directory has both a
  // snapshot and such values from before: then the job goes on with these. Errors also of
  // file_system.h.
  absl::Status Propose(const v1::ProposeJobRequest& request, v1::ProposeJobResponse* response);

  // Waits until a proposal is complete, and takes it; once. Nothing: none was within `patience`.
  // CANCELLED: `stop` was raised.
  absl::StatusOr<std::optional<ProposedJob>> Await(absl::Duration patience, const StopSignal& stop);

 private:
  struct Arriving {
    uint64_t id = 0;
    int64_t initial_bytes = 0;
    absl::Duration heard;
    ProposedJob job;
  };

  absl::Status Begin(const v1::ProposeJobRequest& request, v1::TrainConfig config)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Take(const v1::ProposeJobRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<bool> WantsValues() const;

  const std::string model_dir_;
  FileSystem* const file_system_;
  const Clock* const clock_;

  Mutex mu_;
  CondVar decided_now_;
  std::optional<Arriving> arriving_ ABSL_GUARDED_BY(mu_);
  // The decided job's, for answers; `job_` until it is taken.
  std::optional<v1::TrainConfig> decided_ ABSL_GUARDED_BY(mu_);
  std::optional<ProposedJob> job_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_PROPOSAL_JOB_PROPOSALS_H_
