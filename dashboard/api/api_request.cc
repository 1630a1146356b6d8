#include "dashboard/api/api_request.h"

#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr char kJsonType[] = "application/json";
constexpr size_t kQuotedBytes = 40;

absl::Status BadParameter(absl::string_view name, absl::string_view expected,
                          absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected ", expected, ", found '", found.substr(0, kQuotedBytes), "'"));
}

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kAborted:
      return 409;
    default:
      return 503;
  }
}

}  // namespace

HttpResponse JsonAnswer(std::string body) {
  HttpResponse response;
  response.content_type = kJsonType;
  response.body = std::move(body);
  return response;
}

HttpResponse JsonAnswer(const Json& json) { return JsonAnswer(DumpJson(json)); }

HttpResponse ErrorAnswer(const absl::Status& status) {
  return JsonError(HttpStatusOf(status.code()), status.message());
}

HttpResponse BusyAnswer(absl::string_view what) {
  HttpResponse response = JsonError(429, absl::StrCat(what, " is under way, try again"));
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

absl::StatusOr<std::optional<int64_t>> IntegerParameter(const HttpRequest& request,
                                                        absl::string_view name, int64_t least,
                                                        int64_t most) {
  const std::optional<std::string> text = request.Parameter(name);
  if (!text.has_value()) return std::nullopt;
  int64_t value = 0;
  if (!absl::SimpleAtoi(*text, &value) || value < least || value > most) {
    return BadParameter(name, absl::StrCat(least, " to ", most), *text);
  }
  return value;
}

absl::StatusOr<std::optional<double>> NumberParameter(const HttpRequest& request,
                                                      absl::string_view name) {
  const std::optional<std::string> text = request.Parameter(name);
  if (!text.has_value()) return std::nullopt;
  double value = 0;
  if (!absl::SimpleAtod(*text, &value) || !std::isfinite(value)) {
    return BadParameter(name, "a number", *text);
  }
  return value;
}

absl::StatusOr<Json> BodyOf(const HttpRequest& request) {
  const std::string type = absl::AsciiStrToLower(request.Header("content-type"));
  const absl::string_view bare =
      absl::StripAsciiWhitespace(absl::string_view(type).substr(0, type.find(';')));
  if (bare != kJsonType) {
    return absl::InvalidArgumentError(absl::StrCat("Content-Type: expected ", kJsonType,
                                                   ", found '", bare.substr(0, kQuotedBytes), "'"));
  }
  std::optional<Json> json = ParseJson(request.body);
  if (!json.has_value() || !json->is_object()) {
    return absl::InvalidArgumentError("body: expected an object of JSON");
  }
  return *std::move(json);
}

}  // namespace keelson
