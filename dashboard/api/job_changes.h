// POST /api/v1/runs/{run}/actions/…: changes of the running job, for those who have its token.
#ifndef KEELSON_DASHBOARD_API_JOB_CHANGES_H_
#define KEELSON_DASHBOARD_API_JOB_CHANGES_H_

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/http/message.h"
#include "core/http/rate_limiter.h"
#include "dashboard/api/actions.h"
#include "dashboard/runs/run.h"

namespace keelson {

// Thread-safe.
class JobChanges {
 public:
  // `actions` (null: there is no running job) and `clock` outlive this. An empty `token` allows no
  // changes.
  JobChanges(JobActions* actions, std::string token, const Clock* clock);

  bool read_only() const { return token_.empty() || actions_ == nullptr; }
  HttpResponse EndTraining(const HttpRequest& request, const Run& run);
  HttpResponse SetMode(const HttpRequest& request, const Run& run);

 private:
  // Returns nullopt if this request may change this run, otherwise the refusal.
  std::optional<HttpResponse> Refuse(const HttpRequest& request, const Run& run);

  JobActions* const actions_;
  const std::string token_;
  // Limits warnings about wrong tokens, by client.
  RateLimiter warnings_;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_JOB_CHANGES_H_
