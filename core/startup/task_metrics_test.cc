#include "core/startup/task_metrics.h"

#include <gmock/gmock.h>

#include "core/startup/scrape_testing.h"

namespace keelson {
namespace {

TEST(TaskMetrics, SayWhoTheTaskIs) {
  RoleContext context;
  context.self = {Role::kWorker, 3};
  context.peer = "host:17";
  context.config_hash = 0xdef;
  const auto registration = AddTaskMetrics(context);
  const absl::StatusOr<Exposition> page = Scrape(*context.telemetry);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->samples.at("keelson_task_info{role=\"worker\",index=\"3\",peer=\"host:17\","
                             "config=\"0000000000000def\"}"),
            1);
  EXPECT_GT(page->samples.at("process_resident_memory_bytes"), 0);
}

}  // namespace
}  // namespace keelson
