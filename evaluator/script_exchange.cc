#include "evaluator/script_exchange.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// How often a wait looks whether it is to end.
constexpr absl::Duration kLookForEnd = absl::Milliseconds(200);

bool IsAnswerToPrediction(const ScriptMessage& message) {
  return message.kind == ScriptMessageKind::kPredicted ||
         message.kind == ScriptMessageKind::kNotPredicted;
}

}  // namespace

absl::Status ScriptExchange::TakeTurn(absl::Duration until) {
  MutexLock lock(&mu_);
  while (taken_) {
    if (stop_->raised()) return absl::CancelledError("by a signal");
    if (clock_->Monotonic() > until) {
      return absl::UnavailableError("the script is evaluating a snapshot, try again");
    }
    given_.WaitFor(&mu_, kLookForEnd);
  }
  taken_ = true;
  return absl::OkStatus();
}

void ScriptExchange::GiveTurn() {
  MutexLock lock(&mu_);
  taken_ = false;
  given_.NotifyAll();
}

bool ScriptExchange::IsLate(const ScriptMessage& message) {
  if (!given_up_.has_value() || !IsAnswerToPrediction(message)) return false;
  ScriptMessageReader reader(message);
  if (reader.Number() != *given_up_) return false;
  given_up_ = std::nullopt;
  return true;
}

absl::StatusOr<bool> ScriptExchange::AnswerRows(const ScriptMessage& message) {
  if (rows_ == nullptr) return false;
  absl::StatusOr<bool> answered = rows_->Answer(message);
  broken_.Update(answered.status());
  return answered;
}

absl::StatusOr<ScriptMessage> ScriptExchange::Await(absl::Duration until) {
  while (true) {
    RETURN_IF_ERROR(broken_);
    ASSIGN_OR_RETURN(std::optional<ScriptMessage> message, script_->Receive(kLookForEnd));
    if (message.has_value()) {
      ASSIGN_OR_RETURN(const bool answered, AnswerRows(*message));
      if (!answered && !IsLate(*message)) return *std::move(message);
    }
    if (stop_->raised()) return absl::CancelledError("by a signal");
    if (clock_->Monotonic() > until) {
      return absl::DeadlineExceededError("the script has not answered in time");
    }
  }
}

absl::StatusOr<ScriptMessage> ScriptExchange::Predict(uint64_t number, const ScriptMessage& request,
                                                      absl::Duration until) {
  while (given_up_.has_value()) {
    RETURN_IF_ERROR(broken_);
    ASSIGN_OR_RETURN(const std::optional<ScriptMessage> message,
                     script_->Receive(absl::ZeroDuration()));
    if (!message.has_value()) {
      return absl::UnavailableError("the script is still at a prediction before, try again");
    }
    ASSIGN_OR_RETURN(const bool answered, AnswerRows(*message));
    if (answered || IsLate(*message)) continue;
    return absl::InvalidArgumentError("the script's message: not its turn");
  }
  RETURN_IF_ERROR(script_->Send(request));
  absl::StatusOr<ScriptMessage> answer = Await(until);
  if (!answer.ok()) {
    given_up_ = number;
    return answer;
  }
  ScriptMessageReader reader(*answer);
  if (!IsAnswerToPrediction(*answer) || reader.Number() != number || !reader.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the script's message: expected the answer to a prediction, found kind ",
                     static_cast<uint32_t>(answer->kind), " with ", answer->body.size(), " bytes"));
  }
  answer->body.erase(0, sizeof(uint64_t));
  return answer;
}

}  // namespace keelson
