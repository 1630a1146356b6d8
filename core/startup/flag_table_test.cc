#include "core/startup/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <streambuf>

#include "CLI/CLI.hpp"
#include "core/startup/role_program.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

struct Flags {
  std::optional<int> limit;
  int threads = 4;
  bool trains = false;
};

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--limit", flags->limit, "The \"upper\" limit")->group("Cluster");
  app->add_option("-t,--threads", flags->threads, "Threads")->capture_default_str();
  app->add_flag("--trains", flags->trains, "Trains too");
}

TEST(FlagTableTest, SaysWhatEachFlagIs) {
  CLI::App app;
  Flags flags;
  AddFlags(&app, &flags);
  const Json expected = {{{"name", "limit"},
                          {"kind", "option"},
                          {"type", "INT"},
                          {"default", ""},
                          {"group", "Cluster"},
                          {"help", "The \"upper\" limit"}},
                         {{"name", "threads"},
                          {"kind", "option"},
                          {"type", "INT"},
                          {"default", "4"},
                          {"group", "Options"},
                          {"help", "Threads"}},
                         {{"name", "trains"},
                          {"kind", "flag"},
                          {"type", ""},
                          {"default", ""},
                          {"group", "Options"},
                          {"help", "Trains too"}}};
  EXPECT_EQ(Json::parse(FlagTable(app))["flags"], expected);
}

// What a program prints on standard output; it ends with this code.
std::string Printed(const char* argument, int exit_code = 0) {
  Flags flags;
  RoleProgram program;
  program.description = "A program";
  program.add_flags = [&](CLI::App* app) { AddFlags(app, &flags); };
  program.run = [](const RoleContext&, StopSignal*) { return absl::InternalError("it was run"); };
  std::string name = "program";
  std::string text = argument;
  char* argv[] = {name.data(), text.data()};
  std::ostringstream printed;
  std::streambuf* const standard_output = std::cout.rdbuf(printed.rdbuf());
  EXPECT_EQ(RunRoleProgram(program, 2, argv), exit_code);
  std::cout.rdbuf(standard_output);
  return printed.str();
}

TEST(FlagTableTest, ProgramPrintsItsOwnAndTheCommonFlags) {
  const Json table = Json::parse(Printed("--help=json"), nullptr, false);
  ASSERT_TRUE(table.contains("flags"));
  std::set<std::string> names;
  for (const Json& row : table["flags"]) names.insert(row["name"]);
  for (const char* name : {"config", "metrics_port", "ps_hosts", "threads", "trains"}) {
    EXPECT_EQ(names.count(name), 1) << name;
  }
  EXPECT_EQ(names.count("help"), 0);
}

TEST(FlagTableTest, OtherHelpIsForPeople) {
  const std::string help = Printed("--help");
  EXPECT_EQ(help.rfind("A program\n", 0), 0) << help;
  EXPECT_EQ(Printed("-h"), help);
  EXPECT_EQ(Printed("--help=text"), help);
}

TEST(FlagTableTest, HelpInAnUnknownFormIsRefused) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Printed("--help=yaml", 2), "");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("--help: expected text or json, found \"yaml\"; see --help"));
}

}  // namespace
}  // namespace keelson
