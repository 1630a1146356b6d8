// Where the parts of a process leave what they can tell, for whoever exports it.
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
  // Adds the present values. Called by one thread at a time, of any thread, about once in some
  // seconds; does not block for long, and does not use the registry.
  using Collector = std::function<void(MetricPage*)>;

  // Keeps a collector registered as long as it lives; goes before the registry. Its end waits for a
  // collection that is under way, so what the collector uses may go after it.
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

  // What all collectors tell now.
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
