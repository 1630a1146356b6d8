#include "core/startup/task_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/config/train_config.h"
#include "core/metrics/process_metrics.h"

namespace keelson {

MetricRegistry::Registration AddTaskMetrics(const RoleContext& context) {
  MetricLabels labels = {{"role", std::string(RoleName(context.self.role))},
                         {"index", absl::StrCat(context.self.index)},
                         {"peer", context.peer},
                         {"config", HashToString(context.config_hash)}};
  return context.telemetry->metrics.Add([labels = std::move(labels)](MetricPage* page) {
    page->Gauge("keelson_task_info", "Always 1; the labels say who the task is.").Add(1, labels);
    CollectProcessMetrics(page);
  });
}

}  // namespace keelson
