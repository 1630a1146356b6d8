// Says to the chief what a script wants to train.
#ifndef KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_
#define KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/base/file_system.h"
#include "core/client/services/chief_service.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Used by one thread at a time.
class JobProposer {
 public:
  // `initial_values`: a safetensors file, which is read when the chief wants it; empty: none.
  // `chief` and `file_system` outlive this.
  JobProposer(const v1::TrainConfig& config, std::string initial_values, ChiefService* chief,
              FileSystem* file_system);

  // Proposes the job, with its initial values where the chief wants them; returns when it is the
  // job's. FAILED_PRECONDITION: the job is another one. UNAVAILABLE: the chief is away, or hears
  // another script; the next call goes on where this one ended. Errors also of file_system.h.
  absl::Status Propose();

 private:
  const v1::TrainConfig config_;
  const std::string initial_values_;
  const uint64_t id_;
  ChiefService* const chief_;
  FileSystem* const file_system_;
};

}  // namespace keelson

#endif  // KEELSON_WORKER_SCRIPT_JOB_PROPOSER_H_
