#include "bench/models.h"

#include "bench/load_client.h"
#include "bench/message_plan.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

TEST(ModelsTest, HaveTheSizesOfTheirNames) {
  EXPECT_NEAR(static_cast<double>(ModelBytes("180KB")), 180e3, 5e3);
  EXPECT_NEAR(static_cast<double>(ModelBytes("2.7MB")), 2.7e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(ModelBytes("100MB")), 100e6, 2e6);
  EXPECT_NEAR(static_cast<double>(ModelBytes("1GB")), 1e9, 0.02e9);
}

// Every message of a flat scenario has the same size.
TEST(MessagePlanTest, FlatMessagesAreAsLargeAsTheScenarioSays) {
  for (const int64_t bytes : {1 << 10, 64 << 10, 1 << 20, 4 << 20}) {
    for (const int servers : {1, 2, 4}) {
      Scenario scenario;
      scenario.model = "flat";
      scenario.message_bytes = bytes;
      const ShardPlans shards = PlanMessages(PlanLoad(scenario, std::vector<std::string>(servers)));
      ASSERT_EQ(shards.size(), static_cast<size_t>(servers));
      for (const auto& messages : shards) {
        EXPECT_GE(messages.size(), 16);
        for (const PlannedMessage& message : messages) {
          ASSERT_EQ(message.push_bytes, static_cast<size_t>(bytes));
        }
      }
    }
  }
}

TEST(MessagePlanTest, SmallModelsAreOneMessage) {
  for (const char* model : {"180KB", "2.7MB"}) {
    Scenario scenario;
    scenario.model = model;
    scenario.workload = Workload::kSteps;
    const ShardPlans shards = PlanMessages(PlanLoad(scenario, {"a"}));
    ASSERT_EQ(shards[0].size(), 1);
    EXPECT_EQ(static_cast<int64_t>(shards[0][0].push_bytes), ModelBytes(model));
  }
}

}  // namespace
}  // namespace keelson::bench
