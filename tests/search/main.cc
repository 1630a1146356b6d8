// search: plays schedules of the roles' code, one seed after the other, until the time is up. A
// seed that breaks a rule is played again, to see that it repeats exactly, and then with fewer
// faults. The last line says how many schedules were played and how many broke a rule. Violations
// that begin like a line of --open are counted apart, and are no failure.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "tests/search/play_apart.h"
#include "tests/search/scenario.h"
#include "tests/search/world.h"

namespace keelson {
namespace {

constexpr uint64_t kAllFaults = ~uint64_t{0};

// "counts" of "counts: record 3 ..."
std::string RuleOf(const Verdict& verdict) {
  return verdict.violation.substr(0, verdict.violation.find(':'));
}

// The faults without those that the violation does not need.
uint64_t Shrink(uint64_t seed, uint64_t faults, const std::string& rule) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (uint64_t bit = 1; bit != 0 && bit <= 1 << 6; bit <<= 1) {
      if ((faults & bit) == 0) continue;
      if (RuleOf(PlayApart(MakeScenario(seed, faults & ~bit), false)) != rule) continue;
      faults &= ~bit;
      shrunk = true;
    }
  }
  return faults;
}

// The lines of a file, without comments.
std::vector<std::string> ReadOpen(const std::string& path) {
  std::vector<std::string> open;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') open.push_back(line);
  }
  return open;
}

bool IsOpen(const Verdict& verdict, const std::vector<std::string>& open) {
  return std::any_of(open.begin(), open.end(), [&](const std::string& beginning) {
    return verdict.violation.compare(0, beginning.size(), beginning) == 0;
  });
}

void Report(uint64_t seed, const Verdict& verdict, absl::Duration after) {
  const Verdict again = PlayApart(MakeScenario(seed, kAllFaults), false);
  const bool same = again.trace == verdict.trace && again.violation == verdict.violation;
  const uint64_t faults = Shrink(seed, 0x7f, RuleOf(verdict));
  const Scenario shrunk = MakeScenario(seed, faults);
  std::printf(
      "VIOLATION %s\n  after %s; %s, trace %016lx; with the fewest faults: search --replay %lu "
      "--faults %lu\n  %s\n",
      verdict.violation.c_str(), absl::FormatDuration(absl::Trunc(after, absl::Seconds(1))).c_str(),
      same ? "it repeats exactly" : "IT DOES NOT REPEAT", static_cast<unsigned long>(verdict.trace),
      static_cast<unsigned long>(seed), static_cast<unsigned long>(faults),
      shrunk.ToString().c_str());
  std::fflush(stdout);
}

int Replay(uint64_t seed, uint64_t faults) {
  const Scenario scenario = MakeScenario(seed, faults);
  std::printf("%s", scenario.ToString().c_str());
  std::fflush(stdout);
  const Verdict verdict = PlayApart(scenario, true);
  std::printf("trace %016lx, %ld choices, %s of virtual time: %s\n",
              static_cast<unsigned long>(verdict.trace), static_cast<long>(verdict.choices),
              absl::FormatDuration(verdict.time).c_str(),
              verdict.violation.empty() ? "no violation" : verdict.violation.c_str());
  return verdict.violation.empty() ? 0 : 1;
}

int Search(absl::Duration duration, uint64_t seed, const std::vector<std::string>& open) {
  const absl::Duration start = Clock::Real()->Monotonic();
  std::map<std::string, int64_t> violations;
  int64_t schedules = 0;
  int64_t choices = 0;
  absl::Duration virtual_time;
  int64_t broken = 0;
  int64_t known = 0;
  for (; Clock::Real()->Monotonic() - start < duration; ++seed) {
    const Verdict verdict = PlayApart(MakeScenario(seed, kAllFaults), false);
    ++schedules;
    choices += verdict.choices;
    virtual_time += verdict.time;
    if (verdict.violation.empty()) continue;
    if (IsOpen(verdict, open)) {
      ++known;
      continue;
    }
    ++broken;
    // One example of each rule is shrunk.
    if (++violations[RuleOf(verdict)] == 1)
      Report(seed, verdict, Clock::Real()->Monotonic() - start);
  }
  for (const auto& [rule, count] : violations) {
    std::printf("%s: %ld schedules\n", rule.c_str(), static_cast<long>(count));
  }
  const double seconds = absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
  std::printf("%.1f schedules and %.0f choices per second, %s of virtual time\n",
              static_cast<double>(schedules) / seconds, static_cast<double>(choices) / seconds,
              absl::FormatDuration(absl::Trunc(virtual_time, absl::Seconds(1))).c_str());
  std::printf("schedules: %ld, violations: %ld, open ones: %ld\n", static_cast<long>(schedules),
              static_cast<long>(broken), static_cast<long>(known));
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  CLI::App app("Searches schedules of chief, servers and workers for one that breaks a rule.");
  double seconds = 60;
  uint64_t seed = 1;
  std::string open;
  std::optional<uint64_t> replay;
  uint64_t faults = keelson::kAllFaults;
  app.add_option("seconds", seconds, "How long to search")->capture_default_str();
  app.add_option("seed", seed, "The first seed")->capture_default_str();
  app.add_option("--open", open,
                 "A file with the beginnings of violations that are not mended yet");
  app.add_option("--replay", replay, "Plays this seed alone, with the roles' logs");
  app.add_option("--faults", faults, "A bit for each of its faults that take place");
  CLI11_PARSE(app, argc, argv);
  if (replay.has_value()) return keelson::Replay(*replay, faults);
  return keelson::Search(absl::Seconds(seconds), seed, keelson::ReadOpen(open));
}
