// The limits of the machine and of plain generated code with messages of one size: the processes
// that are measured beside the parameter servers in every comparison.
#ifndef KEELSON_BENCH_LIMITS_H_
#define KEELSON_BENCH_LIMITS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/peer.h"
#include "bench/run.h"
#include "bench/socket.h"

namespace keelson::bench {

// Options of these processes.
struct LimitOptions {
  Transport transport = Transport::kTcp;
  int64_t message_bytes = 0;
  int64_t memory_bytes = 0;  // on each side: messages go round and round over it
  int baseline_threads = 1;
  // TuneAllocator in the processes of the baseline too.
  bool baseline_tuned = false;

  friend bool operator==(const LimitOptions&, const LimitOptions&) = default;
};

// Owns its processes.
class Limits {
 public:
  static absl::StatusOr<std::unique_ptr<Limits>> Start(const LimitOptions& options);

  const LimitOptions& options() const { return options_; }

  Contender RawSocket() const;
  Contender MemoryCopy() const;
  // `method`: "empty", "push", "pull" or "pushpull".
  Contender Baseline(const std::string& method) const;

 private:
  explicit Limits(const LimitOptions& options) : options_(options) {}

  const LimitOptions options_;
  std::unique_ptr<Peer> copier_;
  std::unique_ptr<Peer> raw_receiver_;
  std::unique_ptr<Peer> raw_sender_;
  std::unique_ptr<Peer> baseline_server_;
  std::unique_ptr<Peer> baseline_client_;
};

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_LIMITS_H_
