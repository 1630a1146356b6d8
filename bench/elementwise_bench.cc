// elementwise_bench: the bandwidth of the CPU device's elementwise operations beside that of
// memcpy, on one thread; docs/performance.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/one_table.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "core/base/status_macros.h"
#include "core/device/cpu/cpu_device.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

// The goal is this part of memcpy's bandwidth in the same run; bytes that are read and bytes that
// are written count alike.
constexpr double kGoal = 0.7;
// What a repetition moves at least, so that the clock's steps do not count.
constexpr int64_t kLeastBytes = 64 << 20;

struct Options {
  std::vector<int64_t> elements = {int64_t{1} << 14, int64_t{1} << 18, int64_t{1} << 24};
  OneTableOptions print = {.repeat = 15};
};

struct Operation {
  std::string name;
  int64_t arrays;  // that are read or written
  std::function<void()> run;
};

struct Measured {
  std::string name;
  int64_t elements;
  Spread bandwidth;  // GB/s
  Spread ratio;      // to memcpy in the same repetition

  bool met() const { return ratio.median >= kGoal; }
};

// Bytes in a second, in 10^9.
double BandwidthOf(const Operation& operation, int64_t elements) {
  const int64_t bytes = operation.arrays * elements * static_cast<int64_t>(sizeof(float));
  const int64_t calls = std::max<int64_t>(1, kLeastBytes / bytes);
  const absl::Time begin = absl::Now();
  for (int64_t i = 0; i < calls; ++i) operation.run();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  return static_cast<double>(bytes * calls) / seconds / 1e9;
}

// Repetitions of memcpy and of all operations take turns, so that what else the machine does at a
// time falls upon them alike.
std::vector<Measured> MeasureInTurns(const std::vector<Operation>& operations, int64_t elements,
                                     int repeat) {
  std::vector<std::vector<double>> bandwidths(operations.size()), ratios(operations.size());
  for (const Operation& operation : operations) operation.run();
  for (int i = 0; i < repeat; ++i) {
    for (size_t k = 0; k < operations.size(); ++k) {
      bandwidths[k].push_back(BandwidthOf(operations[k], elements));
      ratios[k].push_back(bandwidths[k].back() / bandwidths[0].back());
    }
  }
  std::vector<Measured> all;
  for (size_t k = 0; k < operations.size(); ++k) {
    all.push_back(
        {operations[k].name, elements, SpreadOf(bandwidths[k]), SpreadOf(std::move(ratios[k]))});
  }
  return all;
}

absl::StatusOr<std::vector<Measured>> Measure(int64_t elements, int repeat, Device* device) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> a, device->Allocate(elements));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> b, device->Allocate(elements));
  ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> y, device->Allocate(elements));
  device->Fill(1, elements, a.get());
  device->Fill(-1, elements, b.get());
  const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
  // The first is what the others are compared with.
  const std::vector<Operation> operations = {
      {"memcpy", 2, [&] { std::memcpy(y->data(), a->data(), bytes); }},
      {"Add", 3, [&] { device->Add(elements, *a, *b, y.get()); }},
      {"Multiply", 3, [&] { device->Multiply(elements, *a, *b, y.get()); }},
      {"ReLU", 2, [&] { device->Activate(ActivationKind::kRelu, elements, *a, y.get()); }},
      {"Scale", 2, [&] { device->Scale(1, elements, y.get()); }},
  };
  std::vector<Measured> all = MeasureInTurns(operations, elements, repeat);
  RETURN_IF_ERROR(device->Synchronize());
  return all;
}

std::string Text(const Spread& spread) {
  return absl::StrFormat("%.2f (%.2f-%.2f)", spread.median, spread.min, spread.max);
}

Table ToTable(const std::vector<Measured>& all) {
  Table table;
  table.title = "Bandwidth on one thread: median (least-most)";
  table.columns = {"operation", "elements", "GB/s", "/ memcpy", "goal"};
  for (const Measured& measured : all) {
    table.rows.push_back({measured.name, absl::StrCat(measured.elements), Text(measured.bandwidth),
                          Text(measured.ratio), measured.met() ? "met" : "missed"});
  }
  return table;
}

nlohmann::json ToJson(const Options& options, const std::vector<Measured>& all) {
  nlohmann::json operations = nlohmann::json::array();
  for (const Measured& measured : all) {
    operations.push_back({{"name", measured.name},
                          {"elements", measured.elements},
                          {"gigabytes_per_second", SpreadAsJson(measured.bandwidth)},
                          {"of_memcpy", SpreadAsJson(measured.ratio)},
                          {"met", measured.met()}});
  }
  return {{"goal", kGoal}, {"repeat", options.print.repeat}, {"operations", operations}};
}

absl::Status Run(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateCpuDevice(/*threads=*/1));
  std::vector<Measured> all;
  for (const int64_t elements : options.elements) {
    ASSIGN_OR_RETURN(std::vector<Measured> found,
                     Measure(elements, options.print.repeat, device.get()));
    for (Measured& measured : found) all.push_back(std::move(measured));
  }
  Print(options.print, ToTable(all), ToJson(options, all));
  const auto missed = std::count_if(all.begin(), all.end(), [](const auto& m) { return !m.met(); });
  if (missed == 0) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat(missed, " of ", all.size(), " operations are slower than ", kGoal, " memcpy"));
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the CPU device's elementwise operations beside memcpy, on one thread.");
  app.add_option("--elements", options.elements, "of each array, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  AddOneTableFlags(&app, &options.print);
  return RunProgram(&app, argc, argv, [&] { return Run(options); });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
