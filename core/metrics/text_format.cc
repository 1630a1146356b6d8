#include "core/metrics/text_format.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace keelson {
namespace {

// Whole numbers up to here are written with all their digits.
constexpr double kLargestWhole = 1e15;

absl::string_view TypeName(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// The shortest text that reads back as the same number.
std::string FormatNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::trunc(value) && std::abs(value) < kLargestWhole) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

void AppendSample(absl::string_view name, const MetricLabels& labels, double value,
                  std::string* text) {
  absl::StrAppend(text, name);
  absl::string_view separator = "{";
  for (const auto& [label, content] : labels) {
    const std::string escaped =
        absl::StrReplaceAll(content, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
    absl::StrAppend(text, separator, label, "=\"", escaped, "\"");
    separator = ",";
  }
  absl::StrAppend(text, labels.empty() ? " " : "} ", FormatNumber(value), "\n");
}

void AppendHistogram(const std::string& name, const MetricFamily::HistogramSample& sample,
                     std::string* text) {
  const HistogramCounts& histogram = sample.counts;
  int64_t cumulative = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    cumulative += histogram.counts[i];
    const double bound = i < histogram.bounds.size() ? histogram.bounds[i] : INFINITY;
    MetricLabels labels = sample.labels;
    labels.emplace_back("le", FormatNumber(bound));
    AppendSample(name + "_bucket", labels, static_cast<double>(cumulative), text);
  }
  AppendSample(name + "_sum", sample.labels, histogram.sum, text);
  AppendSample(name + "_count", sample.labels, static_cast<double>(cumulative), text);
}

}  // namespace

std::string FormatAsText(const MetricPage& page) {
  std::string text;
  for (const auto& [name, family] : page.families()) {
    if (family.samples().empty() && family.histograms().empty()) continue;
    const std::string help = absl::StrReplaceAll(family.help(), {{"\\", "\\\\"}, {"\n", "\\n"}});
    absl::StrAppend(&text, "# HELP ", name, " ", help, "\n");
    absl::StrAppend(&text, "# TYPE ", name, " ", TypeName(family.type()), "\n");
    for (const auto& sample : family.samples()) {
      AppendSample(name, sample.labels, sample.value, &text);
    }
    for (const auto& sample : family.histograms()) AppendHistogram(name, sample, &text);
  }
  return text;
}

}  // namespace keelson
