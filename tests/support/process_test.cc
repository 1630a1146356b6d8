#include "tests/support/process.h"

#include <signal.h>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace keelson {
namespace {

constexpr absl::Duration kProcessLimit = absl::Seconds(60);

std::unique_ptr<Process> Shell(const std::string& script) {
  Process::Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.environment = {{"TF_CONFIG", "{}"}, {"HOME", "changed"}};
  command.log_path = JoinPath(FreshDirectory(), "log");
  auto process = Process::Start(command);
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

TEST(ProcessTest, ExitCodeAndBothOutputs) {
  const auto process = Shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(process->Wait(kProcessLimit), 3);
  EXPECT_EQ(process->Log(), "out\nerr\n");
  EXPECT_LT(process->ended_at(), absl::InfiniteFuture());
}

TEST(ProcessTest, EnvironmentIsChanged) {
  const auto process = Shell("echo $TF_CONFIG $HOME");
  EXPECT_EQ(process->Wait(kProcessLimit), 0);
  EXPECT_EQ(process->Log(), "{} changed\n");
}

TEST(ProcessTest, SignalGives128AndItsNumber) {
  const auto process = Shell("exec sleep 1000");
  EXPECT_EQ(process->Wait(absl::ZeroDuration()), std::nullopt);
  EXPECT_EQ(process->ended_at(), absl::InfiniteFuture());
  process->Signal(SIGKILL);
  EXPECT_EQ(process->Wait(kProcessLimit), 128 + SIGKILL);
}

TEST(ProcessTest, KnowsWhetherItIsStopped) {
  const auto process = Shell("exec sleep 1000");
  EXPECT_FALSE(process->IsStopped());
  process->Signal(SIGSTOP);
  EXPECT_TRUE(WaitUntil([&] { return process->IsStopped(); }, kProcessLimit));
  process->Signal(SIGCONT);
  EXPECT_TRUE(WaitUntil([&] { return !process->IsStopped(); }, kProcessLimit));
  process->Signal(SIGKILL);
  EXPECT_EQ(process->Wait(kProcessLimit), 128 + SIGKILL);
}

TEST(ProcessTest, ProgramThatIsMissing) {
  Process::Command command;
  command.argv = {"/no/such/program"};
  command.log_path = JoinPath(FreshDirectory(), "log");
  const auto process = Process::Start(command);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ((*process)->Wait(kProcessLimit), 127);
}

TEST(ProcessTest, LogThatCannotBeOpened) {
  EXPECT_EQ(Process::Start({{"/bin/true"}, {}, "/no/such/folder/log"}).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace keelson
