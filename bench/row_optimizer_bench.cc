// row_optimizer_bench: how many rows of an embedding table the optimizers update in a second, on
// one thread; docs/performance.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "bench/one_table.h"
#include "bench/statistics.h"
#include "bench/table.h"
#include "core/base/status_macros.h"
#include "core/optim/row_optimizer.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {
namespace {

// Rows of one partition in a push.
constexpr size_t kBatch = 400;
// What a repetition updates at least, so that the clock's steps do not count.
constexpr size_t kLeastUpdates = 2'000'000;
constexpr size_t kHeaderFloats = 4;  // before each row, as in a table

struct Options {
  std::vector<size_t> dims = {16, 32};
  std::vector<size_t> rows = {1000, 1'000'000};
  OneTableOptions print = {.repeat = 5};
};

struct Rule {
  std::string name;
  std::string field;  // of OptimizerConfig
  bool exact = false;
};

std::vector<Rule> Rules() {
  return {{"SGD", "sgd"},         {"momentum", "momentum"},
          {"Adagrad", "adagrad"}, {"row-wise Adagrad", "row_wise_adagrad"},
          {"Adam", "adam"},       {"Adam, exact", "adam", true},
          {"FTRL", "ftrl"}};
}

v1::OptimizerConfig ConfigOf(const Rule& rule) {
  v1::OptimizerConfig config;
  const auto* const field = config.GetDescriptor()->FindFieldByName(rule.field);
  config.GetReflection()->MutableMessage(&config, field);
  if (rule.exact) config.mutable_adam()->set_exact(true);
  return config;
}

struct Measured {
  std::string rule;
  size_t dim;
  size_t rows;
  Spread updates;  // 10^6 rows in a second
};

// Rows behind each other, that are updated in an order of chance, `kBatch` at a time.
class RowsInMemory {
 public:
  RowsInMemory(const RowOptimizer& optimizer, size_t rows)
      : optimizer_(optimizer),
        stride_((kHeaderFloats + optimizer.row_floats() + 3) / 4 * 4),
        memory_(rows * stride_),
        gradients_(kBatch * optimizer.dim()),
        updates_(kBatch),
        missed_(kBatch) {
    std::mt19937_64 random(1);
    std::vector<size_t> order(rows);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) pointers_.push_back(&memory_[i * stride_ + kHeaderFloats]);
    for (float* row : pointers_) {
      float* at = row + optimizer.dim();
      for (const RowSlotSpec& slot : optimizer.slots()) {
        at = std::fill_n(at, slot.floats, slot.initial_value);
      }
    }
    std::normal_distribution<float> normal(0, 1);
    for (float& g : gradients_) g = normal(random);
    for (size_t i = 0; i < kBatch; ++i) {
      updates_[i] = static_cast<uint16_t>(random());
      missed_[i] = static_cast<uint32_t>(random() % 1000);
    }
  }

  // Updates all rows once.
  void UpdateAll(int64_t step) const {
    const RowGradients gradients = {WireFormat::kFloat32,
                                    reinterpret_cast<const uint8_t*>(gradients_.data()),
                                    optimizer_.dim() * sizeof(float)};
    for (size_t begin = 0; begin < pointers_.size(); begin += kBatch) {
      const size_t count = std::min(kBatch, pointers_.size() - begin);
      optimizer_.Update({absl::MakeConstSpan(pointers_).subspan(begin, count), gradients,
                         absl::MakeConstSpan(updates_).first(count),
                         absl::MakeConstSpan(missed_).first(count), step, 0.01f, 0.01f});
    }
  }

 private:
  const RowOptimizer& optimizer_;
  const size_t stride_;
  std::vector<float> memory_;
  std::vector<float> gradients_;
  std::vector<uint16_t> updates_;
  std::vector<uint32_t> missed_;
  std::vector<float*> pointers_;
};

absl::StatusOr<Measured> Measure(const Rule& rule, size_t dim, size_t rows, int repeat) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RowOptimizer> optimizer,
                   CreateRowOptimizer(ConfigOf(rule), {}, dim));
  const RowsInMemory table(*optimizer, rows);
  const size_t rounds = std::max<size_t>(1, kLeastUpdates / rows);
  std::vector<double> rates;
  int64_t step = 100'000;
  table.UpdateAll(step);
  for (int i = 0; i < repeat; ++i) {
    const absl::Time begin = absl::Now();
    for (size_t k = 0; k < rounds; ++k) table.UpdateAll(++step);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    rates.push_back(static_cast<double>(rounds * rows) / seconds / 1e6);
  }
  return Measured{rule.name, dim, rows, SpreadOf(std::move(rates))};
}

absl::StatusOr<std::vector<Measured>> MeasureAll(const Options& options) {
  std::vector<Measured> all;
  for (const size_t dim : options.dims) {
    for (const size_t rows : options.rows) {
      for (const Rule& rule : Rules()) {
        ASSIGN_OR_RETURN(all.emplace_back(), Measure(rule, dim, rows, options.print.repeat));
      }
    }
  }
  return all;
}

Table ToTable(const std::vector<Measured>& all) {
  Table table;
  table.title = "Rows that one thread updates in a second: median (least-most)";
  table.columns = {"rule", "dim", "rows", "10^6 rows/s"};
  for (const Measured& measured : all) {
    const Spread& updates = measured.updates;
    table.rows.push_back(
        {measured.rule, absl::StrCat(measured.dim), absl::StrCat(measured.rows),
         absl::StrFormat("%.1f (%.1f-%.1f)", updates.median, updates.min, updates.max)});
  }
  return table;
}

nlohmann::json ToJson(const Options& options, const std::vector<Measured>& all) {
  nlohmann::json rules = nlohmann::json::array();
  for (const Measured& measured : all) {
    const Spread& updates = measured.updates;
    rules.push_back({{"rule", measured.rule},
                     {"dim", measured.dim},
                     {"rows", measured.rows},
                     {"million_rows_per_second", SpreadAsJson(updates)}});
  }
  return {{"repeat", options.print.repeat}, {"rules", rules}};
}

absl::Status Run(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<Measured> all, MeasureAll(options));
  Print(options.print, ToTable(all), ToJson(options, all));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures the optimizers of tables' rows, on one thread.");
  app.add_option("--dims", options.dims, "of a row, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--rows", options.rows, "in memory, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 100'000'000));
  AddOneTableFlags(&app, &options.print);
  return RunProgram(&app, argc, argv, [&] { return Run(options); });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
