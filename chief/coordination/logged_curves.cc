#include "chief/coordination/logged_curves.h"

#include <cmath>

namespace keelson {

void LoggedCurves::Add(const std::string& name, int64_t step, double value) {
  if (!std::isfinite(value)) return;
  auto of_name = sums_.find(name);
  if (of_name == sums_.end()) {
    if (sums_.size() >= kMaxNames) return;
    of_name = sums_.try_emplace(name).first;
  }
  auto sum = of_name->second.find(step);
  if (sum == of_name->second.end()) {
    if (kept_ >= kMaxKept) return;
    sum = of_name->second.try_emplace(step).first;
    ++kept_;
  }
  sum->second.values += value;
  ++sum->second.count;
}

std::map<std::string, double> LoggedCurves::TakeBelow(int64_t end) {
  std::map<std::string, double> means;
  for (auto& [name, by_step] : sums_) {
    const auto stop = by_step.lower_bound(end);
    Sum all;
    size_t steps = 0;
    for (auto it = by_step.begin(); it != stop; ++it, ++steps) {
      all.values += it->second.values;
      all.count += it->second.count;
    }
    if (steps == 0) continue;
    by_step.erase(by_step.begin(), stop);
    kept_ -= steps;
    means[name] = all.values / static_cast<double>(all.count);
  }
  for (const auto& [name, mean] : means) newest_[name] = mean;
  return means;
}

}  // namespace keelson
