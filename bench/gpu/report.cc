#include "bench/gpu/report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

constexpr double kProductGoal = 0.85;
constexpr double kKernelGoal = 0.8;
constexpr double kLeastKernelBytes = 64e6;
constexpr double kStepGoal = 1.15;
constexpr int64_t kStepGoalBatch = 4096;
constexpr double kIdleGoal = 0.10;

std::string WithSpread(const Spread& spread, double unit) {
  return absl::StrFormat("%.2f (%.2f-%.2f)", spread.median / unit, spread.min / unit,
                         spread.max / unit);
}

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

double LongerOf(const StepMeasurement& step) {
  return std::max(step.compute.median, step.transfer.median);
}

std::string NameOf(const StepCase& step) {
  return absl::StrCat("batch ", step.batch, ", ", PrecisionName(step.precision), ", wire ",
                      Name(step.wire), ", depth ", step.depth);
}

GoalOutcome AtLeast(const std::string& goal, double wanted, double found) {
  return {goal, absl::StrFormat(">= %.2f", wanted), found, found >= wanted};
}
GoalOutcome AtMost(const std::string& goal, double wanted, double found) {
  return {goal, absl::StrFormat("<= %.2f", wanted), found, found <= wanted};
}

Table LimitTableOf(const GpuResults& results) {
  Table table{absl::StrCat("Limits of ", results.gpu.name, ": median (min-max)",
                           "; copies within the GPU count bytes read and written"),
              {"limit", "unit", "found"},
              {}};
  if (!results.limits.has_value()) return table;
  const GpuLimits& limits = *results.limits;
  for (const auto& [name, spread] :
       {std::pair("copy within the GPU, own kernel", limits.copy_by_kernel),
        std::pair("copy within the GPU, cudaMemcpyAsync", limits.copy_by_memcpy),
        std::pair("host to device, page-locked", limits.host_to_device),
        std::pair("device to host, page-locked", limits.device_to_host),
        std::pair("both at a time, each", limits.both_directions)}) {
    table.rows.push_back({name, "GB/s", WithSpread(spread, kGiga)});
  }
  for (const GpuLimits::LargeProduct& product : limits.products) {
    table.rows.push_back({absl::StrCat("product of ", limits.square, " x ", limits.square,
                                       ", cuBLASLt, ", PrecisionName(product.precision)),
                          "TFLOP/s", WithSpread(product.rate, kTera)});
  }
  return table;
}

Table ProductTable(const GpuResults& results) {
  Table table{"Matrix products of a step in TFLOP/s: median (min-max)",
              {"product (m x n x k)", "precision", "device", "plain cuBLASLt", "of plain"},
              {}};
  for (const ProductResult& product : results.products) {
    table.rows.push_back(
        {product.name, std::string(PrecisionName(product.precision)),
         WithSpread(product.device, kTera), WithSpread(product.plain, kTera),
         absl::StrFormat("%.2f", Ratio(product.device.median, product.plain.median))});
  }
  return table;
}

double CopyRate(const GpuResults& results) {
  return results.limits.has_value() ? results.limits->copy_by_kernel.median : 0;
}

Table KernelTable(const GpuResults& results) {
  Table table{"Own kernels in GB/s of the bytes that must be moved: median (min-max)",
              {"kernel", "bytes counted", "MB", "found", "of copy"},
              {}};
  for (const KernelResult& kernel : results.kernels) {
    const double copy = CopyRate(results);
    table.rows.push_back(
        {kernel.name, kernel.counted, absl::StrFormat("%.1f", kernel.bytes / 1e6),
         WithSpread(kernel.bytes_per_second, kGiga),
         copy > 0 ? absl::StrFormat("%.2f", kernel.bytes_per_second.median / copy) : "-"});
  }
  return table;
}

std::string Milliseconds(double value) { return absl::StrFormat("%.2f", value); }

Table StepTable(const GpuResults& results) {
  Table table{"Whole steps in ms: median (min-max); alone: without the other",
              {"step", "step", "compute alone", "transfer alone", "of the longer",
               "transfer hidden %", "GPU idle %"},
              {}};
  for (const StepMeasurement& step : results.steps) {
    table.rows.push_back({NameOf(step.step_case), WithSpread(step.step, 1),
                          WithSpread(step.compute, 1), WithSpread(step.transfer, 1),
                          absl::StrFormat("%.2f", Ratio(step.step.median, LongerOf(step))),
                          absl::StrFormat("%.0f", 100 * step.Hidden()),
                          absl::StrFormat("%.0f", 100 * step.Idle())});
  }
  return table;
}

Table BreakdownTable(const GpuResults& results) {
  Table table{"Within a whole step, ms, medians; the parts overlap",
              {"step", "wait for parameters", "host to device", "forward", "backward",
               "device to host", "push"},
              {}};
  for (const StepMeasurement& step : results.steps) {
    table.rows.push_back({NameOf(step.step_case), Milliseconds(step.wait_for_parameters),
                          Milliseconds(step.host_to_device), Milliseconds(step.forward),
                          Milliseconds(step.backward), Milliseconds(step.device_to_host),
                          Milliseconds(step.push)});
  }
  return table;
}

