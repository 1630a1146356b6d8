#include "dashboard/api/job_changes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/auth_token.h"
#include "core/base/log.h"
#include "dashboard/api/api_request.h"

namespace keelson {
namespace {

// The rate of warnings about the tokens of one client.
constexpr double kWarningsPerSecond = 1.0 / 60;
constexpr size_t kMaxReasonBytes = 200;
constexpr size_t kMaxModeBytes = 40;

// The reason is written to logs and displayed, so it must be a single line.
bool IsLine(absl::string_view text, size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes &&
         std::none_of(text.begin(), text.end(),
                      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

HttpResponse Taken(const absl::Status& status) {
  if (!status.ok()) return ErrorAnswer(status);
  HttpResponse response = JsonAnswer(Json({{"taken", true}}));
  response.status = 202;
  return response;
}

}  // namespace

JobChanges::JobChanges(JobActions* actions, std::string token, const Clock* clock)
    : actions_(actions),
      token_(std::move(token)),
      warnings_(kWarningsPerSecond, /*burst=*/1, clock) {}

std::optional<HttpResponse> JobChanges::Refuse(const HttpRequest& request, const Run& run) {
  if (token_.empty()) {
    return JsonError(403, "read-only: the evaluator was started without --auth_token_file");
  }
  absl::string_view given = request.headers.contains("authorization")
                                ? absl::string_view(request.headers.at("authorization"))
                                : absl::string_view();
  if (!absl::ConsumePrefix(&given, "Bearer ") || !SameToken(given, token_)) {
    if (warnings_.Take(request.client) == absl::ZeroDuration()) {
      LogWarning("dashboard: ", request.client, " asked for a change without the job's token");
    }
    HttpResponse response = JsonError(401, "expected the job's token: Authorization: Bearer TOKEN");
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  if (!run.live() || actions_ == nullptr) {
    return JsonError(409, "this is not the job of the evaluator, or that has no chief");
  }
  return std::nullopt;
}

HttpResponse JobChanges::EndTraining(const HttpRequest& request, const Run& run) {
  if (auto refused = Refuse(request, run)) return *std::move(refused);
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const std::string reason = TextAt(*body, "reason").value_or("");
  if (!IsLine(reason, kMaxReasonBytes)) {
    return JsonError(400,
                     absl::StrCat("reason: expected a line of 1 to ", kMaxReasonBytes, " bytes"));
  }
  LogInfo("from the dashboard (", request.client, "): end the training: ", reason);
  return Taken(actions_->EndTraining(reason));
}

HttpResponse JobChanges::SetMode(const HttpRequest& request, const Run& run) {
  if (auto refused = Refuse(request, run)) return *std::move(refused);
  const absl::StatusOr<Json> body = BodyOf(request);
  if (!body.ok()) return ErrorAnswer(body.status());
  const std::string mode = TextAt(*body, "mode").value_or("");
  if (!IsLine(mode, kMaxModeBytes)) {
    return JsonError(400, "mode: expected async, ssp:N, sync:N or sync:N/M");
  }
  LogInfo("from the dashboard (", request.client, "): set the mode to ", mode);
  return Taken(actions_->SetMode(mode));
}

}  // namespace keelson
