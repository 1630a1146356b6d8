// Metrics at one instant, as they are exported: families of samples, in Prometheus' terms.
#ifndef KEELSON_CORE_METRICS_METRIC_PAGE_H_
#define KEELSON_CORE_METRICS_METRIC_PAGE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// A counter only rises while the process lives; a gauge goes up and down.
enum class MetricType { kCounter, kGauge, kHistogram };

// Names ("role") with values ("worker"). Values are UTF-8, any characters.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// A histogram: the number of observations per bucket, and their sum.
struct HistogramCounts {
  // Ascending: bucket i counts values above bounds[i - 1] and at most bounds[i].
  std::vector<double> bounds;
  // One more than bounds; the last counts values above all of them. Not cumulative.
  std::vector<int64_t> counts;
  // The sum of all observations.
  double sum = 0;
};

// One metric: a name, its meaning, and a value for each set of labels.
class MetricFamily {
 public:
  struct Sample {
    MetricLabels labels;
    double value = 0;
  };
  struct HistogramSample {
    MetricLabels labels;
    HistogramCounts counts;
  };

  MetricFamily(MetricType type, absl::string_view help) : type_(type), help_(help) {}

  // Adds a sample of a counter or a gauge. No two samples of a family have the same labels.
  MetricFamily& Add(double value, MetricLabels labels = {});
  // Adds a sample of a histogram.
  MetricFamily& Add(HistogramCounts counts, MetricLabels labels = {});

  MetricType type() const { return type_; }
  const std::string& help() const { return help_; }
  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<HistogramSample>& histograms() const { return histograms_; }

 private:
  MetricType type_;
  std::string help_;
  std::vector<Sample> samples_;
  std::vector<HistogramSample> histograms_;
};

// Not thread-safe.
class MetricPage {
 public:
  // The family `name`, to which samples are added; valid as long as the page. Several collectors
  // may add to one family: its type and help are those of the first call. Names are of the
  // characters [a-zA-Z0-9_:] and begin with no digit, a counter's ends with "_total"; units are
  // those of Prometheus: seconds, bytes (https://prometheus.io/docs/practices/naming/).
  MetricFamily& Counter(absl::string_view name, absl::string_view help);
  MetricFamily& Gauge(absl::string_view name, absl::string_view help);
  MetricFamily& Histogram(absl::string_view name, absl::string_view help);

  const std::map<std::string, MetricFamily, std::less<>>& families() const { return families_; }

 private:
  MetricFamily& Family(absl::string_view name, MetricType type, absl::string_view help);

  std::map<std::string, MetricFamily, std::less<>> families_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_METRICS_METRIC_PAGE_H_
