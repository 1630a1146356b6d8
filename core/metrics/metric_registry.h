// The registry of a process's metrics: its parts register collectors, exporters collect.
#ifndef KEELSON_CORE_METRICS_METRIC_REGISTRY_H_
#define KEELSON_CORE_METRICS_METRIC_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/attributes.h"
#include "core/base/mutex.h"
#include "core/metrics/metric_page.h"

namespace keelson {

// Thread-safe.
class MetricRegistry {
 public:
  // Adds the present values. Called on any thread, but one at a time, every few seconds; must not
  // block for long or use the registry.
  using Collector = std::function<void(MetricPage*)>;

  // Keeps a collector registered during its lifetime, which ends before the registry's. The
  // destructor waits for a collection under way, so the collector's objects may be destroyed after
  // it.
  class ABSL_MUST_USE_RESULT Registration {
   public:
    Registration() = default;
    Registration(MetricRegistry* registry, uint64_t id) : registry_(registry), id_(id) {}
    Registration(Registration&& other) noexcept { *this = std::move(other); }
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { Release(); }

   private:
    void Release();

    MetricRegistry* registry_ = nullptr;
    uint64_t id_ = 0;
  };

  MetricRegistry() = default;
  MetricRegistry(const MetricRegistry&) = delete;
  MetricRegistry& operator=(const MetricRegistry&) = delete;

  Registration Add(Collector collector);

  // The present values of all collectors.
  MetricPage Collect() const;

 private:
  void Remove(uint64_t id);

  // Held while collectors run.
  mutable Mutex mu_;
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<uint64_t, Collector> collectors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CORE_METRICS_METRIC_REGISTRY_H_
