#include "bench/report.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

std::string WithSpread(const Spread& spread) {
  return absl::StrFormat("%.2f (%.2f-%.2f)", spread.median, spread.min, spread.max);
}

// Servers that run already may be elsewhere: what they use is not known.
bool KnowsCpu(const Measured& measured) { return measured.server_cpu.median > 0; }

// "0.93x"; nothing where there is nothing to compare with.
std::string Ratio(double a, double b) { return b > 0 ? absl::StrFormat("%.2fx", a / b) : "-"; }

std::string OrDash(const Spread& spread) { return spread.max > 0 ? WithSpread(spread) : "-"; }

std::string Megabytes(int64_t bytes) {
  return absl::StrFormat("%.1f", static_cast<double>(bytes) / 1e6);
}

std::vector<std::string> ResultRow(const Result& result) {
  const Scenario& scenario = result.scenario;
  const Measured& measured = result.measured;
  return {absl::StrCat(scenario.name, " ", Name(scenario.direction), " ", Name(scenario.handler),
                       " ", Name(scenario.wire)),
          absl::StrCat(scenario.servers, "x", scenario.workers * scenario.clients_per_worker),
          OrDash(measured.push),
          OrDash(measured.pull),
          absl::StrFormat("%.0f", measured.calls.median),
          absl::StrFormat("%.0f", measured.p50_us),
          absl::StrFormat("%.0f", measured.p99_us),
          absl::StrFormat("%.2f", measured.client_cpu.median),
          KnowsCpu(measured) ? absl::StrFormat("%.2f", measured.server_cpu.median) : "-",
          WithSpread(result.limits.raw_socket.goodput),
          Ratio(measured.goodput.median, result.limits.raw_socket.goodput.median),
          WithSpread(result.baseline.goodput),
          Ratio(measured.goodput.median, result.baseline.goodput.median),
          KnowsCpu(measured) ? Ratio(result.baseline.cpu(), measured.cpu()) : "-"};
}

nlohmann::json JsonRow(const Result& result) {
  return {{"scenario", result.scenario.name},
          {"direction", Name(result.scenario.direction)},
          {"handler", Name(result.scenario.handler)},
          {"wire", Name(result.scenario.wire)},
          {"message_bytes", result.message_bytes},
          {"servers", result.scenario.servers},
          {"workers", result.scenario.workers * result.scenario.clients_per_worker},
          {"gbytes_per_s", result.measured.goodput.median},
          {"rpcs_per_s", result.measured.calls.median},
          {"p50_us", result.measured.p50_us},
          {"p99_us", result.measured.p99_us},
          {"cpu_s_per_gbyte", result.measured.cpu()},
          {"raw_socket_gbytes_per_s", result.limits.raw_socket.goodput.median},
          {"naive_gbytes_per_s", result.baseline.goodput.median},
          {"empty_rpc_p50_us", result.limits.empty_rpc.p50_us}};
}

}  // namespace

nlohmann::json JsonReport(const std::vector<Result>& results) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Result& result : results) rows.push_back(JsonRow(result));
  return rows;
}

Table ResultTable(const std::vector<Result>& results) {
  Table table{"Goodput in GB/s of payload: median (min-max)",
              {"scenario", "servers x workers", "push", "pull", "RPC/s", "p50 us", "p99 us",
               "client cpu s/GB", "server cpu s/GB", "raw socket", "of raw", "naive", "of naive",
               "naive cpu / cpu"},
              {}};
  for (const Result& result : results) table.rows.push_back(ResultRow(result));
  return table;
}

Table LimitTable(const std::vector<Result>& results) {
  Table table{"Limits of this machine in this run: median (min-max)",
              {"message bytes", "raw socket GB/s", "raw cpu s/GB", "memcpy GB/s",
               "empty RPC p50 us", "empty RPC p99 us"},
              {}};
  std::map<int64_t, const Result*> by_size;
  for (const Result& result : results) by_size.emplace(result.scenario.message_bytes, &result);
  for (const auto& [bytes, result] : by_size) {
    const MeasuredLimits& limits = result->limits;
    table.rows.push_back({absl::StrCat(bytes), WithSpread(limits.raw_socket.goodput),
                          absl::StrFormat("%.2f", limits.raw_socket.cpu()),
                          WithSpread(limits.memory_copy.goodput),
                          absl::StrFormat("%.0f", limits.empty_rpc.p50_us),
                          absl::StrFormat("%.0f", limits.empty_rpc.p99_us)});
  }
  return table;
}

Table MemoryTable(const std::vector<Result>& results) {
  Table table{
      "Memory at its highest, in MB",
      {"scenario", "values", "slots", "servers", "of values and slots", "worker", "of values"},
      {}};
  for (const Result& result : results) {
    const Memory& memory = result.memory;
    if (result.scenario.workload != Workload::kSteps) continue;
    table.rows.push_back(
        {absl::StrCat(result.scenario.name, " ", Name(result.scenario.handler), " ",
                      Name(result.scenario.wire)),
         Megabytes(memory.values), Megabytes(memory.slots), Megabytes(memory.server_resident),
         Ratio(static_cast<double>(memory.server_resident),
               static_cast<double>(memory.values + memory.slots)),
         Megabytes(memory.worker_resident),
         Ratio(static_cast<double>(memory.worker_resident), static_cast<double>(memory.values))});
  }
  return table;
}

Table FairnessTable(const std::vector<Result>& results) {
  Table table{"Many workers on one server",
              {"scenario", "workers", "failures", "fastest / slowest", "server MB"},
              {}};
  for (const Result& result : results) {
    if (result.scenario.clients_per_worker < 2) continue;
    table.rows.push_back(
        {result.scenario.name,
         absl::StrCat(result.scenario.workers * result.scenario.clients_per_worker),
         absl::StrCat(result.measured.failures),
         absl::StrFormat("%.2f", result.measured.unfairness),
         Megabytes(result.memory.server_resident)});
  }
  return table;
}

Table IdleTable(const IdleCpu& idle) {
  return {"Idle: per cent of a core",
          {"process", "cpu"},
          {{"server", absl::StrFormat("%.2f", idle.server * 100)},
           {"worker", absl::StrFormat("%.2f", idle.worker * 100)}}};
}

std::string ScalingCsv(const std::vector<Result>& results) {
  std::string csv =
      "servers,workers,direction,gbytes_per_s,min,max,cpu_s_per_gbyte,raw_socket_gbytes_per_s\n";
  for (const Result& result : results) {
    const Spread& goodput = result.measured.goodput;
    absl::StrAppendFormat(&csv, "%d,%d,%s,%.4f,%.4f,%.4f,%.4f,%.4f\n", result.scenario.servers,
                          result.scenario.workers, Name(result.scenario.direction), goodput.median,
                          goodput.min, goodput.max, result.measured.cpu(),
                          result.limits.raw_socket.goodput.median);
  }
  return csv;
}

}  // namespace keelson::bench
