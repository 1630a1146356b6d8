#include "bench/chief/chief_process.h"

#include <stdlib.h>
#include <time.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"

namespace keelson::bench {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(60);
constexpr absl::Duration kStartPause = absl::Milliseconds(10);

// Training does not end, and no snapshot is taken after the first one: both would be measured too.
constexpr char kConfig[] = R"(
model {
  name: "chief_bench"
  input_shape: [28, 28, 1]
  layers { flatten {} }
  layers { dense { units: 10 } }
  loss { kind: SOFTMAX_CROSS_ENTROPY }
}
optimizer { sgd {} }
learning_rate { base: 0.1 }
train { batch_size: 8 max_steps: 1000000000000 }
checkpoint { save_seconds: 100000000 }
)";

// In $TMPDIR, or /tmp.
absl::StatusOr<std::string> MakeDirectory() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("TMPDIR: expected a directory, found ", error.message()));
  }
  std::string path = (parent / "chief_bench_XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, "TMPDIR: " + path);
  return path;
}

std::string ConfigText(const ChiefProcess::Options& options) {
  if (options.replicas_to_aggregate == 0) return kConfig;
  return absl::StrCat(kConfig, "consistency { mode { synchronous { replicas_to_aggregate: ",
                      options.replicas_to_aggregate, " } } }\n");
}

}  // namespace

ChiefProcess::ChiefProcess(const StopSignal* stop)
    : stop_(stop), port_(1), job_token_(absl::StrFormat("%016x%016x", RandomId(), RandomId())) {}

ChiefProcess::~ChiefProcess() {
  process_ = nullptr;
  servers_ = nullptr;
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

absl::StatusOr<std::unique_ptr<ChiefProcess>> ChiefProcess::Start(const Options& options) {
  std::unique_ptr<ChiefProcess> chief(new ChiefProcess(options.stop));
  ASSIGN_OR_RETURN(chief->directory_, MakeDirectory());
  RETURN_IF_ERROR(chief->WriteFiles(options));
  ASSIGN_OR_RETURN(chief->servers_, FakeServers::Start(options.servers, chief->config_hash_,
                                                       chief->directory_ / "model"));
  RETURN_IF_ERROR(chief->StartProgram(options));
  return chief;
}

absl::Status ChiefProcess::WriteFiles(const Options& options) {
  std::error_code error;
  std::filesystem::create_directory(directory_ / "model", error);
  if (error) return absl::UnavailableError(error.message());
  const std::string config_path = directory_ / "config.textproto";
  RETURN_IF_ERROR(WriteFileAtomically(config_path, ConfigText(options)));
  ASSIGN_OR_RETURN(v1::TrainConfig config, LoadTrainConfig(config_path));
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  config_hash_ = ConfigHash(config);
  const std::string token_path = directory_ / "token";
  RETURN_IF_ERROR(WriteFileAtomically(token_path, absl::StrCat(job_token_, "\n")));
  // A token that others may read is refused.
  std::filesystem::permissions(token_path, std::filesystem::perms::owner_read, error);
  return error ? absl::UnavailableError(error.message()) : absl::OkStatus();
}

absl::Status ChiefProcess::StartProgram(const Options& options) {
  Process::Command command;
  command.argv = {options.program,
                  absl::StrCat("--config=", (directory_ / "config.textproto").string()),
                  absl::StrCat("--model_dir=", (directory_ / "model").string()),
                  absl::StrCat("--job_token_file=", (directory_ / "token").string()),
                  absl::StrCat("--ps_hosts=", absl::StrJoin(servers_->addresses(), ",")),
                  absl::StrCat("--chief_hosts=", address()),
                  absl::StrCat("--lease=", options.lease_seconds)};
  command.log_path = directory_ / "log";
  ASSIGN_OR_RETURN(process_, Process::Start(command));
  const absl::Time until = absl::Now() + kStartLimit;
  while (!absl::StrContains(process_->Log(), "listening on port")) {
    RETURN_IF_ERROR(CheckRunning());
    if (absl::Now() > until)
      return absl::UnavailableError("the chief does not listen: " + LogEnd());
    absl::SleepFor(kStartPause);
  }
  return absl::OkStatus();
}

std::string ChiefProcess::address() const { return absl::StrCat("127.0.0.1:", port_[0]); }

absl::Status ChiefProcess::CheckRunning() {
  if (stop_ != nullptr && stop_->raised()) return absl::CancelledError("stopped by a signal");
  const std::optional<int> code = process_->Poll();
  if (!code.has_value()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the chief has exited with ", *code, ": ", LogEnd()));
}

std::string ChiefProcess::LogEnd() const {
  constexpr size_t kBytes = 1000;
  const std::string log = process_->Log();
  return log.size() <= kBytes ? log : log.substr(log.size() - kBytes);
}

double ChiefProcess::CpuSeconds() const {
  // The sum of utime and stime of /proc/PID/stat, in nanoseconds instead of ticks.
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(process_->pid(), &clock) != 0) return 0;
  if (clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

ChiefProcess::Memory ChiefProcess::memory() const {
  Memory memory;
  std::ifstream status(absl::StrCat("/proc/", process_->pid(), "/status"));
  for (std::string line; std::getline(status, line);) {
    int64_t kibibytes = 0;
    if (std::sscanf(line.c_str(), "VmRSS: %" SCNd64, &kibibytes) == 1) {
      memory.resident_bytes = kibibytes * 1024;
    }
    std::sscanf(line.c_str(), "Threads: %d", &memory.threads);
  }
  return memory;
}

}  // namespace keelson::bench
