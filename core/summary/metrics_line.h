// Metrics as a line of text for Katib's StdOut collector:
// "2026-11-20T20:15:03.120Z step=1200 loss=0.4312".
// Format: katib, pkg/metricscollector/v1beta1/file-metricscollector.
#ifndef KEELSON_CORE_SUMMARY_METRICS_LINE_H_
#define KEELSON_CORE_SUMMARY_METRICS_LINE_H_

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace keelson {

// The line, without a line break. Values have six significant digits, whole numbers all of theirs.
// A value that is not finite is left out, since the collector fails on it. Katib's names are
// [A-Za-z0-9_|-]+; other characters become "_".
std::string FormatMetricsLine(absl::Time time,
                              absl::Span<const std::pair<std::string, double>> metrics);

}  // namespace keelson

#endif  // KEELSON_CORE_SUMMARY_METRICS_LINE_H_
