#include "bench/result.h"

#include <algorithm>

namespace keelson::bench {
namespace {

constexpr double kGiga = 1e9;

double Unfairness(const RunResult& run) {
  if (run.report.clients.size() < 2) return 0;
  const auto [slowest, fastest] = std::minmax_element(
      run.report.clients.begin(), run.report.clients.end(),
      [](const ClientRates& a, const ClientRates& b) { return a.calls < b.calls; });
  return slowest->calls > 0 ? fastest->calls / slowest->calls : 0;
}

double Quotient(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

Measured Summarize(const std::vector<RunResult>& runs) {
  std::vector<double> push, pull, goodput, calls, client_cpu, server_cpu, unfairness;
  LatencyHistogram latencies;
  Measured measured;
  for (const RunResult& run : runs) {
    const double pushed = run.PushedBytes() / kGiga, pulled = run.PulledBytes() / kGiga;
    const int directions = (pushed > 0) + (pulled > 0);
    push.push_back(pushed);
    pull.push_back(pulled);
    goodput.push_back(Quotient(pushed + pulled, directions));
    calls.push_back(run.Calls());
    client_cpu.push_back(Quotient(run.client_cpu, pushed + pulled));
    server_cpu.push_back(Quotient(run.server_cpu, pushed + pulled));
    unfairness.push_back(Unfairness(run));
    latencies.Add(run.report.latencies);
    measured.failures += run.report.failures;
  }
  measured.push = SpreadOf(push);
  measured.pull = SpreadOf(pull);
  measured.goodput = SpreadOf(goodput);
  measured.calls = SpreadOf(calls);
  measured.client_cpu = SpreadOf(client_cpu);
  measured.server_cpu = SpreadOf(server_cpu);
  measured.unfairness = SpreadOf(unfairness).median;
  measured.p50_us = latencies.PercentileMicroseconds(0.5);
  measured.p99_us = latencies.PercentileMicroseconds(0.99);
  return measured;
}

}  // namespace keelson::bench
