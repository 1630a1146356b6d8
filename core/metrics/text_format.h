// Prometheus' text format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
#ifndef KEELSON_CORE_METRICS_TEXT_FORMAT_H_
#define KEELSON_CORE_METRICS_TEXT_FORMAT_H_

#include <string>

#include "core/metrics/metric_page.h"

namespace keelson {

inline constexpr char kTextFormatContentType[] = "text/plain; version=0.0.4; charset=utf-8";

// The page, families by name. A family without samples is left out.
std::string FormatAsText(const MetricPage& page);

}  // namespace keelson

#endif  // KEELSON_CORE_METRICS_TEXT_FORMAT_H_
