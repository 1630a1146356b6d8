// The chief that is measured: the built program in a process of its own, with fake servers.
#ifndef KEELSON_BENCH_CHIEF_CHIEF_PROCESS_H_
#define KEELSON_BENCH_CHIEF_CHIEF_PROCESS_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/chief/fake_servers.h"
#include "core/base/stop_signal.h"
#include "keelson/v1/train_config.pb.h"
#include "tests/support/ports.h"
#include "tests/support/process.h"

namespace keelson::bench {

// Used by one thread. The process is killed with this object, and with the thread that started it.
class ChiefProcess {
 public:
  struct Options {
    std::string program;  // path of the chief
    int servers = 100;
    // Steps of synchronous mode are the mean of so many gradients; 0: asynchronous mode.
    int replicas_to_aggregate = 0;
    int lease_seconds = 10;
    // Has CheckRunning fail. Outlives the object; null: one that is never raised.
    const StopSignal* stop = nullptr;
  };

  // Returns when the chief's port is known, which is before it trains. Errors of CheckRunning.
  // UNAVAILABLE: the program
  // cannot be run, or ends at once; the text has the end of its log.
  static absl::StatusOr<std::unique_ptr<ChiefProcess>> Start(const Options& options);
  ~ChiefProcess();
  ChiefProcess(const ChiefProcess&) = delete;
  ChiefProcess& operator=(const ChiefProcess&) = delete;

  std::string address() const;
  uint64_t config_hash() const { return config_hash_; }
  const std::string& job_token() const { return job_token_; }

  // CANCELLED: the measurement is to stop. UNAVAILABLE: the process has ended; the text has the end
  // of its log.
  absl::Status CheckRunning();
  const StopSignal* stop() const { return stop_; }
  // Processor time of all its threads so far.
  double CpuSeconds() const;
  struct Memory {
    int64_t resident_bytes = 0;
    int threads = 0;
  };
  Memory memory() const;
  // See FakeServers.
  size_t job_state_bytes() const { return servers_->job_state_bytes(); }

 private:
  explicit ChiefProcess(const StopSignal* stop);

  absl::Status WriteFiles(const Options& options);
  absl::Status StartProgram(const Options& options);
  // The last lines of the chief's log.
  std::string LogEnd() const;

  const StopSignal* const stop_;
  std::filesystem::path directory_;
  const ReservedPorts port_;
  const std::string job_token_;
  uint64_t config_hash_ = 0;
  std::unique_ptr<FakeServers> servers_;
  std::unique_ptr<Process> process_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_CHIEF_CHIEF_PROCESS_H_
