// search: plays schedules of the roles' code, one seed after the other, until the time is up. A
// seed that breaks a rule is shown; the first one of each rule is played again, to see that it
// repeats exactly, and then with fewer faults. The last line says how many schedules were played
// and how many broke a rule. Violations that begin like a line of --open are counted apart, and are
// no failure.
#include <poll.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "core/base/available_cores.h"
#include "core/base/clock.h"
#include "tests/search/play_apart.h"
#include "tests/search/profiles.h"
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

void Show(uint64_t seed, const Verdict& verdict) {
  std::printf("VIOLATION %s\n  search --replay %lu\n", verdict.violation.c_str(),
              static_cast<unsigned long>(seed));
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

// What a search has seen.
struct Tally {
  std::map<std::string, int64_t> violations;  // by rule
  int64_t schedules = 0;
  int64_t collective = 0;
  int64_t registering = 0;
  int64_t hybrid = 0;
  int64_t choices = 0;
  absl::Duration virtual_time;
  int64_t broken = 0;
  int64_t known = 0;
};

void Add(uint64_t seed, const Verdict& verdict, const std::vector<std::string>& open,
         absl::Duration after, Tally* tally) {
  ++tally->schedules;
  const Scenario scenario = MakeScenario(seed, 0);
  if (scenario.collective) ++tally->collective;
  if (scenario.registers) ++tally->registering;
  if (scenario.hybrid) ++tally->hybrid;
  tally->choices += verdict.choices;
  tally->virtual_time += verdict.time;
  if (verdict.violation.empty()) return;
  if (IsOpen(verdict, open)) {
    ++tally->known;
    return;
  }
  ++tally->broken;
  // One example of each rule is shrunk.
  if (++tally->violations[RuleOf(verdict)] == 1) {
    Report(seed, verdict, after);
  } else {
    Show(seed, verdict);
  }
}

void Print(const Tally& tally, absl::Duration duration) {
  for (const auto& [rule, count] : tally.violations) {
    std::printf("%s: %ld schedules\n", rule.c_str(), static_cast<long>(count));
  }
  const double seconds = absl::ToDoubleSeconds(duration);
  std::printf("%.1f schedules and %.0f choices per second, %s of virtual time\n",
              static_cast<double>(tally.schedules) / seconds,
              static_cast<double>(tally.choices) / seconds,
              absl::FormatDuration(absl::Trunc(tally.virtual_time, absl::Seconds(1))).c_str());
  std::printf(
      "%ld schedules were of collective clusters, of which %ld register, %ld of hybrid ones\n",
      static_cast<long>(tally.collective), static_cast<long>(tally.registering),
      static_cast<long>(tally.hybrid));
  std::printf("schedules: %ld, violations: %ld, open ones: %ld\n",
              static_cast<long>(tally.schedules), static_cast<long>(tally.broken),
              static_cast<long>(tally.known));
}

using Plays = std::map<uint64_t, std::unique_ptr<ApartPlay>>;  // by seed

// The play that ends next.
Plays::iterator AwaitOne(Plays* plays) {
  std::vector<pollfd> polls;
  for (const auto& [seed, play] : *plays) polls.push_back({play->fd(), POLLIN, 0});
  poll(polls.data(), polls.size(), -1);
  auto play = plays->begin();
  for (const pollfd& each : polls) {
    if (each.revents != 0) return play;
    ++play;
  }
  return plays->begin();
}

// What is searched.
struct Extent {
  absl::Duration duration;
  uint64_t first_seed = 1;
  uint64_t most_schedules = 0;          // within the duration
  std::optional<FaultProfile> profile;  // of the seeds that are played; nothing: any
  size_t jobs = 1;
};

int Search(const Extent& extent, const std::vector<std::string>& open) {
  const absl::Duration start = Clock::Real()->Monotonic();
  const auto passed = [start] { return Clock::Real()->Monotonic() - start; };
  Tally tally;
  Plays plays;
  uint64_t started = 0;
  uint64_t next = extent.first_seed;
  while (true) {
    while (plays.size() < extent.jobs && started < extent.most_schedules &&
           passed() < extent.duration) {
      while (extent.profile.has_value() && DrawProfile(next) != *extent.profile) ++next;
      const uint64_t seed = next++;
      ++started;
      plays[seed] = std::make_unique<ApartPlay>(MakeScenario(seed, kAllFaults), false);
    }
    if (plays.empty()) break;
    const auto ended = AwaitOne(&plays);
    const Verdict verdict = ended->second->Wait();
    const uint64_t played = ended->first;
    plays.erase(ended);
    Add(played, verdict, open, passed(), &tally);
  }
  Print(tally, passed());
  return tally.broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  CLI::App app(
      "Searches schedules of chief, servers, workers and evaluators for one that breaks a rule.");
  double seconds = 60;
  keelson::Extent extent;
  extent.most_schedules = std::numeric_limits<uint64_t>::max();
  extent.jobs = static_cast<size_t>(keelson::AvailableCores());
  std::string open;
  std::string profile;
  std::optional<uint64_t> replay;
  uint64_t faults = keelson::kAllFaults;
  app.add_option("seconds", seconds, "How long to search")->capture_default_str();
  app.add_option("seed", extent.first_seed, "The first seed")->capture_default_str();
  app.add_option("--schedules", extent.most_schedules,
                 "How many schedules are played at most, of the seeds from the first one")
      ->check(CLI::PositiveNumber);
  app.add_option("--jobs", extent.jobs, "How many schedules are played at a time")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--profile", profile, "Plays the seeds of this profile alone (profiles.h)");
  app.add_option("--open", open,
                 "A file with the beginnings of violations that are not mended yet");
  app.add_option("--replay", replay, "Plays this seed alone, with the roles' logs");
  app.add_option("--faults", faults, "A bit for each of its faults that take place");
  CLI11_PARSE(app, argc, argv);
  if (replay.has_value()) return keelson::Replay(*replay, faults);
  if (!profile.empty()) {
    extent.profile = keelson::ParseFaultProfile(profile);
    if (!extent.profile.has_value()) {
      std::fprintf(stderr, "--profile: expected one of profiles.h, found \"%s\"\n",
                   profile.c_str());
      return 2;
    }
  }
  extent.duration = absl::Seconds(seconds);
  return keelson::Search(extent, keelson::ReadOpen(open));
}
