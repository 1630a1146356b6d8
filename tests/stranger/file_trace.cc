#include "tests/stranger/file_trace.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace keelson {
namespace {

constexpr char kStrace[] = "/usr/bin/strace -f --seccomp-bpf -y -s 4096 -e trace=%file";

// A line of strace: "1234 openat(3</a/b>, "c", O_WRONLY|O_CREAT, 0644) = 5</a/b/c>"
bool ChangesFiles(absl::string_view line) {
  static const std::regex opens(R"(^\d+ +(open|openat|openat2)\()");
  static const std::regex writes("O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_TMPFILE");
  static const std::regex failed(R"(\) += -1 E)");
  static const std::regex changes(
      R"(^\d+ +(creat|rename\w*|unlink\w*|mkdir\w*|rmdir|link\w*|symlink\w*|mknod\w*|truncate\w*)"
      R"(|f?chmod\w*|[fl]?chown\w*|utime\w*|l?setxattr|l?removexattr|mount|umount\w*|chroot)\()");
  const std::string text(line);
  if (std::regex_search(text, failed)) return false;
  return std::regex_search(text, changes) ||
         (std::regex_search(text, opens) && std::regex_search(text, writes));
}

}  // namespace

bool CanTraceFiles() {
  if (access("/usr/bin/strace", X_OK) != 0) return false;
  return std::system(absl::StrCat(kStrace, " -o /dev/null /bin/true 2> /dev/null").c_str()) == 0;
}

std::string TraceCommand(const std::string& path) {
  // -D: the traced program keeps the shell's process, and strace is the one that is forked.
  return absl::StrCat("exec ", kStrace, " -D -o \"", path, "\" \"$@\"");
}

std::string ReadTrace(const std::string& path, pid_t pid) {
  // Numbers are padded by blanks.
  const std::regex last(absl::StrCat("(^|\n)", pid, R"( +\+\+\+ (exited|killed))"));
  std::string trace;
  const auto complete = [&] {
    trace = ReadFile(path).value_or("");
    return std::regex_search(trace, last);
  };
  EXPECT_TRUE(WaitUntil(complete, absl::Seconds(60))) << path << " does not end";
  return trace;
}

std::vector<std::string> ChangedPaths(absl::string_view trace) {
  static const std::regex argument(R"re((?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)")re");
  std::vector<std::string> paths;
  for (const absl::string_view view : absl::StrSplit(trace, '\n')) {
    if (!ChangesFiles(view)) continue;
    const std::string line(view);
    for (std::sregex_iterator it(line.begin(), line.end(), argument), end; it != end; ++it) {
      const auto path = std::filesystem::path((*it)[1].str()) / (*it)[2].str();
      if (!absl::StartsWith(path.string(), "/dev/")) {
        paths.push_back(path.lexically_normal().string());
      }
    }
  }
  return paths;
}

}  // namespace keelson
