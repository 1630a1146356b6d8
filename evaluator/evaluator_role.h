// The evaluator's role as a main runs it: flags, device, data, and the evaluator itself.
#ifndef KEELSON_EVALUATOR_EVALUATOR_ROLE_H_
#define KEELSON_EVALUATOR_EVALUATOR_ROLE_H_

#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "core/base/stop_signal.h"
#include "core/client/chief_service.h"
#include "core/startup/role_program.h"

namespace keelson {

struct EvaluatorFlags {
  std::string device = "auto";
  int compute_threads = 0;            // 0: one per core
  std::optional<int> dashboard_port;  // nothing: not served
};

void AddEvaluatorFlags(CLI::App* app, EvaluatorFlags* flags);

// Opens data and device, then scores the snapshots in the model directory until the job is over.
// `chief` may be null: then only the directory is watched. INVALID_ARGUMENT: no model directory, no
// such port; INVALID_ARGUMENT, NOT_FOUND, DATA_LOSS: the data; otherwise as Evaluator::Run.
absl::Status RunEvaluatorRole(const RoleContext& context, const EvaluatorFlags& flags,
                              ChiefService* chief, StopSignal* stop);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_EVALUATOR_ROLE_H_
