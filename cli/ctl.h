// keelson_ctl: prints a running job's status, changes its mode, has it saved, and ends its
// training.
#ifndef KEELSON_CLI_CTL_H_
#define KEELSON_CLI_CTL_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/client/services/chief_service.h"
#include "core/cluster/cluster_flags.h"

namespace keelson {

// The chief's address: --chief, or the one in the environment: in TF_CONFIG, else what
// ParseRankEnvironment reads; worker 0 of a cluster without a chief. INVALID_ARGUMENT: none names
// it, or what counts is malformed. UNAVAILABLE: those of the two.
absl::StatusOr<std::string> FindChief(const std::string& chief_flag,
                                      const ClusterEnvironment& environment);

// The commands. Calls of `chief` do not wait; errors are those of its calls.

absl::Status PrintStatus(ChiefService* chief, bool json, std::ostream* out);

absl::Status PrintMode(ChiefService* chief, std::ostream* out);

// `mode`: "async", "ssp:4", "sync:R", "sync:R/T" (core/cluster/consistency.h), or "sync": as many
// replicas as there are workers alive. INVALID_ARGUMENT: none of these. FAILED_PRECONDITION: "sync"
// and no worker is alive; or the job does not train.
absl::Status ChangeMode(ChiefService* chief, absl::string_view mode, std::ostream* out);

// Ends the training before its last step. Prints the reason that counts: the first one that the
// chief was given. FAILED_PRECONDITION: the job does not train. PERMISSION_DENIED: the call needs
// the job's token.
absl::Status EndTraining(ChiefService* chief, const std::string& reason, std::ostream* out);

// Has the chief write a snapshot, and prints its step. FAILED_PRECONDITION: the job does not train.
// PERMISSION_DENIED: the call needs the job's token.
absl::Status SaveSnapshot(ChiefService* chief, std::ostream* out);

}  // namespace keelson

#endif  // KEELSON_CLI_CTL_H_