nlohmann::json JsonOf(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

nlohmann::json JsonOf(const GpuLimits& limits) {
  nlohmann::json json = {{"copy_kernel_bytes_per_s", JsonOf(limits.copy_by_kernel)},
                         {"copy_memcpy_bytes_per_s", JsonOf(limits.copy_by_memcpy)},
                         {"host_to_device_bytes_per_s", JsonOf(limits.host_to_device)},
                         {"device_to_host_bytes_per_s", JsonOf(limits.device_to_host)},
                         {"both_directions_bytes_per_s", JsonOf(limits.both_directions)},
                         {"square", limits.square}};
  for (const GpuLimits::LargeProduct& product : limits.products) {
    json["product_flops_per_s"][std::string(PrecisionName(product.precision))] =
        JsonOf(product.rate);
  }
  return json;
}

nlohmann::json JsonOf(const StepMeasurement& step) {
  return {{"name", step.step_case.name},
          {"batch", step.step_case.batch},
          {"precision", std::string(PrecisionName(step.step_case.precision))},
          {"wire", Name(step.step_case.wire)},
          {"depth", step.step_case.depth},
          {"servers", step.step_case.servers},
          {"step_ms", JsonOf(step.step)},
          {"compute_ms", JsonOf(step.compute)},
          {"transfer_ms", JsonOf(step.transfer)},
          {"wait_for_parameters_ms", step.wait_for_parameters},
          {"host_to_device_ms", step.host_to_device},
          {"forward_ms", step.forward},
          {"backward_ms", step.backward},
          {"device_to_host_ms", step.device_to_host},
          {"push_ms", step.push},
          {"busy_ms", step.busy},
          {"hidden", step.Hidden()},
          {"idle", step.Idle()}};
}

}  // namespace

std::vector<GoalOutcome> CheckGpuGoals(const GpuResults& results) {
  std::vector<GoalOutcome> outcomes;
  if (results.smoke) return outcomes;
  for (const ProductResult& product : results.products) {
    outcomes.push_back(AtLeast(
        absl::StrCat(product.name, ", ", PrecisionName(product.precision), " / plain cuBLASLt"),
        kProductGoal, Ratio(product.device.median, product.plain.median)));
  }
  for (const KernelResult& kernel : results.kernels) {
    if (CopyRate(results) <= 0 || kernel.bytes < kLeastKernelBytes) continue;
    outcomes.push_back(AtLeast(absl::StrCat(kernel.name, " / copy"), kKernelGoal,
                               kernel.bytes_per_second.median / CopyRate(results)));
  }
  for (const StepMeasurement& step : results.steps) {
    const std::string name = NameOf(step.step_case);
    if (step.step_case.batch == kStepGoalBatch && step.step_case.depth == 2) {
      outcomes.push_back(AtMost(absl::StrCat(name, ": step / longer of compute and transfer"),
                                kStepGoal, Ratio(step.step.median, LongerOf(step))));
    }
    if (step.compute.median > step.transfer.median) {
      outcomes.push_back(AtMost(absl::StrCat(name, ": GPU idle"), kIdleGoal, step.Idle()));
    }
  }
  return outcomes;
}

std::string GpuTables(const GpuResults& results, TableStyle style) {
  std::string text;
  for (const Table& table :
       {GoalTable(CheckGpuGoals(results)), LimitTableOf(results), ProductTable(results),
        KernelTable(results), StepTable(results), BreakdownTable(results)}) {
    text += Render(table, style);
  }
  return text;
}

nlohmann::json GpuJson(const GpuResults& results) {
  nlohmann::json json = {{"gpu", results.gpu.name},
                         {"smoke", results.smoke},
                         {"compute_capability", results.gpu.compute_capability},
                         {"driver", results.gpu.driver_version}};
  if (results.limits.has_value()) json["limits"] = JsonOf(*results.limits);
  for (const ProductResult& product : results.products) {
    json["products"].push_back({{"name", product.name},
                                {"precision", std::string(PrecisionName(product.precision))},
                                {"device_flops_per_s", JsonOf(product.device)},
                                {"plain_flops_per_s", JsonOf(product.plain)}});
  }
  for (const KernelResult& kernel : results.kernels) {
    json["kernels"].push_back({{"name", kernel.name},
                               {"counted", kernel.counted},
                               {"bytes", kernel.bytes},
                               {"bytes_per_s", JsonOf(kernel.bytes_per_second)}});
  }
  for (const StepMeasurement& step : results.steps) json["steps"].push_back(JsonOf(step));
  for (const GoalOutcome& outcome : CheckGpuGoals(results)) {
    json["goals"].push_back({{"goal", outcome.goal},
                             {"wanted", outcome.wanted},
                             {"found", outcome.found},
                             {"met", outcome.met}});
  }
  return json;
}

}  // namespace keelson::bench
