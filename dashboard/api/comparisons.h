// GET /api/v1/runs/{run}/snapshots/compare: what differs between two snapshots.
#ifndef KEELSON_DASHBOARD_API_COMPARISONS_H_
#define KEELSON_DASHBOARD_API_COMPARISONS_H_

#include <atomic>
#include <list>
#include <optional>
#include <string>

#include "core/base/mutex.h"
#include "core/http/message.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe.
class Comparisons {
 public:
  HttpResponse Compare(const HttpRequest& request, const Run& run);

 private:
  struct Comparison {
    std::string key;
    Json variables;
  };

  std::optional<Json> Find(const std::string& key);
  void Keep(const std::string& key, const Json& variables);

  // A comparison may take long, and the threads are few.
  std::atomic<int> under_way_{0};

  Mutex mu_;
  // The newest first.
  std::list<Comparison> compared_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_COMPARISONS_H_
