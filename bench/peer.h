// A process of the benchmark as the process that started it sees it: started from the own
// executable, controlled by lines of JSON on its standard input, each answered by a line on its
// standard output.
#ifndef KEELSON_BENCH_PEER_H_
#define KEELSON_BENCH_PEER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

// Used by one thread, which is the one that started it: a peer ends with that thread.
class Peer {
 public:
  // Starts a process that plays spec["role"] (peer_main.h) and waits until it is ready. INTERNAL:
  // it cannot be started; or the peer's own error.
  static absl::StatusOr<std::unique_ptr<Peer>> Start(const nlohmann::json& spec);
  // Ends the process: asks, waits some seconds, kills.
  ~Peer();

  // What it said when it was ready.
  const nlohmann::json& ready() const { return ready_; }

  absl::Status Send(const nlohmann::json& command);
  // The answer to the oldest command that has none. DEADLINE_EXCEEDED; INTERNAL: the process
  // ended, or what it said is no answer; otherwise the peer's own error.
  absl::StatusOr<nlohmann::json> Receive(absl::Duration timeout);
  absl::StatusOr<nlohmann::json> Call(const nlohmann::json& command, absl::Duration timeout);

  // Processor time that all its threads have used so far.
  double CpuSeconds() const;
  // The most memory that it had.
  int64_t PeakResidentBytes() const;

 private:
  Peer(std::string role, pid_t pid, int to, int from)
      : role_(std::move(role)), pid_(pid), to_(to), from_(from) {}

  // Without the line's end.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);

  const std::string role_;
  const pid_t pid_;
  int to_;
  int from_;
  std::string unread_;
  nlohmann::json ready_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_PEER_H_
