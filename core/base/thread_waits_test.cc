#include "core/base/thread_waits.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace keelson {
namespace {

// What the test below exits with when it was started again.
constexpr int kStartedAgain = 42;
constexpr int kNotStartedAgain = 43;

// Calls BoundSpinning in a child with this setting, for a program that runs the test below.
int ExitCodeOfChild(const char* name, const char* value) {
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GTEST_OUTPUT");
    setenv(name, value, 1);
    std::string program = "base_test",
                filter = "--gtest_filter=ThreadWaitsTest.DISABLED_IsStartedAgain";
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* argv[] = {program.data(), filter.data(), disabled.data(), nullptr};
    BoundSpinning(argv);
    _exit(kNotStartedAgain);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(ThreadWaitsTest, DISABLED_IsStartedAgain) {
  const char* const spins = getenv("GOMP_SPINCOUNT");
  _exit(spins != nullptr && std::string(spins) == "1000" ? kStartedAgain : 1);
}

TEST(ThreadWaitsTest, TheProgramIsStartedAgainWithABound) {
  EXPECT_EQ(ExitCodeOfChild("UNRELATED", "1"), kStartedAgain);
}

TEST(ThreadWaitsTest, WhatTheUserHasChosenStays) {
  EXPECT_EQ(ExitCodeOfChild("GOMP_SPINCOUNT", "5"), kNotStartedAgain);
  EXPECT_EQ(ExitCodeOfChild("OMP_WAIT_POLICY", "active"), kNotStartedAgain);
}

}  // namespace
}  // namespace keelson
