#include "tests/soak/process_watch.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

constexpr absl::Duration kWarmUp = absl::Seconds(10);

}  // namespace

ProcessWatch::Holdings ProcessWatch::HoldingsOf(pid_t pid) {
  Holdings holdings;
  std::ifstream statm(absl::StrCat("/proc/", pid, "/statm"));
  int64_t size = 0;
  int64_t resident = 0;
  if (statm >> size >> resident) holdings.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  std::error_code error;
  for (auto i = std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), error);
       !error && i != std::filesystem::directory_iterator(); i.increment(error)) {
    ++holdings.files;
  }
  return holdings;
}

void ProcessWatch::Look(const Task& task, pid_t pid) {
  Watched& watched = watched_[task];
  if (watched.pid != pid) watched = {pid, absl::Now(), {}, {}};
  watched.last = HoldingsOf(pid);
  if (!watched.first.has_value() && absl::Now() > watched.started + kWarmUp) {
    watched.first = watched.last;
  }
}

std::optional<absl::Duration> ProcessWatch::Age(const Task& task) const {
  const auto watched = watched_.find(task);
  if (watched == watched_.end()) return std::nullopt;
  return absl::Now() - watched->second.started;
}

void ProcessWatch::ExpectNoGrowth() const {
  for (const auto& [task, watched] : watched_) {
    if (!watched.first.has_value()) continue;
    const Holdings& first = *watched.first;
    EXPECT_LE(watched.last.resident_bytes, 2 * first.resident_bytes + (64 << 20))
        << task.ToString();
    EXPECT_LE(watched.last.files, first.files + 64) << task.ToString();
  }
}

}  // namespace keelson
