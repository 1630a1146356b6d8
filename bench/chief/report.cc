#include "bench/chief/report.h"

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/base/available_cores.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (absl::StartsWith(line, "model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string LoadAverage() {
  std::ifstream file("/proc/loadavg");
  std::string minute;
  file >> minute;
  return minute;
}

json ToJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

json ToJson(const CallCost& cost) {
  return {{"cpu_us", ToJson(cost.cpu_us)}, {"p50_us", cost.p50_us}, {"p99_us", cost.p99_us}};
}

json ToJson(const CallTimes& times) {
  return {{"wanted", times.wanted},
          {"answered", times.answered},
          {"failed", times.failed},
          {"p50_us", times.p50_us},
          {"p99_us", times.p99_us}};
}

json ToJson(const ChiefProcess::Memory& memory) {
  return {{"resident_bytes", memory.resident_bytes}, {"threads", memory.threads}};
}

json ToJson(const AsynchronousResult& result) {
  json calls = json::object();
  for (const auto& [name, times] : result.calls) calls[name] = ToJson(times);
  return {{"join_seconds", result.join_seconds},
          {"join_cpu_us", result.join_cpu_us},
          {"idle_cores", ToJson(result.idle_cores)},
          {"heartbeat", ToJson(result.heartbeat)},
          {"acquire_work", ToJson(result.acquire_work)},
          {"job_status", ToJson(result.job_status)},
          {"cores", ToJson(result.cores)},
          {"wanted_per_second", result.wanted_per_second},
          {"answered_per_second", result.answered_per_second},
          {"calls", calls},
          {"job_state_bytes", result.job_state_bytes},
          {"memory", ToJson(result.memory)}};
}

json ToJson(const SynchronousResult& result) {
  return {{"rounds", result.rounds},
          {"round_ms", ToJson(result.round_ms)},
          {"cores", result.cores},
          {"heartbeat", ToJson(result.heartbeat)},
          {"memory", ToJson(result.memory)}};
}

json ToJson(const ChiefResult& result) {
  json out = {{"workers", result.workers}, {"servers", result.servers}, {"errors", result.errors}};
  if (result.asynchronous.has_value()) out["asynchronous"] = ToJson(*result.asynchronous);
  if (result.synchronous.has_value()) out["synchronous"] = ToJson(*result.synchronous);
  return out;
}

json ToJson(const LifeResult& result) {
  json samples = json::array();
  for (const LifeSample& sample : result.samples) {
    samples.push_back({sample.seconds, sample.memberships, sample.resident_bytes, sample.threads});
  }
  return {{"workers", result.workers},
          {"life_seconds", result.life_seconds},
          {"memberships", result.memberships},
          {"cores", result.cores},
          {"bytes_per_membership", result.bytes_per_membership},
          {"samples", samples},
          {"errors", result.errors}};
}

std::string Whole(double value) { return absl::StrFormat("%.0f", value); }
std::string Fine(double value) { return absl::StrFormat("%.2f", value); }
std::string Milliseconds(double microseconds) {
  return absl::StrFormat("%.1f", microseconds / 1e3);
}
std::string Megabytes(int64_t bytes) { return Whole(static_cast<double>(bytes) / 1e6); }
std::string WithSpread(const Spread& spread, const char* format) {
  const std::string text = absl::StrCat(format, " (", format, "-", format, ")");
  return absl::StrFormat(*absl::ParsedFormat<'f', 'f', 'f'>::New(text), spread.median, spread.min,
                         spread.max);
}

}  // namespace

json ChiefReport(const std::vector<ChiefResult>& results, const std::vector<LifeResult>& lives) {
  json report = {
      {"machine",
       {{"cores", AvailableCores()}, {"cpu", CpuModel()}, {"load_average", LoadAverage()}}}};
  for (const ChiefResult& result : results) report["results"].push_back(ToJson(result));
  for (const LifeResult& life : lives) report["lives"].push_back(ToJson(life));
  return report;
}

