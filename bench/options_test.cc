#include "bench/options.h"

#include "core/base/exit_code.h"
#include "gtest/gtest.h"

namespace keelson::bench {
namespace {

auto Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ps_bench");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

MeasureCommand Measure(std::vector<const char*> arguments) {
  const auto command = Parse(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<MeasureCommand>(command));
  return std::get<MeasureCommand>(command);
}

TEST(OptionsTest, FullIsTheDefault) {
  const MeasureCommand command = Measure({});
  EXPECT_EQ(command.scenarios, FullScenarios());
  EXPECT_EQ(command.comparison.transport, Transport::kTcp);
  EXPECT_EQ(command.format, MeasureCommand::Format::kText);
  EXPECT_GT(command.idle_seconds, 0);
}

TEST(OptionsTest, QuickSelectsScenariosAndIsShort) {
  const MeasureCommand command = Measure({"--quick", "--json", "--transport=unix"});
  EXPECT_EQ(command.scenarios, QuickScenarios());
  EXPECT_EQ(command.format, MeasureCommand::Format::kJson);
  EXPECT_EQ(command.comparison.transport, Transport::kUnix);
  EXPECT_EQ(Measure({"--transport=memory"}).comparison.transport, Transport::kMemory);
  EXPECT_LT(command.comparison.timing.seconds, Measure({}).comparison.timing.seconds);
}

TEST(OptionsTest, QuickRunsAnyNamedScenario) {
  const MeasureCommand command = Measure({"--quick", "--scenarios=workers-100", "--repeat=7"});
  ASSERT_EQ(command.scenarios.size(), 1);
  EXPECT_EQ(command.scenarios[0].name, "workers-100");
  EXPECT_EQ(command.comparison.repeat, 7);
  EXPECT_EQ(command.idle_seconds, 0);
}

TEST(OptionsTest, ScalingIsTheSweep) {
  EXPECT_EQ(Measure({"--scaling", "--csv=out.csv"}).scenarios, ScalingScenarios());
}

TEST(OptionsTest, AttachedServersDecideHowManyAndWhat) {
  const MeasureCommand command = Measure({"--addresses=a:1,b:2"});
  EXPECT_EQ(command.comparison.addresses, (std::vector<std::string>{"a:1", "b:2"}));
  ASSERT_FALSE(command.scenarios.empty());
  for (const Scenario& scenario : command.scenarios) {
    EXPECT_EQ(scenario.servers, 2);
    EXPECT_NE(scenario.handler, Handler::kDiscard);
  }
  for (const Scenario& scenario : Measure({"--addresses=a:1", "--handlers=discard"}).scenarios) {
    EXPECT_EQ(scenario.handler, Handler::kDiscard);
  }
}

TEST(OptionsTest, Serve) {
  const auto command = Parse({"serve", "--listen=127.0.0.1:0", "--handler=discard"});
  ASSERT_TRUE(std::holds_alternative<ServeCommand>(command));
  EXPECT_EQ(std::get<ServeCommand>(command).options.handler, "discard");
}

TEST(OptionsTest, Snapshot) {
  const auto command = Parse({"--markdown", "snapshot", "--directory=d", "--models=1GB,100MB",
                              "--handler=sgd", "--seconds=2"});
  ASSERT_TRUE(std::holds_alternative<SnapshotCommand>(command));
  const auto& snapshot = std::get<SnapshotCommand>(command);
  EXPECT_EQ(snapshot.options.directory, "d");
  EXPECT_EQ(snapshot.options.models, (std::vector<std::string>{"1GB", "100MB"}));
  EXPECT_EQ(snapshot.options.handler, Handler::kSgd);
  EXPECT_EQ(snapshot.options.seconds, 2);
  EXPECT_EQ(snapshot.format, MeasureCommand::Format::kMarkdown);
  EXPECT_TRUE(std::holds_alternative<ExitCommand>(Parse({"snapshot"})));
}

TEST(OptionsTest, Rows) {
  const auto full = Parse({"rows"});
  ASSERT_TRUE(std::holds_alternative<RowsCommand>(full));
  EXPECT_EQ(std::get<RowsCommand>(full).options.rows, 10'000'000u);
  EXPECT_TRUE(std::get<RowsCommand>(full).options.redis);
  const auto quick = Parse({"--quick", "--json", "--scenarios=rows-pull", "--seconds=2", "rows",
                            "--directory=d", "--without_redis"});
  ASSERT_TRUE(std::holds_alternative<RowsCommand>(quick));
  const RowBenchOptions& options = std::get<RowsCommand>(quick).options;
  EXPECT_EQ(options.rows, 1'000'000u);
  EXPECT_EQ(options.scenarios, "rows-pull");
  EXPECT_EQ(options.timing.seconds, 2);
  EXPECT_EQ(options.directory, "d");
  EXPECT_FALSE(options.redis);
  EXPECT_TRUE(options.quick);
  EXPECT_EQ(options.dim, 16);
  const auto narrow = Parse({"rows", "--dim=8"});
  EXPECT_EQ(std::get<RowsCommand>(narrow).options.dim, 8);
  const auto small = Parse({"--quick", "rows", "--rows=5000"});
  EXPECT_EQ(std::get<RowsCommand>(small).options.rows, 5000u);
}

TEST(OptionsTest, UsageErrorsExitWithTwo) {
  for (const char* argument : {"--transport=udp", "--scenarios=nothing", "--unknown"}) {
    const auto command = Parse({argument});
    ASSERT_TRUE(std::holds_alternative<ExitCommand>(command)) << argument;
    EXPECT_EQ(std::get<ExitCommand>(command).exit_code, kExitPermanent);
  }
}

}  // namespace
}  // namespace keelson::bench
