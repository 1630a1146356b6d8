#include "core/base/available_cores.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class CoresOfControlGroupTest : public testing::Test {
 protected:
  // `path`: below the group's directory.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(directory_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  std::optional<int> Cores() const { return CoresOfControlGroup(directory_); }

 private:
  const std::string directory_ = FreshDirectory();
};

TEST_F(CoresOfControlGroupTest, RoundsUp) {
  for (const auto& [text, cores] :
       {std::pair{"200000 100000", 2}, {"150000 100000", 2}, {"5000 100000", 1}}) {
    Write("cpu.max", text);
    EXPECT_EQ(Cores(), cores) << text;
  }
}

TEST_F(CoresOfControlGroupTest, NothingWithoutALimit) {
  EXPECT_EQ(Cores(), std::nullopt);
  for (const char* text : {"max 100000", "", "200000", "200000 0", "-1 100000"}) {
    Write("cpu.max", text);
    EXPECT_EQ(Cores(), std::nullopt) << text;
  }
}

TEST_F(CoresOfControlGroupTest, Version1) {
  for (const std::string controller : {"cpu,cpuacct", "cpu"}) {
    Write(controller + "/cpu.cfs_period_us", "100000");
    Write(controller + "/cpu.cfs_quota_us", "250000");
    EXPECT_EQ(Cores(), 3) << controller;
    Write(controller + "/cpu.cfs_quota_us", "-1");
    EXPECT_EQ(Cores(), std::nullopt) << controller;
  }
}

TEST(AvailableCoresTest, IsAtLeastOneAndNotMoreThanTheMachineHas) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace keelson
