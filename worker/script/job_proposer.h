// Says to the chief what a script wants to train.
#ifndef KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_
#define KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "keelson/v1/chief_service.pb.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Used by one thread at a time.
class JobProposer {
 public:
  // As ChiefService::ProposeJob.
  using Call = std::function<absl::Status(const v1::ProposeJobRequest& request,
                                          v1::ProposeJobResponse* response)>;

  // `initial_values`: a safetensors file, which is read when the chief wants it; empty: none.
  // `call` reaches the chief. `file_system` outlives this.
  JobProposer(const v1::TrainConfig& config, std::string initial_values, Call call,
              FileSystem* file_system);

  // Proposes the job, with its initial values where the chief wants them; returns when it is the
  // job's. FAILED_PRECONDITION: the job is another one. UNAVAILABLE: the chief is away, or hears
  // another script; the next call goes on where this one ended. Errors also of file_system.h.
  absl::Status Propose();

 private:
  const v1::TrainConfig config_;
  const std::string initial_values_;
  const uint64_t id_;
  const Call call_;
  FileSystem* const file_system_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_
