#include "evaluator/script_role.h"

#include <memory>
#include <utility>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/script/script_message.h"
#include "core/script/script_socket.h"
#include "evaluator/script_scorer.h"

namespace keelson {
namespace {

absl::StatusOr<std::unique_ptr<Scorer>> Greet(const RoleContext& context,
                                              std::optional<int> page_port,
                                              ScriptPredictions* predictions, ScriptSocket* script,
                                              const StopSignal* stop) {
  ScriptScorer::Options options;
  options.config = context.config;
  options.predictions = predictions;
  ASSIGN_OR_RETURN(std::unique_ptr<ScriptScorer> scorer,
                   ScriptScorer::Create(std::move(options), script, Clock::Real(), stop));
  if (page_port.has_value()) {
    RETURN_IF_ERROR(script->Send(ScriptMessageWriter(ScriptMessageKind::kPage)
                                     .Number(static_cast<uint64_t>(*page_port))
                                     .message()));
  }
  context.telemetry->ready = true;
  return scorer;
}

}  // namespace

absl::Status EvaluateWithScript(
    const RoleContext& context, int fd, std::optional<int> page_port,
    ScriptPredictions* predictions, StopSignal* stop,
    absl::FunctionRef<absl::Status(ScorerFactory make_scorer, StopSignal* stop)> evaluate) {
  StopSignal gone(stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<ScriptSocket> script, ScriptSocket::Create(fd, &gone));
  const absl::Status status =
      evaluate([&] { return Greet(context, page_port, predictions, script.get(), &gone); }, &gone);
  if (absl::IsCancelled(status) && gone.raised() && !stop->raised()) {
    LogInfo("the script has ended");
    return absl::OkStatus();
  }
  const ScriptMessage last = status.ok() ? ScriptMessageWriter(ScriptMessageKind::kBye).message()
                                         : ScriptMessageWriter(ScriptMessageKind::kFailed)
                                               .Number(static_cast<uint64_t>(status.code()))
                                               .Text(status.message())
                                               .message();
  script->Send(last).IgnoreError();  // It may be gone.
  return status;
}

}  // namespace keelson
