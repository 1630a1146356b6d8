#include "core/metrics/process_metrics.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "core/metrics/exposition_testing.h"
#include "core/metrics/text_format.h"

namespace keelson {
namespace {

std::map<std::string, double> Collect() {
  MetricPage page;
  CollectProcessMetrics(&page);
  const absl::StatusOr<Exposition> read = ParseExposition(FormatAsText(page));
  EXPECT_TRUE(read.ok()) << read.status();
  return read->samples;
}

TEST(ProcessMetrics, DescribeThisProcess) {
  const std::map<std::string, double> samples = Collect();
  EXPECT_EQ(samples.size(), 7);
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  // The kernel's boot time is in whole seconds.
  EXPECT_LE(samples.at("process_start_time_seconds"), now + 2);
  EXPECT_GE(samples.at("process_start_time_seconds"), now - 3600);
  EXPECT_GE(samples.at("process_cpu_seconds_total"), 0);
  EXPECT_GE(samples.at("process_threads"), 1);
  EXPECT_GT(samples.at("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(samples.at("process_virtual_memory_bytes"),
            samples.at("process_resident_memory_bytes"));
  EXPECT_GT(samples.at("process_max_fds"), samples.at("process_open_fds"));
}

TEST(ProcessMetrics, CountOpenFiles) {
  const double before = Collect().at("process_open_fds");
  const int fd = open("/dev/null", O_RDONLY);
  EXPECT_EQ(Collect().at("process_open_fds"), before + 1);
  close(fd);
  EXPECT_EQ(Collect().at("process_open_fds"), before);
}

}  // namespace
}  // namespace keelson
