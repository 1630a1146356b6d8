#include "core/metrics/metric_registry.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/stop_signal.h"
#include "core/metrics/text_format.h"

namespace keelson {
namespace {

MetricRegistry::Collector Constant(const char* name, double value) {
  return [name, value](MetricPage* page) { page->Gauge(name, "Constant.").Add(value); };
}

TEST(MetricRegistry, CollectsPresentValues) {
  MetricRegistry registry;
  double value = 1;
  const auto registration =
      registry.Add([&](MetricPage* page) { page->Gauge("g", "Changes.").Add(value); });
  EXPECT_THAT(FormatAsText(registry.Collect()), ::testing::HasSubstr("g 1\n"));
  value = 2;
  EXPECT_THAT(FormatAsText(registry.Collect()), ::testing::HasSubstr("g 2\n"));
}

TEST(MetricRegistry, CollectorsShareAFamily) {
  MetricRegistry registry;
  const auto first = registry.Add([](MetricPage* page) {
    page->Gauge("g", "First.").Add(1, {{"of", "first"}});
  });
  const auto second = registry.Add([](MetricPage* page) {
    page->Gauge("g", "Second.").Add(2, {{"of", "second"}});
  });
  EXPECT_EQ(FormatAsText(registry.Collect()),
            "# HELP g First.\n# TYPE g gauge\ng{of=\"first\"} 1\ng{of=\"second\"} 2\n");
}

TEST(MetricRegistry, ACollectorGoesWithItsRegistration) {
  MetricRegistry registry;
  std::optional<MetricRegistry::Registration> first = registry.Add(Constant("first", 1));
  MetricRegistry::Registration second = registry.Add(Constant("second", 2));
  EXPECT_EQ(registry.Collect().families().size(), 2);
  first.reset();
  EXPECT_EQ(registry.Collect().families().count("first"), 0);
  MetricRegistry::Registration moved = std::move(second);
  EXPECT_EQ(registry.Collect().families().count("second"), 1);
  moved = MetricRegistry::Registration();
  EXPECT_TRUE(registry.Collect().families().empty());
}

TEST(MetricRegistry, TheEndOfARegistrationWaitsForItsCollector) {
  MetricRegistry registry;
  StopSignal entered, leave;
  std::atomic<bool> left = false;
  std::optional<MetricRegistry::Registration> registration = registry.Add([&](MetricPage*) {
    entered.Raise();
    leave.Wait();
    left = true;
  });
  std::thread scraper([&] { registry.Collect(); });
  entered.Wait();
  leave.Raise();
  registration.reset();
  EXPECT_TRUE(left);
  scraper.join();
}

TEST(MetricRegistry, ManyThreadsComeAndGo) {
  MetricRegistry registry;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&registry] {
      for (int i = 0; i < 200; ++i) {
        const auto registration = registry.Add(Constant("g", i));
        EXPECT_FALSE(registry.Collect().families().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(registry.Collect().families().empty());
}

}  // namespace
}  // namespace keelson