Table CostTable(const std::vector<ChiefResult>& results) {
  Table table{"Processor time of the chief in us for one call, by itself: median (min-max)",
              {"workers", "servers", "Heartbeat", "p99 ms", "AcquireWork", "p99 ms", "GetJobStatus",
               "p99 ms", "join", "idle cores"},
              {}};
  for (const ChiefResult& result : results) {
    if (!result.asynchronous.has_value()) continue;
    const AsynchronousResult& async = *result.asynchronous;
    table.rows.push_back(
        {absl::StrCat(result.workers), absl::StrCat(result.servers),
         WithSpread(async.heartbeat.cpu_us, "%.0f"), Milliseconds(async.heartbeat.p99_us),
         WithSpread(async.acquire_work.cpu_us, "%.0f"), Milliseconds(async.acquire_work.p99_us),
         WithSpread(async.job_status.cpu_us, "%.0f"), Milliseconds(async.job_status.p99_us),
         Whole(async.join_cpu_us), WithSpread(async.idle_cores, "%.2f")});
  }
  return table;
}

Table JobTable(const std::vector<ChiefResult>& results) {
  Table table{
      "A job in asynchronous mode",
      {"workers", "cores of the chief", "calls/s wanted", "answered", "share", "Heartbeat p50 ms",
       "p99", "AcquireWork p50", "p99", "GetJobStatus p50", "p99", "MB", "threads"},
      {}};
  for (const ChiefResult& result : results) {
    if (!result.asynchronous.has_value()) continue;
    const AsynchronousResult& async = *result.asynchronous;
    std::vector<std::string> row = {
        absl::StrCat(result.workers), WithSpread(async.cores, "%.2f"),
        Whole(async.wanted_per_second), Whole(async.answered_per_second),
        Fine(async.wanted_per_second > 0 ? async.answered_per_second / async.wanted_per_second
                                         : 0)};
    for (const char* name : {"Heartbeat", "AcquireWork", "GetJobStatus"}) {
      const auto call = async.calls.find(name);
      const CallTimes times = call == async.calls.end() ? CallTimes() : call->second;
      row.push_back(Milliseconds(times.p50_us));
      row.push_back(Milliseconds(times.p99_us));
    }
    row.push_back(Megabytes(async.memory.resident_bytes));
    row.push_back(absl::StrCat(async.memory.threads));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table RoundTable(const std::vector<ChiefResult>& results) {
  Table table{
      "Synchronous rounds of workers that compute nothing",
      {"workers", "rounds", "ms", "cores of the chief", "Heartbeat p99 ms", "MB", "threads"},
      {}};
  for (const ChiefResult& result : results) {
    if (!result.synchronous.has_value()) continue;
    const SynchronousResult& sync = *result.synchronous;
    table.rows.push_back({absl::StrCat(result.workers), absl::StrCat(sync.rounds),
                          sync.rounds == 0 ? "-" : WithSpread(sync.round_ms, "%.1f"),
                          Fine(sync.cores), Milliseconds(sync.heartbeat.p99_us),
                          Megabytes(sync.memory.resident_bytes),
                          absl::StrCat(sync.memory.threads)});
  }
  return table;
}

Table LifeTable(const std::vector<LifeResult>& lives) {
  Table table{"Memory of the chief over many lives of its workers",
              {"workers", "life s", "memberships", "MB at a quarter", "half", "three quarters",
               "end", "bytes per membership", "cores of the chief", "threads"},
              {}};
  for (const LifeResult& life : lives) {
    if (life.samples.empty()) continue;
    const size_t last = life.samples.size() - 1;
    const auto megabytes = [&](size_t sample) {
      return Megabytes(life.samples[sample].resident_bytes);
    };
    table.rows.push_back({absl::StrCat(life.workers), Fine(life.life_seconds),
                          absl::StrCat(life.memberships), megabytes(last / 4), megabytes(last / 2),
                          megabytes(last * 3 / 4), megabytes(last),
                          Whole(life.bytes_per_membership), Fine(life.cores),
                          absl::StrCat(life.samples.back().threads)});
  }
  return table;
}

}  // namespace keelson::bench
