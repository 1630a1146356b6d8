#include "core/base/available_cores.h"

#include <thread>

#include "gtest/gtest.h"

namespace keelson {
namespace {

TEST(CoresOfCpuMaxTest, RoundsUp) {
  EXPECT_EQ(CoresOfCpuMax("200000 100000\n"), 2);
  EXPECT_EQ(CoresOfCpuMax("150000 100000"), 2);
  EXPECT_EQ(CoresOfCpuMax("5000 100000"), 1);
}

TEST(CoresOfCpuMaxTest, NothingWithoutALimit) {
  EXPECT_EQ(CoresOfCpuMax("max 100000"), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax(""), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax("200000"), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax("200000 0"), std::nullopt);
  EXPECT_EQ(CoresOfCpuMax("-1 100000"), std::nullopt);
}

TEST(AvailableCoresTest, IsAtLeastOneAndNotMoreThanTheMachineHas) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace keelson
