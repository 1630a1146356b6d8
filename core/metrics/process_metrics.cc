#include "core/metrics/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/kernel_file.h"

namespace keelson {
namespace {

// Fields of /proc/self/stat that follow the command's name, numbered from 0.
enum StatField {
  kUserTicks = 11,
  kSystemTicks = 12,
  kThreads = 17,
  kStartTicks = 19,
  kVirtualBytes = 20,
  kResidentPages = 21,
};

// Empty: not readable.
std::vector<double> ReadStatFields() {
  const std::string stat = ReadKernelFile("/proc/self/stat");
  // The name is in brackets and may contain brackets itself.
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {};
  std::vector<double> fields;
  for (const absl::string_view text : absl::StrSplit(stat.substr(name_end + 2), ' ')) {
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) value = 0;  // the state, a letter
    fields.push_back(value);
  }
  return fields.size() > kResidentPages ? fields : std::vector<double>();
}

// Seconds since the epoch at which the machine started.
std::optional<double> BootTime() {
  for (const absl::string_view line : absl::StrSplit(ReadKernelFile("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &seconds)) {
      return seconds;
    }
  }
  return std::nullopt;
}

void CollectFileDescriptors(MetricPage* page) {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory != nullptr) {
    int entries = 0;
    while (readdir(directory) != nullptr) ++entries;
    closedir(directory);
    // ".", ".." and the descriptor that reads the directory do not count.
    page->Gauge("process_open_fds", "Open file descriptors.").Add(entries - 3);
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    page->Gauge("process_max_fds", "Largest number of open file descriptors.")
        .Add(static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace

void CollectProcessMetrics(MetricPage* page) {
  CollectFileDescriptors(page);
  const std::vector<double> stat = ReadStatFields();
  if (stat.empty()) return;
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const std::optional<double> boot = BootTime()) {
    page->Gauge("process_start_time_seconds", "Start of the process, since the epoch.")
        .Add(*boot + stat[kStartTicks] / ticks_per_second);
  }
  page->Counter("process_cpu_seconds_total", "User and system time.")
      .Add((stat[kUserTicks] + stat[kSystemTicks]) / ticks_per_second);
  page->Gauge("process_threads", "Threads.").Add(stat[kThreads]);
  page->Gauge("process_virtual_memory_bytes", "Virtual memory.").Add(stat[kVirtualBytes]);
  page->Gauge("process_resident_memory_bytes", "Resident memory.")
      .Add(stat[kResidentPages] * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

}  // namespace keelson
