// pair_bounds: the best retrieval that a model can have on data.generated_pairs, which follows from
// the probabilities of all pairs.
#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "bench/one_table.h"
#include "core/base/status_macros.h"
#include "core/data/generated_pairs.h"

namespace keelson::bench {
namespace {

absl::Status Run(const PairDistribution& distribution, const std::vector<int64_t>& ks,
                 const OneTableOptions& options) {
  const PairTruth truth(distribution);
  Table table = {absl::StrFormat("%d users, %d items, %d numbers, scale %.2f, exponent %.2f",
                                 distribution.users, distribution.items, distribution.numbers,
                                 distribution.scale, distribution.exponent),
                 {"k", "recall", "NDCG"},
                 {}};
  nlohmann::json json = nlohmann::json::array();
  for (const int64_t k : ks) {
    const BestRetrieval best = truth.BestAt(k);
    table.rows.push_back({absl::StrFormat("%d", k), absl::StrFormat("%.4f", best.recall),
                          absl::StrFormat("%.4f", best.ndcg)});
    json.push_back({{"k", k}, {"recall", best.recall}, {"ndcg", best.ndcg}});
  }
  Print(options, table, json);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  CLI::App app("The best retrieval that a model can have on generated pairs.", "pair_bounds");
  int64_t users = 0, items = 0, numbers = 0;
  double scale = 1, exponent = 0.5;
  std::vector<int64_t> ks = {10};
  app.add_option("--users", users, "How many choose (default: 1000)");
  app.add_option("--items", items, "How many they choose from (default: 500)");
  app.add_option("--numbers", numbers, "Of a vector (default: 8)");
  app.add_option("--scale", scale, "Of the vectors' products")->capture_default_str();
  app.add_option("--exponent", exponent, "Of the items' popularity")->capture_default_str();
  app.add_option("--k", ks, "How many items are found")
      ->delimiter(',')
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  OneTableOptions options;
  app.add_flag("--json", options.json, "Print JSON to standard output");
  app.add_flag("--markdown", options.markdown, "Print a Markdown table");
  return RunProgram(&app, argc, argv, [&] {
    v1::DataConfig::GeneratedPairs config;
    config.set_users(users);
    config.set_items(items);
    config.set_numbers(numbers);
    config.set_scale(scale);
    config.set_exponent(exponent);
    ASSIGN_OR_RETURN(const PairDistribution distribution, PairDistributionOf(config));
    return Run(distribution, ks, options);
  });
}

}  // namespace
}  // namespace keelson::bench

int main(int argc, char** argv) { return keelson::bench::Main(argc, argv); }
