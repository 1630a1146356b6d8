#include "bench/scenario.h"

#include <algorithm>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

std::set<std::string> NamesOf(const std::vector<Scenario>& scenarios) {
  std::set<std::string> names;
  for (const Scenario& scenario : scenarios) names.insert(scenario.name);
  return names;
}

TEST(ScenarioTest, FullCoversSizesModelsHandlersAndWires) {
  const std::vector<Scenario> scenarios = FullScenarios();
  EXPECT_EQ(NamesOf(scenarios),
            (std::set<std::string>{"message-1KB", "message-64KB", "message-1MB", "message-4MB",
                                   "model-180KB", "model-2.7MB", "model-100MB", "model-1GB",
                                   "key-value", "workers-100", "scaling"}));
  std::set<std::string> handlers, wires, directions;
  for (const Scenario& scenario : Select(scenarios, "message-4MB")) {
    handlers.insert(Name(scenario.handler));
    wires.insert(Name(scenario.wire));
    directions.insert(Name(scenario.direction));
    EXPECT_EQ(scenario.message_bytes, 4194304);
  }
  EXPECT_EQ(handlers, (std::set<std::string>{"discard", "sum", "sgd", "adam"}));
  EXPECT_EQ(wires, (std::set<std::string>{"f32", "bf16", "int8"}));
  EXPECT_EQ(directions, (std::set<std::string>{"push", "pull"}));
}

TEST(ScenarioTest, ScalingCoversServersAndWorkers) {
  std::set<std::pair<int, int>> sizes;
  for (const Scenario& scenario : ScalingScenarios()) {
    sizes.insert({scenario.servers, scenario.workers});
  }
  EXPECT_EQ(sizes.size(), 12);
  EXPECT_EQ(sizes.count({4, 8}), 1);
}

TEST(ScenarioTest, QuickIsASelection) {
  const std::vector<Scenario> full = FullScenarios();
  for (const Scenario& quick : QuickScenarios()) {
    EXPECT_NE(std::find(full.begin(), full.end(), quick), full.end()) << quick.name;
  }
}

TEST(ScenarioTest, SelectsByNameAndPattern) {
  EXPECT_EQ(NamesOf(Select(FullScenarios(), "key-value,model-1*")),
            (std::set<std::string>{"key-value", "model-180KB", "model-100MB", "model-1GB"}));
  EXPECT_TRUE(Select(FullScenarios(), "nothing").empty());
  EXPECT_EQ(Select(FullScenarios(), ""), FullScenarios());
}

TEST(ScenarioTest, ComparesWhatHasTheSameNameAndCluster) {
  const auto comparisons = Comparisons(ScalingScenarios());
  ASSERT_EQ(comparisons.size(), 12);
  for (const auto& comparison : comparisons) {
    ASSERT_EQ(comparison.size(), 2);
    EXPECT_EQ(comparison[0].workers, comparison[1].workers);
  }
}

TEST(ScenarioTest, SurvivesJson) {
  for (const Scenario& scenario : FullScenarios()) {
    EXPECT_EQ(ScenarioFromJson(nlohmann::json::parse(ToJson(scenario).dump())), scenario);
  }
}

}  // namespace
}  // namespace keelson::bench
