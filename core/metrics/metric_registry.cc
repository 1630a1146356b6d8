#include "core/metrics/metric_registry.h"

#include <utility>

namespace keelson {

MetricRegistry::Registration& MetricRegistry::Registration::operator=(
    Registration&& other) noexcept {
  std::swap(registry_, other.registry_);
  std::swap(id_, other.id_);
  return *this;
}

void MetricRegistry::Registration::Release() {
  if (registry_ != nullptr) registry_->Remove(id_);
  registry_ = nullptr;
}

MetricRegistry::Registration MetricRegistry::Add(Collector collector) {
  MutexLock lock(&mu_);
  collectors_.emplace(next_id_, std::move(collector));
  return Registration(this, next_id_++);
}

void MetricRegistry::Remove(uint64_t id) {
  MutexLock lock(&mu_);
  collectors_.erase(id);
}

MetricPage MetricRegistry::Collect() const {
  MetricPage page;
  MutexLock lock(&mu_);
  for (const auto& [id, collector] : collectors_) collector(&page);
  return page;
}

}  // namespace keelson
