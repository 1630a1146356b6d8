// Shared code of the API's handlers: parameters and bodies of requests, and answers.
#ifndef KEELSON_DASHBOARD_API_API_REQUEST_H_
#define KEELSON_DASHBOARD_API_API_REQUEST_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/http/message.h"
#include "dashboard/runs/json.h"

namespace keelson {

HttpResponse JsonAnswer(std::string body);
HttpResponse JsonAnswer(const Json& json);

// An answer with the status's message. INVALID_ARGUMENT 400, UNAUTHENTICATED 401, PERMISSION_DENIED
// 403, NOT_FOUND 404, FAILED_PRECONDITION, UNIMPLEMENTED and ABORTED 409, all others 503.
HttpResponse ErrorAnswer(const absl::Status& status);

// 429, for an operation that is under way already.
HttpResponse BusyAnswer(absl::string_view what);

// nullopt: it is not there. INVALID_ARGUMENT: "points: expected 2 to 20000, found 'x'".
absl::StatusOr<std::optional<int64_t>> IntegerParameter(const HttpRequest& request,
                                                        absl::string_view name, int64_t least,
                                                        int64_t most);
// The same for a finite number.
absl::StatusOr<std::optional<double>> NumberParameter(const HttpRequest& request,
                                                      absl::string_view name);

// INVALID_ARGUMENT: the body is not a JSON object, or its content type is not JSON (which a page
// from another origin cannot send).
absl::StatusOr<Json> BodyOf(const HttpRequest& request);

// Limits the number of concurrent users of a resource.
class Turnstile {
 public:
  Turnstile(std::atomic<int>* count, int most) : count_(count), passed_(++*count <= most) {}
  ~Turnstile() { --*count_; }
  Turnstile(const Turnstile&) = delete;
  Turnstile& operator=(const Turnstile&) = delete;

  bool passed() const { return passed_; }

 private:
  std::atomic<int>* const count_;
  const bool passed_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_API_REQUEST_H_
