// One measured run: clients work at the same time in processes of their own.
#ifndef KEELSON_BENCH_RUN_H_
#define KEELSON_BENCH_RUN_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bench/meter.h"
#include "bench/peer.h"

namespace keelson::bench {

// How long a run takes.
struct RunTiming {
  // Work before the measured time, so that connections and caches are as they stay.
  double warm_up_seconds = 0;
  double seconds = 0;
};

// The processes that work together, and their command. The peers outlive it.
struct Contender {
  std::vector<Peer*> clients;
  // The servers, whose processor time is measured, too.
  std::vector<Peer*> servers;
  // To the clients; the window is added.
  nlohmann::json command;
};

struct RunResult {
  ClientReport report;  // of all clients
  // Processor seconds per second.
  double client_cpu = 0;
  double server_cpu = 0;

  // Sums over the clients, per second.
  double Calls() const;
  double PushedBytes() const;
  double PulledBytes() const;
};

// An error is the first client's that has one.
absl::StatusOr<RunResult> RunOnce(const Contender& contender, const RunTiming& timing);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_RUN_H_
