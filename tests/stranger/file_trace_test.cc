#include "tests/stranger/file_trace.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "gmock/gmock.h"
#include "tests/support/process.h"

namespace keelson {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FileTraceTest, FindsWhatChanges) {
  EXPECT_THAT(ChangedPaths(R"(12 openat(AT_FDCWD</run>, "log", O_WRONLY|O_CREAT, 0644) = 3</run/log>
12 openat(3</run>, "../a b", O_RDWR) = 4</a b>
12 openat2(3</m>, "x", {flags=O_WRONLY|O_CREAT, mode=0644, resolve=RESOLVE_BENEATH}, 24) = 5</m/x>
12 rename("/run/a", "/run/b")       = 0
13 unlinkat(AT_FDCWD</run>, "/etc/c", 0 <unfinished ...>
)"),
              ElementsAre("/run/log", "/a b", "/m/x", "/run/a", "/run/b", "/etc/c"));
}

TEST(FileTraceTest, IgnoresReadsFailuresAndDevices) {
  EXPECT_THAT(
      ChangedPaths(R"(12 openat(AT_FDCWD</run>, "/etc/hosts", O_RDONLY|O_CLOEXEC) = 3</etc/hosts>
12 execve("/bin/O_CREAT", ["x"], 0x1 /* 3 vars */) = 0
12 newfstatat(AT_FDCWD</run>, "/run/a", {}, 0) = 0
12 openat(AT_FDCWD</run>, "/dev/null", O_RDWR) = 3</dev/null>
12 mkdir("/run", 0777)              = -1 EEXIST (File exists)
12 <... openat resumed>)             = 3</run/a>
)"),
      IsEmpty());
}

TEST(FileTraceTest, TracesAProgramAndKeepsItsProcess) {
  if (!CanTraceFiles()) GTEST_SKIP() << "strace is not here, or may not trace";
  const std::string folder = std::filesystem::canonical(FreshDirectory());
  const std::string trace = absl::StrCat(folder, "/trace"), log = absl::StrCat(folder, "/log");
  auto process = Process::Start(
      {.argv = {"/bin/sh", "-c", TraceCommand(trace), "sh", "/bin/sh", "-c",
                absl::StrCat("echo $$; echo x > ", folder, "/made; rm ", folder, "/made")},
       .environment = {},
       .log_path = log});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_EQ((*process)->Wait(absl::Seconds(60)), 0);
  EXPECT_EQ((*process)->Log(), absl::StrCat((*process)->pid(), "\n"));
  EXPECT_THAT(ChangedPaths(ReadTrace(trace, (*process)->pid())),
              Contains(absl::StrCat(folder, "/made")).Times(2));
}

}  // namespace
}  // namespace keelson
