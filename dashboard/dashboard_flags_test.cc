#include "dashboard/dashboard_flags.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "core/base/fresh_directory_testing.h"
#include "core/checkpoint/bundle_testing.h"
#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DashboardFlagsTest : public testing::Test {
 protected:
  DashboardFlagsTest() {
    app_.add_option("--model_dir", model_dir_, "");
    app_.add_option("--batch_size", batch_size_, "");
    AddDashboardFlags(&app_, &flags_);
  }

  // What is wrong; empty: nothing.
  std::string Parse(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    try {
      app_.parse(std::move(arguments));
    } catch (const CLI::ParseError& error) {
      EXPECT_NE(error.get_exit_code(), 0);
      return error.what();
    }
    return "";
  }

  CLI::App app_;
  std::string model_dir_;
  int batch_size_ = 0;
  DashboardFlags flags_;
};

TEST_F(DashboardFlagsTest, WithoutAnyNothingIsServed) {
  EXPECT_EQ(Parse({"--batch_size=3"}), "");
  EXPECT_FALSE(flags_.port.has_value());
  EXPECT_FALSE(flags_.serve_only);
  EXPECT_EQ(*ReadDashboardToken(flags_), "");
}

TEST_F(DashboardFlagsTest, TakesAJobsDashboard) {
  EXPECT_EQ(Parse({"--batch_size=3", "--dashboard_port=0", "--auth_token_file=t", "--runs=a"}), "");
  EXPECT_EQ(flags_.port, 0);
  EXPECT_THAT(flags_.runs, ElementsAre("a"));
  EXPECT_EQ(flags_.auth_token_file, "t");
}

TEST_F(DashboardFlagsTest, TakesSeveralRuns) {
  EXPECT_EQ(Parse({"--serve_only", "--runs", "a=/x", "/y", "--runs=b=/z", "--model_dir=/m"}), "");
  EXPECT_TRUE(flags_.serve_only);
  EXPECT_FALSE(flags_.port.has_value());
  EXPECT_THAT(flags_.runs, ElementsAre("a=/x", "/y", "b=/z"));
}

TEST_F(DashboardFlagsTest, TakesAnAddress) {
  EXPECT_EQ(Parse({"--dashboard_port=0", "--dashboard_address=127.0.0.1"}), "");
  EXPECT_EQ(flags_.address, "127.0.0.1");
}

TEST_F(DashboardFlagsTest, ServingAloneTakesAnAddress) {
  EXPECT_EQ(Parse({"--serve_only", "--dashboard_address=::1"}), "");
  EXPECT_EQ(flags_.address, "::1");
}

TEST_F(DashboardFlagsTest, TakesHosts) {
  EXPECT_EQ(Parse({"--serve_only", "--dashboard_hosts=a.example,b", "--dashboard_hosts=c"}), "");
  EXPECT_THAT(flags_.hosts, ElementsAre("a.example", "b", "c"));
}

TEST(JobDashboardFlags, AreAPortAndItsAddresses) {
  CLI::App app;
  DashboardFlags flags;
  AddJobDashboardFlags(&app, &flags);
  app.parse("--dashboard_port=0 --dashboard_address=127.0.0.1 --dashboard_hosts=a,b");
  EXPECT_EQ(flags.port, 0);
  EXPECT_EQ(flags.address, "127.0.0.1");
  EXPECT_THAT(flags.hosts, ElementsAre("a", "b"));
  EXPECT_THROW(app.parse("--dashboard_address=127.0.0.1"), CLI::RequiresError);
  EXPECT_THROW(app.parse("--dashboard_hosts=a"), CLI::RequiresError);
}

TEST_F(DashboardFlagsTest, WhatNoDashboardUsesIsAnError) {
  EXPECT_EQ(Parse({"--dashboard_address=::"}),
            "--dashboard_address: expected together with --dashboard_port, found without");
  EXPECT_EQ(Parse({"--dashboard_hosts=a"}),
            "--dashboard_hosts: expected together with --dashboard_port, found without");
  EXPECT_EQ(Parse({"--runs=a"}), "--runs: expected together with --dashboard_port, found without");
  EXPECT_EQ(Parse({"--auth_token_file=t"}),
            "--auth_token_file: expected together with --dashboard_port, found without");
}

TEST_F(DashboardFlagsTest, WhatServingAloneDoesNotUseIsAnError) {
  EXPECT_EQ(Parse({"--serve_only", "--batch_size=3"}),
            "--batch_size: expected without --serve_only, which shows runs and takes part in none");
  EXPECT_THAT(Parse({"--serve_only", "--auth_token_file=t"}), HasSubstr("--auth_token_file: "));
}

TEST_F(DashboardFlagsTest, APortOutOfRangeIsAnError) {
  EXPECT_THAT(Parse({"--dashboard_port=65536"}), HasSubstr("--dashboard_port"));
  EXPECT_THAT(Parse({"--dashboard_port=-1"}), HasSubstr("--dashboard_port"));
}

TEST_F(DashboardFlagsTest, ReadsTheToken) {
  flags_.auth_token_file = FreshDirectory() + "/token";
  EXPECT_TRUE(absl::IsInvalidArgument(ReadDashboardToken(flags_).status()));
  WriteRawFile(flags_.auth_token_file, "0123456789abcdef\n");
  EXPECT_EQ(*ReadDashboardToken(flags_), "0123456789abcdef");
}

}  // namespace
}  // namespace keelson
