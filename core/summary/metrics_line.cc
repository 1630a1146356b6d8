#include "core/summary/metrics_line.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace keelson {
namespace {

std::string MetricName(absl::string_view name) {
  std::string result(name);
  for (char& c : result) {
    const bool allowed =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '|';
    if (!allowed) c = '_';
  }
  return result;
}

std::string MetricValue(double value) {
  constexpr double kExactIntegers = 1e15;
  if (std::trunc(value) == value && std::abs(value) < kExactIntegers) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrFormat("%.6g", value);
}

}  // namespace

std::string FormatMetricsLine(absl::Time time,
                              absl::Span<const std::pair<std::string, double>> metrics) {
  std::string line = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
  for (const auto& [name, value] : metrics) {
    if (std::isfinite(value))
      absl::StrAppend(&line, " ", MetricName(name), "=", MetricValue(value));
  }
  return line;
}

}  // namespace keelson
