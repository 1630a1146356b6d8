// ctr_bounds: the best scores that a model can have on data.generated_ctr. They need no labels: a
// record's probability is known, and the expected AUC of a score follows from the probabilities in
// the score's order.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "bench/one_table.h"
#include "core/base/status_macros.h"
#include "core/data/expected_auc.h"
#include "core/data/generated_ctr.h"
#include "core/data/record_random.h"

namespace keelson::bench {
namespace {

struct Sample {
  std::vector<std::pair<float, double>> best;        // logit, probability
  std::vector<std::pair<float, double>> of_weights;  // sum of weights, probability
  std::vector<std::pair<float, double>> additive;    // the best sum of a number for each value
};

Sample Draw(const CtrTruth& truth, int64_t records, uint64_t seed) {
  Sample sample;
  std::vector<uint32_t> record(truth.distribution().fields);
  for (int64_t i = 0; i < records; ++i) {
    RecordRandom random("generated ctr: bounds", seed, DataSplit::kEval, i);
    for (uint32_t& value : record) value = truth.ValueAt(random.Bits());
    const float logit = truth.LogitOf(record);
    const double p = 1 / (1 + std::exp(-static_cast<double>(logit)));
    sample.best.emplace_back(logit, p);
    sample.of_weights.emplace_back(truth.WeightsOf(record), p);
    sample.additive.emplace_back(truth.AdditiveOf(record), p);
  }
  return sample;
}

absl::Status Run(const CtrDistribution& distribution, int64_t records, uint64_t seed,
                 const OneTableOptions& options) {
  const Sample sample = Draw(CtrTruth(distribution), records, seed);
  double ones = 0, entropy = 0;
  for (const auto& [logit, p] : sample.best) {
    ones += p;
    entropy -= p * std::log(p) + (1 - p) * std::log1p(-p);
  }
  const auto n = static_cast<double>(records);
  const double share = ones / n, loss = entropy / n;
  const double of_share = -share * std::log(share) - (1 - share) * std::log1p(-share);
  const double best = ExpectedAuc(sample.best);
  const double additive = ExpectedAuc(sample.additive);
  const double of_weights = ExpectedAuc(sample.of_weights);
  const auto text = [](double number) { return absl::StrFormat("%.4f", number); };
  const Table table = {
      absl::StrFormat(
          "%d fields of %d values, exponent %.2f, weights %.2f, vectors %.2f, bias %.2f",
          distribution.fields, distribution.values, distribution.exponent,
          distribution.weight_stddev, distribution.vector_stddev, distribution.bias),
      {"records", "clicks", "best AUC", "without pairs", "weights alone", "log loss", "NE"},
      {{absl::StrFormat("%d", records), text(share), text(best), text(additive), text(of_weights),
        text(loss), text(loss / of_share)}}};
  Print(options, table,
        {{"records", records},
         {"clicks", share},
         {"auc", best},
         {"auc_without_pairs", additive},
         {"auc_of_weights", of_weights},
         {"loss", loss},
         {"normalized_entropy", loss / of_share}});
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("The best scores that a model can have on generated click logs.", "ctr_bounds");
  v1::DataConfig::GeneratedCtr config;
  int64_t fields = 0, values = 0, records = 1'000'000;
  double exponent = 1.05, weights = 0.6, vectors = 0.25, bias = -2;
  uint64_t seed = 1;
  app.add_option("--fields", fields, "Features of a record (default: 8)");
  app.add_option("--values", values, "Values of a feature (default: 20000)");
  app.add_option("--exponent", exponent, "Of the values' frequencies")->capture_default_str();
  app.add_option("--weight_stddev", weights, "Of the values' weights")->capture_default_str();
  app.add_option("--vector_stddev", vectors, "Of the vectors' numbers")->capture_default_str();
  app.add_option("--bias", bias, "The logit of a record without weights")->capture_default_str();
  app.add_option("--records", records, "How many are drawn")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1000}, int64_t{100'000'000}));
  app.add_option("--seed", seed, "Of the records")->capture_default_str();
  OneTableOptions options;
  app.add_flag("--json", options.json, "Print JSON to standard output");
  app.add_flag("--markdown", options.markdown, "Print a Markdown table");
  return RunProgram(&app, argc, argv, [&] {
    config.set_fields(fields);
    config.set_values(values);
    config.set_exponent(exponent);
    config.set_weight_stddev(weights);
    config.set_vector_stddev(vectors);
    config.set_bias(bias);
    ASSIGN_OR_RETURN(const CtrDistribution distribution, CtrDistributionOf(config));
    return Run(distribution, records, seed, options);
  });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
