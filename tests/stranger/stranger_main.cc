// A stranger on the network: knows the addresses of a job's servers and no secret, and for some
// seconds does to them what can be done. Prints what it did. Exit code: 0 servers answered calls
// that all may make, but none that strangers may not make, and no method was left out; with --only:
// it was done; 1 otherwise; 2 bad flags.
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "tests/stranger/call_assault.h"
#include "tests/stranger/crowd.h"
#include "tests/stranger/wire_assaults.h"

namespace keelson {
namespace {

// Files that the program has besides its crowd.
constexpr rlim_t kOtherFiles = 200;
constexpr absl::Duration kWireSlice = absl::Milliseconds(250);
// Calls that all may make come from here: at the address of the crowd they would wait behind it.
constexpr char kAloofSource[] = "127.0.0.67";

struct Flags {
  std::vector<int> ports;
  int seconds = 60;
  size_t connections = 10000;
  std::string source = "127.0.0.66";
  uint32_t seed = 1;
  std::string only;
};

// As many as the limit of open files allows, which becomes the highest that may be set.
size_t PossibleConnections(size_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t most = limit.rlim_cur > kOtherFiles ? limit.rlim_cur - kOtherFiles : 0;
  if (wanted <= most) return wanted;
  std::printf("connections: the limit of open files allows %zu of %zu\n", static_cast<size_t>(most),
              wanted);
  return static_cast<size_t>(most);
}

// Each of them in turn, at one server after the other. Returns how many open calls were answered.
int64_t RunWireAssaults(Assault assault, const std::vector<int>& ports) {
  const absl::Time end = assault.end;
  const std::string source = assault.source;
  std::vector<int64_t> times(WireAssaults().size());
  for (size_t i = 0; absl::Now() < end; ++i) {
    const size_t which = i % times.size();
    assault.port = ports[(i / times.size() + which) % ports.size()];
    assault.end = std::min(end, absl::Now() + kWireSlice);
    const bool open = WireAssaults()[which].run == &CallOpenMethods;
    assault.source = open ? kAloofSource : source;
    times[which] += WireAssaults()[which].run(assault);
  }
  int64_t answered = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    if (WireAssaults()[i].run == &CallOpenMethods) answered = times[i];
    std::printf("%s: %lld\n", WireAssaults()[i].name, static_cast<long long>(times[i]));
  }
  return answered;
}

// Nothing but the one assault, at all servers in turn. False: there is no such one.
bool RunOne(const Flags& flags) {
  for (const WireAssault& one : WireAssaults()) {
    if (one.name != flags.only) continue;
    std::minstd_rand random(flags.seed);
    const absl::Time end = absl::Now() + absl::Seconds(flags.seconds);
    int64_t times = 0;
    for (size_t i = 0; absl::Now() < end; ++i) {
      times += one.run({flags.source, flags.ports[i % flags.ports.size()],
                        std::min(end, absl::Now() + kWireSlice), &random});
    }
    std::printf("%s: %lld\n", one.name, static_cast<long long>(times));
    return times > 0;
  }
  std::printf("--only: there is no assault \"%s\"\n", flags.only.c_str());
  return false;
}

bool Report(const CallTally& tally) {
  int64_t sent = 0;
  bool all = true;
  for (const auto& [method, times] : tally.sent) {
    sent += times;
    all &= times > 0;
    if (times == 0) std::printf("never called: %s\n", method.c_str());
  }
  std::printf("calls that strangers may not make: %lld of %zu methods, %lld ended, %lld answered\n",
              static_cast<long long>(sent), tally.sent.size(), static_cast<long long>(tally.ended),
              static_cast<long long>(tally.answered));
  return all && tally.answered == 0;
}

int Run(const Flags& flags) {
  // The threads that it starts inherit this.
  const sched_param none{};
  if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
    std::printf("the attack competes with the servers: SCHED_IDLE is refused\n");
  if (!flags.only.empty()) return RunOne(flags) ? 0 : 1;
  const size_t connections = PossibleConnections(flags.connections);
  std::minstd_rand randoms[] = {std::minstd_rand(flags.seed), std::minstd_rand(flags.seed + 1),
                                std::minstd_rand(flags.seed + 2), std::minstd_rand(flags.seed + 3)};
  const absl::Time end = absl::Now() + absl::Seconds(flags.seconds);
  CallTally calls;
  std::thread caller([&] {
    calls = CallClosedMethods({flags.source, 0, end, &randoms[0]}, flags.ports);
  });
  CrowdTally crowd;
  std::thread bystander([&] {
    crowd = StandAround({flags.source, 0, end, &randoms[1]}, flags.ports, connections);
  });
  int64_t hoards = 0;
  std::thread hoarder([&] {
    hoards = HoardMessages({flags.source, 0, end, &randoms[3]}, flags.ports);
  });
  const int64_t answered = RunWireAssaults({flags.source, 0, end, &randoms[2]}, flags.ports);
  caller.join();
  hoarder.join();
  bystander.join();
  std::printf("idle connections: %lld opened, %lld at once, %lld closed by the servers\n",
              static_cast<long long>(crowd.opened), static_cast<long long>(crowd.most_at_once),
              static_cast<long long>(crowd.closed_by_servers));
  std::printf("connections with messages that are hoarded: %lld\n", static_cast<long long>(hoards));
  return Report(calls) && answered > 0 ? 0 : 1;
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  keelson::Flags flags;
  CLI::App app("Does to the servers of a job what somebody without its token can do.");
  app.add_option("--port", flags.ports, "Of 127.0.0.1, once for each server")->required();
  app.add_option("--seconds", flags.seconds, "")->check(CLI::PositiveNumber);
  app.add_option("--connections", flags.connections, "Idle ones at once");
  app.add_option("--source", flags.source, "The address to call from");
  app.add_option("--seed", flags.seed, "");
  app.add_option("--only", flags.only, "One assault on the wire, by what it prints of itself");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return keelson::Run(flags);
}
