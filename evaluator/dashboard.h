// The evaluator's page: what it has scored so far, for a browser.
#ifndef KEELSON_EVALUATOR_DASHBOARD_H_
#define KEELSON_EVALUATOR_DASHBOARD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/startup/http_endpoint.h"
#include "evaluator/dashboard_page.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// GET /                      the page (dashboard_page.h)
// GET /api/v1/evaluations    the same as JSON
// GET /healthz               200 while the process lives
// Nothing can be changed through it.
class Dashboard {
 public:
  // Serves on this port (0: any free one) and logs it. INVALID_ARGUMENT: the port is in use, or not
  // allowed.
  static absl::StatusOr<std::unique_ptr<Dashboard>> Start(int port, const std::string& model_dir);

  // Thread-safe. Of two records of one step the later counts.
  void Add(const EvaluationRecord& record);

  // The port that it listens on.
  int port() const { return endpoint_->port(); }

 private:
  explicit Dashboard(std::string model_dir) : model_dir_(std::move(model_dir)) {}

  HttpAnswer Answer(absl::string_view path) const;

  const std::string model_dir_;
  mutable Mutex mu_;
  Evaluations evaluations_ ABSL_GUARDED_BY(mu_);
  // Last, so that its thread ends first.
  std::unique_ptr<HttpEndpoint> endpoint_;
};

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_DASHBOARD_H_
