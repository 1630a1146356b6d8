#include "bench/meter.h"

#include <time.h>

#include <utility>

namespace keelson::bench {

using nlohmann::json;

double MonotonicSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void ClientReport::Add(const ClientReport& other) {
  clients.insert(clients.end(), other.clients.begin(), other.clients.end());
  latencies.Add(other.latencies);
  failures += other.failures;
}

json ToJson(const ClientReport& report) {
  json clients = json::array();
  for (const ClientRates& client : report.clients) {
    clients.push_back({client.calls, client.pushed_bytes, client.pulled_bytes});
  }
  return {{"clients", clients},
          {"latencies", report.latencies.Classes()},
          {"failures", report.failures}};
}

ClientReport ReportFromJson(const json& json) {
  ClientReport report;
  for (const auto& client : json.at("clients")) {
    report.clients.push_back(
        {client.at(0).get<double>(), client.at(1).get<double>(), client.at(2).get<double>()});
  }
  report.latencies = LatencyHistogram::FromClasses(
      json.at("latencies").get<std::vector<std::pair<int, int64_t>>>());
  report.failures = json.at("failures").get<int64_t>();
  return report;
}

bool Meter::Count(const Operation& operation) {
  over_ = counted_ && operation.ended >= window_.until;
  if (counted_ || operation.ended < window_.begin) return !over_;
  if (!counting_) {
    counting_ = true;
    begin_ = operation.ended;
    return true;
  }
  end_ = operation.ended;
  left_out_ += operation.left_out;
  calls_ += operation.calls;
  pushed_bytes_ += operation.pushed_bytes;
  pulled_bytes_ += operation.pulled_bytes;
  report_.latencies.Record(operation.ended - operation.started);
  counted_ = operation.ended >= window_.end;
  over_ = counted_ && operation.ended >= window_.until;
  return !over_;
}

ClientReport Meter::Report() const {
  ClientReport report = report_;
  ClientRates rates;
  const double seconds = end_ - begin_ - left_out_;
  if (seconds > 0) {
    rates.calls = static_cast<double>(calls_) / seconds;
    rates.pushed_bytes = static_cast<double>(pushed_bytes_) / seconds;
    rates.pulled_bytes = static_cast<double>(pulled_bytes_) / seconds;
  }
  report.clients.push_back(rates);
  return report;
}

}  // namespace keelson::bench
