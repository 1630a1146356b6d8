#include "bench/rows/row_scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/name_pattern.h"

namespace keelson::bench {

std::string Name(IdLaw law) {
  if (law == IdLaw::kZipf) return "zipf";
  return law == IdLaw::kUniform ? "uniform" : "hot";
}

IdLaw IdLawFromName(const std::string& name) {
  if (name == "zipf") return IdLaw::kZipf;
  return name == "uniform" ? IdLaw::kUniform : IdLaw::kHot;
}

std::string Name(RowSystem system) { return system == RowSystem::kKeelson ? "keelson" : "redis"; }

RowSystem RowSystemFromName(const std::string& name) {
  return name == "keelson" ? RowSystem::kKeelson : RowSystem::kRedis;
}

std::string RowScenario::Text() const {
  std::string text = absl::StrCat(name, " ", Name(law), " dim ", dim);
  if (workers > 1) absl::StrAppend(&text, ", ", workers, " workers");
  return text;
}

std::vector<int64_t> BenchDims(int64_t dim) {
  if (dim == kBenchDim) return {kBenchDim, 2 * kBenchDim};
  return {dim};
}

std::vector<RowScenario> RowScenarios(int64_t bench_dim) {
  constexpr int kManyWorkers = 4;
  std::vector<RowScenario> scenarios;
  for (const int64_t dim : BenchDims(bench_dim)) {
    for (const IdLaw law : {IdLaw::kZipf, IdLaw::kUniform}) {
      scenarios.push_back({"rows-pull", Direction::kPull, law, dim});
      scenarios.push_back({"rows-push", Direction::kPush, law, dim});
      scenarios.push_back({"rows-fused", Direction::kPushPull, law, dim});
    }
    if (dim != bench_dim) continue;
    for (const IdLaw law : {IdLaw::kUniform, IdLaw::kHot}) {
      scenarios.push_back({"rows-hot", Direction::kPushPull, law, dim, kManyWorkers});
    }
  }
  return scenarios;
}

bool IsSelected(absl::string_view name, absl::string_view names) {
  if (names.empty()) return true;
  const std::vector<std::string> patterns = absl::StrSplit(names, ',');
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return MatchesPattern(pattern, std::string(name));
  });
}

}  // namespace keelson::bench
