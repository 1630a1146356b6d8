#include "bench/run.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"

namespace keelson::bench {
namespace {

// Beyond the run's own time: for an operation on the largest model.
constexpr double kAnswerSeconds = 60;

double CpuSecondsOf(const std::vector<Peer*>& peers) {
  double sum = 0;
  for (const Peer* peer : peers) sum += peer->CpuSeconds();
  return sum;
}

void SleepUntil(double monotonic_seconds) {
  absl::SleepFor(absl::Seconds(monotonic_seconds - MonotonicSeconds()));
}

struct CpuSample {
  double time = 0;
  double clients = 0;
  double servers = 0;
};

CpuSample SampleAt(double time, const Contender& contender) {
  SleepUntil(time);
  return {MonotonicSeconds(), CpuSecondsOf(contender.clients), CpuSecondsOf(contender.servers)};
}

}  // namespace

double RunResult::Calls() const {
  double sum = 0;
  for (const ClientRates& client : report.clients) sum += client.calls;
  return sum;
}

double RunResult::PushedBytes() const {
  double sum = 0;
  for (const ClientRates& client : report.clients) sum += client.pushed_bytes;
  return sum;
}

double RunResult::PulledBytes() const {
  double sum = 0;
  for (const ClientRates& client : report.clients) sum += client.pulled_bytes;
  return sum;
}

absl::StatusOr<RunResult> RunOnce(const Contender& contender, const RunTiming& timing) {
  const double begin = MonotonicSeconds() + timing.warm_up_seconds;
  const double end = begin + timing.seconds;
  nlohmann::json command = contender.command;
  command["do"] = "run";
  command["begin"] = begin;
  command["end"] = end;
  command["until"] = contender.clients.size() > 1 ? end + timing.warm_up_seconds : end;
  for (Peer* client : contender.clients) RETURN_IF_ERROR(client->Send(command));
  const CpuSample before = SampleAt(begin, contender);
  const CpuSample after = SampleAt(end, contender);
  RunResult result;
  result.client_cpu = (after.clients - before.clients) / (after.time - before.time);
  result.server_cpu = (after.servers - before.servers) / (after.time - before.time);
  absl::Status status;
  for (Peer* client : contender.clients) {
    const auto answer = client->Receive(absl::Seconds(timing.seconds + kAnswerSeconds));
    if (answer.ok()) {
      result.report.Add(ReportFromJson(*answer));
    } else {
      status.Update(answer.status());
    }
  }
  RETURN_IF_ERROR(status);
  return result;
}

}  // namespace keelson::bench
