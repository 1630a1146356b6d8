// Reads Prometheus' text format strictly, for tests of what is exported.
#ifndef KEELSON_CORE_METRICS_EXPOSITION_TESTING_H_
#define KEELSON_CORE_METRICS_EXPOSITION_TESTING_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace keelson {

// The content of a page: families with their types, samples as "name{label="value",…}".
struct Exposition {
  std::map<std::string, std::string> types;
  std::map<std::string, double> samples;
};

// INVALID_ARGUMENT "line 3: …": what the format, or the convention, does not allow: a bad name,
// escape or number; a family without HELP and TYPE, with two of them, or in two places; a sample
// twice; a counter that is negative or not called "_total"; buckets that are not cumulative, not
// ascending, or do not end with +Inf; a histogram without _sum and _count.
absl::StatusOr<Exposition> ParseExposition(absl::string_view text);

}  // namespace keelson

#endif  // KEELSON_CORE_METRICS_EXPOSITION_TESTING_H_
