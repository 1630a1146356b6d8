#include "core/metrics/metric_page.h"

namespace keelson {

MetricFamily& MetricFamily::Add(double value, MetricLabels labels) {
  samples_.push_back({std::move(labels), value});
  return *this;
}

MetricFamily& MetricFamily::Add(HistogramCounts counts, MetricLabels labels) {
  histograms_.push_back({std::move(labels), std::move(counts)});
  return *this;
}

MetricFamily& MetricPage::Counter(absl::string_view name, absl::string_view help) {
  return Family(name, MetricType::kCounter, help);
}

MetricFamily& MetricPage::Gauge(absl::string_view name, absl::string_view help) {
  return Family(name, MetricType::kGauge, help);
}

MetricFamily& MetricPage::Histogram(absl::string_view name, absl::string_view help) {
  return Family(name, MetricType::kHistogram, help);
}

MetricFamily& MetricPage::Family(absl::string_view name, MetricType type, absl::string_view help) {
  return families_.try_emplace(std::string(name), type, help).first->second;
}

}  // namespace keelson
