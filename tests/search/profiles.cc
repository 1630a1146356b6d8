#include "tests/search/profiles.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/types/span.h"

namespace keelson {
namespace {

constexpr const char* kNames[] = {"any",    "points",   "commits", "cuts",   "members",  "chiefs",
                                  "drains", "restarts", "hosts",   "hybrid", "registers"};

using Kind = SimFault::Kind;
using When = SimPoint::When;

constexpr uint64_t kHostsDice = 0x27d4eb2f165667c5;
constexpr uint64_t kHybridProfileDice = 0x2127599bf4325c37;
constexpr uint64_t kRegistersProfileDice = 0x880355f21e6d1965;

// Who reaches a point.
enum class At { kChief, kServer, kWorker, kWriter };  // server: or host of a shard
struct Point {
  const char* what;
  When when;
  At at;
};

constexpr Point kCommitPoints[] = {
    {"CommitRound", When::kSend, At::kChief},      {"CommitRound", When::kAnswer, At::kChief},
    {"CommitRound", When::kExecute, At::kServer},  {"CommitRound", When::kExecuted, At::kServer},
    {"CommitRound", When::kExecuted, At::kServer}, {"PushPull", When::kExecuted, At::kServer},
    {"PushPull", When::kAnswer, At::kWorker},      {"AcquireWork", When::kExecuted, At::kChief},
};
constexpr Point kCutPoints[] = {
    {"PrepareCut", When::kSend, At::kChief},
    {"PrepareCut", When::kExecute, At::kServer},
    {"PrepareCut", When::kExecuted, At::kServer},
    {"PrepareCut", When::kAnswer, At::kChief},
    {"WriteSnapshot", When::kSend, At::kChief},
    {"WriteSnapshot", When::kExecute, At::kServer},
    {"WriteSnapshot", When::kExecuted, At::kServer},
    {"WriteSnapshot", When::kAnswer, At::kChief},
    {"rename", When::kBefore, At::kChief},
    {"rename", When::kAfter, At::kChief},
    {"replace", When::kBefore, At::kChief},
    {"replace", When::kAfter, At::kChief},
    {"sync directory", When::kBefore, At::kChief},
    {"sync directory", When::kAfter, At::kChief},
    {"remove", When::kAfter, At::kChief},
    {"sync", When::kAfter, At::kWriter},
    {"append", When::kAfter, At::kWriter},
    {"rename", When::kAfter, At::kWriter},
};
// From a worker's push to the commit of the step, with the replicas.
constexpr Point kStepPoints[] = {
    {"PushPull", When::kSend, At::kWorker},
    {"PushPull", When::kExecute, At::kServer},
    {"PushPull", When::kExecuted, At::kServer},
    {"PushPull", When::kAnswer, At::kWorker},
    {"PushPull", When::kAnswer, At::kWorker},
    {"ReplicateRound", When::kSend, At::kChief},
    {"ReplicateRound", When::kExecute, At::kServer},
    {"ReplicateRound", When::kExecuted, At::kServer},
    {"ReplicateRound", When::kAnswer, At::kChief},
    {"ReadRound", When::kSend, At::kServer},
    {"ReadRound", When::kExecute, At::kServer},
    {"ReadRound", When::kExecuted, At::kServer},
    {"ReadRound", When::kAnswer, At::kServer},
    {"CommitRound", When::kSend, At::kChief},
    {"CommitRound", When::kExecute, At::kServer},
    {"CommitRound", When::kExecuted, At::kServer},
    {"CommitRound", When::kExecuted, At::kServer},
    {"CommitRound", When::kAnswer, At::kChief},
    {"AcquireWork", When::kExecuted, At::kChief},
    {"AcquireWork", When::kAnswer, At::kWorker},
};
// A shard is adopted, copied, goes home, or is handed over.
constexpr Point kMovePoints[] = {
    {"GetStatus", When::kSend, At::kChief},
    {"GetStatus", When::kExecuted, At::kServer},
    {"GetStatus", When::kAnswer, At::kChief},
    {"ReplicateShard", When::kSend, At::kChief},
    {"ReplicateShard", When::kExecute, At::kServer},
    {"ReplicateShard", When::kExecuted, At::kServer},
    {"ReplicateShard", When::kAnswer, At::kChief},
    {"ReadShard", When::kSend, At::kServer},
    {"ReadShard", When::kExecute, At::kServer},
    {"ReadShard", When::kExecuted, At::kServer},
    {"ReadShard", When::kAnswer, At::kServer},
    {"Finish", When::kSend, At::kChief},
    {"Finish", When::kExecuted, At::kServer},
    {"Register", When::kExecuted, At::kChief},
    {"ChiefHeartbeat", When::kExecute, At::kServer},
    {"ChiefHeartbeat", When::kAnswer, At::kChief},
};
// A host says where it is.
constexpr Point kAnnouncePoints[] = {
    {"AnnounceHost", When::kSend, At::kWorker},   {"AnnounceHost", When::kSend, At::kWorker},
    {"AnnounceHost", When::kExecute, At::kChief}, {"AnnounceHost", When::kExecuted, At::kChief},
    {"AnnounceHost", When::kAnswer, At::kWorker},
};
constexpr Point kMemberPoints[] = {
    {"PushPull", When::kSend, At::kWorker},       {"PushPull", When::kExecute, At::kServer},
    {"PushPull", When::kAnswer, At::kWorker},     {"AcquireWork", When::kExecuted, At::kChief},
    {"AcquireWork", When::kAnswer, At::kWorker},  {"Heartbeat", When::kExecuted, At::kChief},
    {"Register", When::kExecuted, At::kChief},    {"Admit", When::kExecuted, At::kChief},
    {"ChiefHeartbeat", When::kSend, At::kChief},  {"ChiefHeartbeat", When::kExecuted, At::kServer},
    {"Initialize", When::kExecuted, At::kServer}, {"Initialize", When::kAnswer, At::kChief},
};

size_t Draw(size_t first, size_t count, Dice* dice) { return first + dice->Index(count); }

size_t AnyServer(const Scenario& scenario, Dice* dice) {
  return Draw(scenario.HomeOf(0), scenario.shards(), dice);
}

size_t AnyWorker(const Scenario& scenario, Dice* dice) {
  return Draw(scenario.collective ? 0 : 1 + scenario.servers, scenario.trainers(), dice);
}

size_t NodeAt(At at, const Scenario& scenario, Dice* dice) {
  switch (at) {
    case At::kChief:
      return 0;
    case At::kServer:
      return AnyServer(scenario, dice);
    case At::kWorker:
      return AnyWorker(scenario, dice);
    case At::kWriter:
      return scenario.servers_write ? AnyServer(scenario, dice) : 0;
  }
  return 0;
}

// From a moment to beyond the lease of a member.
absl::Duration AnyLength(Dice* dice) {
  switch (dice->Roll(0, 3)) {
    case 0:
      return dice->Milliseconds(1, 300);
    case 1:
      return dice->Milliseconds(300, 3000);
    default:
      return dice->Milliseconds(3000, 8000);
  }
}

// Where faults begin, alone or together: at a time, or at a point from then on.
struct Occasion {
  absl::Duration at;
  std::optional<SimTrigger> trigger;
};

Occasion DrawOccasion(absl::Span<const Point> points, const Scenario& scenario, Dice* dice) {
  Occasion occasion;
  occasion.at = dice->Milliseconds(300, 7000);
  if (points.empty() || dice->OnceIn(4)) return occasion;
  const Point& point = points[dice->Index(points.size())];
  occasion.trigger = {NodeAt(point.at, scenario, dice), point.what, point.when,
                      dice->Roll(1, dice->OnceIn(2) ? 2 : 12)};
  return occasion;
}

SimFault FaultAt(const Occasion& occasion, Kind kind, size_t node, Dice* dice) {
  SimFault fault;
  fault.kind = kind;
  fault.at = occasion.at;
  fault.trigger = occasion.trigger;
  fault.node = node;
  fault.length = AnyLength(dice);
  return fault;
}

// Messages between two nodes are lost or late.
SimFault LinkFault(const Occasion& occasion, size_t node, size_t other, Dice* dice) {
  SimFault fault = FaultAt(occasion, dice->OnceIn(2) ? Kind::kCut : Kind::kSlow, node, dice);
  fault.other = other;
  fault.both = dice->OnceIn(3);
  if (!fault.both && dice->OnceIn(2)) std::swap(fault.node, fault.other);
  return fault;
}

SimFault ModeFault(const Occasion& occasion, Dice* dice) {
  SimFault fault = FaultAt(occasion, Kind::kSetMode, 0, dice);
  constexpr const char* kModes[] = {"async", "ssp:1", "sync:1", "sync:2", "sync:1/2"};
  fault.mode = *ConsistencyMode::Parse(kModes[dice->Index(std::size(kModes))]);
  return fault;
}

SimFault StorageFaultAt(const Occasion& occasion, Dice* dice) {
  constexpr StorageFault kStorage[] = {StorageFault::kErrs, StorageFault::kReadOnly,
                                       StorageFault::kHangs, StorageFault::kLies};
  SimFault fault = FaultAt(occasion, Kind::kStorage, 0, dice);
  fault.storage = kStorage[dice->Index(std::size(kStorage))];
  return fault;
}

// The process at the point, or any other, ends or stands still.
SimFault ProcessFault(const Occasion& occasion, const Scenario& scenario, Dice* dice) {
  size_t node = dice->Index(scenario.nodes());
  if (occasion.trigger.has_value() && !dice->OnceIn(3)) node = occasion.trigger->node;
  const std::vector<Kind> kinds = {Kind::kKill, Kind::kKill, Kind::kFreeze, Kind::kReplace,
                                   Kind::kStop};
  Kind kind = dice->Pick(kinds);
  if (kind == Kind::kReplace && node != 0) kind = Kind::kFreeze;
  return FaultAt(occasion, kind, node, dice);
}

SimFault AnyFault(const Occasion& occasion, const Scenario& scenario, Dice* dice) {
  switch (dice->Roll(0, 7)) {
    case 0:
    case 1:
    case 2:
      return ProcessFault(occasion, scenario, dice);
    case 3:
    case 4: {
      const size_t node = dice->OnceIn(3) ? 0 : dice->Index(scenario.nodes());
      return LinkFault(occasion, node,
                       (node + Draw(1, scenario.nodes() - 1, dice)) % scenario.nodes(), dice);
    }
    case 5:
      return StorageFaultAt(occasion, dice);
    case 6:
      return FaultAt(occasion, Kind::kPowerCut, 0, dice);
    default:
      return ModeFault(occasion, dice);
  }
}

std::vector<Point> AllPoints() {
  std::vector<Point> points(std::begin(kCommitPoints), std::end(kCommitPoints));
  points.insert(points.end(), std::begin(kCutPoints), std::end(kCutPoints));
  points.insert(points.end(), std::begin(kMemberPoints), std::end(kMemberPoints));
  return points;
}

std::vector<SimFault> DrawPoints(const Scenario& scenario, Dice* dice) {
  std::vector<SimFault> faults;
  const int64_t count = dice->Roll(1, 5);
  for (int64_t i = 0; i < count; ++i) {
    faults.push_back(AnyFault(DrawOccasion(AllPoints(), scenario, dice), scenario, dice));
  }
  return faults;
}

std::vector<SimFault> DrawCommits(const Scenario& scenario, Dice* dice) {
  const Occasion occasion = DrawOccasion(kCommitPoints, scenario, dice);
  std::vector<SimFault> faults;
  const std::vector<Kind> kEnds = {Kind::kKill, Kind::kKill, Kind::kReplace, Kind::kFreeze};
  faults.push_back(FaultAt(occasion, dice->Pick(kEnds), 0, dice));
  if (!dice->OnceIn(3)) {
    faults.push_back(LinkFault(occasion, 0, AnyServer(scenario, dice), dice));
  }
  if (dice->OnceIn(3)) {
    faults.push_back(
        LinkFault(occasion, AnyWorker(scenario, dice), AnyServer(scenario, dice), dice));
  }
  if (dice->OnceIn(3)) faults.push_back(ModeFault(occasion, dice));
  if (!dice->OnceIn(3)) {
    const Occasion later = DrawOccasion(AllPoints(), scenario, dice);
    faults.push_back(AnyFault(later, scenario, dice));
  }
  return faults;
}

std::vector<SimFault> DrawCuts(const Scenario& scenario, Dice* dice) {
  const Occasion occasion = DrawOccasion(kCutPoints, scenario, dice);
  std::vector<SimFault> faults;
  switch (dice->Roll(0, 4)) {
    case 0:
      faults.push_back(FaultAt(occasion, Kind::kPowerCut, 0, dice));
      break;
    case 1:
      faults.push_back(FaultAt(occasion, Kind::kReplace, 0, dice));
      break;
    case 2:
      faults.push_back(LinkFault(occasion, 0, AnyServer(scenario, dice), dice));
      break;
    default:
      faults.push_back(ProcessFault(occasion, scenario, dice));
  }
  if (dice->OnceIn(2)) faults.push_back(StorageFaultAt(occasion, dice));
  if (dice->OnceIn(2)) {
    faults.push_back(LinkFault(occasion, 0, AnyServer(scenario, dice), dice));
  }
  const Occasion later = DrawOccasion(AllPoints(), scenario, dice);
  faults.push_back(dice->OnceIn(2) ? FaultAt(later, Kind::kPowerCut, 0, dice)
                                   : AnyFault(later, scenario, dice));
  return faults;
}

std::vector<SimFault> DrawMembers(const Scenario& scenario, Dice* dice) {
  const Occasion occasion = DrawOccasion(kMemberPoints, scenario, dice);
  const size_t worker = AnyWorker(scenario, dice);
  const size_t server = AnyServer(scenario, dice);
  std::vector<SimFault> faults;
  // The worker loses its membership,
  switch (dice->Roll(0, 2)) {
    case 0:
      faults.push_back(FaultAt(occasion, Kind::kFreeze, worker, dice));
      break;
    case 1:
      faults.push_back(FaultAt(occasion, Kind::kKill, worker, dice));
      break;
    default:
      faults.push_back(FaultAt(occasion, Kind::kCut, worker, dice));
      faults.back().other = 0;
      faults.back().both = true;
  }
  faults.back().length = dice->Milliseconds(2500, 8000);
  // its messages are late at a server,
  faults.push_back(FaultAt(occasion, Kind::kSlow, worker, dice));
  faults.back().other = server;
  // and that server is told late.
  if (!dice->OnceIn(4)) faults.push_back(LinkFault(occasion, 0, server, dice));
  if (dice->OnceIn(3)) {
    faults.push_back(FaultAt(DrawOccasion(kMemberPoints, scenario, dice),
                             dice->OnceIn(2) ? Kind::kKill : Kind::kReplace, 0, dice));
  }
  if (dice->OnceIn(3)) {
    faults.push_back(AnyFault(DrawOccasion(AllPoints(), scenario, dice), scenario, dice));
  }
  return faults;
}

std::vector<SimFault> DrawChiefs(const Scenario& scenario, Dice* dice) {
  const bool timed = dice->OnceIn(2);
  const Occasion occasion =
      DrawOccasion(timed ? std::vector<Point>() : AllPoints(), scenario, dice);
  std::vector<SimFault> faults;
  faults.push_back(FaultAt(occasion, dice->OnceIn(4) ? Kind::kKill : Kind::kReplace, 0, dice));
  if (dice->OnceIn(2)) faults.back().length = dice->Milliseconds(4500, 9000);
  const absl::Duration away = faults.back().length;
  if (timed && dice->OnceIn(2)) {
    // Its successor stands still when it wakes up.
    const absl::Duration before = std::min(away, dice->Milliseconds(1500, 4500));
    Occasion wakes;
    wakes.at = occasion.at + away - before;
    faults.push_back(FaultAt(wakes, Kind::kFreeze, 0, dice));
    faults.back().length = before + dice->Milliseconds(500, 4000);
  }
  const int64_t count = dice->Roll(1, 3);
  for (int64_t i = 0; i < count; ++i) {
    // While it is away, or when it wakes up.
    Occasion meanwhile;
    meanwhile.at = occasion.at + away * dice->Roll(0, 5) / 4;
    const size_t server = AnyServer(scenario, dice);
    switch (dice->Roll(0, 3)) {
      case 0:
        faults.push_back(LinkFault(meanwhile, 0, server, dice));
        break;
      case 1:
        faults.push_back(LinkFault(meanwhile, 0, AnyWorker(scenario, dice), dice));
        break;
      case 2:
        faults.push_back(FaultAt(meanwhile, Kind::kKill, AnyWorker(scenario, dice), dice));
        break;
      default:
        faults.push_back(
            FaultAt(meanwhile, dice->OnceIn(3) ? Kind::kStop : Kind::kKill, server, dice));
    }
  }
  if (dice->OnceIn(2)) {
    faults.push_back(AnyFault(DrawOccasion(AllPoints(), scenario, dice), scenario, dice));
  }
  return faults;
}

std::vector<SimFault> DrawDrains(const Scenario& scenario, Dice* dice) {
  const Occasion occasion = DrawOccasion(kCommitPoints, scenario, dice);
  const size_t server = AnyServer(scenario, dice);
  std::vector<SimFault> faults = {FaultAt(occasion, Kind::kStop, server, dice)};
  if (!dice->OnceIn(3)) {
    faults.push_back(LinkFault(occasion, AnyWorker(scenario, dice), server, dice));
    // Longer than the chief waits for the steps under way.
    faults.back().length = dice->Milliseconds(2000, 12'000);
  }
  if (dice->OnceIn(3)) faults.push_back(LinkFault(occasion, 0, server, dice));
  if (dice->OnceIn(3)) {
    faults.push_back(FaultAt(DrawOccasion(kCommitPoints, scenario, dice), Kind::kStop,
                             AnyServer(scenario, dice), dice));
  }
  if (dice->OnceIn(3)) {
    faults.push_back(AnyFault(DrawOccasion(AllPoints(), scenario, dice), scenario, dice));
  }
  return faults;
}

std::vector<SimFault> DrawRestarts(const Scenario& scenario, Dice* dice) {
  const Occasion occasion =
      DrawOccasion(dice->OnceIn(2) ? absl::MakeConstSpan(kCutPoints) : absl::Span<const Point>(),
                   scenario, dice);
  std::vector<SimFault> faults;
  absl::Duration away = dice->Milliseconds(100, 2000);
  if (dice->OnceIn(3)) {
    for (size_t s = 0; s < scenario.shards(); ++s) {
      if (scenario.HomeOf(s) == 0) continue;
      faults.push_back(FaultAt(occasion, Kind::kKill, scenario.HomeOf(s), dice));
      faults.back().length = away;
    }
    faults.push_back(FaultAt(occasion, Kind::kKill, 0, dice));
  } else {
    faults.push_back(FaultAt(occasion, Kind::kPowerCut, 0, dice));
  }
  faults.back().length = away;
  // From before they are back.
  Occasion back = occasion;
  if (!back.trigger.has_value()) back.at += away * dice->Roll(0, 4) / 4;
  faults.push_back(StorageFaultAt(back, dice));
  if (dice->OnceIn(2)) faults.back().storage = StorageFault::kLies;
  faults.back().length = away + dice->Milliseconds(1000, 6000);
  if (dice->OnceIn(2)) {
    faults.push_back(AnyFault(DrawOccasion(AllPoints(), scenario, dice), scenario, dice));
  }
  return faults;
}

// Another process may take the node's place while its own one is frozen.
bool MayBeReplaced(const Scenario& scenario, size_t node) {
  return node == 0 || (scenario.registers && scenario.HostsShard(node));
}

// The chief, a server or a host ends, stands still or is cut off.
SimFault HostFault(const Occasion& occasion, const Scenario& scenario, Dice* dice) {
  const size_t processes = 1 + scenario.servers + scenario.workers;
  size_t node = dice->Index(processes);
  if (occasion.trigger.has_value() && !dice->OnceIn(4)) node = occasion.trigger->node;
  switch (dice->Roll(0, 9)) {
    case 0:
      return FaultAt(occasion, Kind::kFreeze, node, dice);
    case 1:
      return FaultAt(occasion, Kind::kStop, node, dice);
    case 2:
      return LinkFault(occasion, node, (node + Draw(1, processes - 1, dice)) % processes, dice);
    case 3:
      return FaultAt(occasion, MayBeReplaced(scenario, node) ? Kind::kReplace : Kind::kFreeze, node,
                     dice);
    default:
      return FaultAt(occasion, Kind::kKill, node, dice);
  }
}

// A host is lost; then, in some, another one, or the same, while shards move, or much later.
std::vector<SimFault> DrawHosts(const Scenario& scenario, Dice* dice) {
  const bool moving = dice->OnceIn(5);
  const Occasion occasion = DrawOccasion(
      moving ? absl::MakeConstSpan(kMovePoints) : absl::MakeConstSpan(kStepPoints), scenario, dice);
  std::vector<SimFault> faults = {HostFault(occasion, scenario, dice)};
  if (dice->OnceIn(8)) {
    // A host that leaves by itself.
    faults.front().kind = Kind::kStop;
    if (!scenario.HostsShard(faults.front().node) || faults.front().node == 0) {
      faults.front().node = Draw(1 + scenario.servers, scenario.workers, dice);
    }
    if (!dice->OnceIn(3)) return faults;
  }
  if (dice->OnceIn(2)) return faults;
  Occasion next = DrawOccasion(
      dice->OnceIn(4) ? absl::MakeConstSpan(kStepPoints) : absl::MakeConstSpan(kMovePoints),
      scenario, dice);
  next.at = occasion.at + dice->Milliseconds(0, dice->OnceIn(2) ? 1500 : 6000);
  faults.push_back(HostFault(next, scenario, dice));
  if (dice->OnceIn(3)) faults.back().node = faults.front().node;
  if (faults.back().kind == Kind::kReplace && !MayBeReplaced(scenario, faults.back().node)) {
    faults.back().kind = Kind::kKill;
  }
  if (faults.back().node == faults.back().other) faults.back().kind = Kind::kKill;
  if (dice->OnceIn(4)) {
    faults.push_back(HostFault(DrawOccasion(kStepPoints, scenario, dice), scenario, dice));
  }
  return faults;
}

// A host is lost, or replaced; meanwhile announcements do not arrive, or the leader is away, too.
std::vector<SimFault> DrawRegisters(const Scenario& scenario, Dice* dice) {
  const Occasion occasion = DrawOccasion(
      dice->OnceIn(3) ? absl::MakeConstSpan(kMovePoints) : absl::MakeConstSpan(kAnnouncePoints),
      scenario, dice);
  std::vector<SimFault> faults = {HostFault(occasion, scenario, dice)};
  Occasion meanwhile;
  meanwhile.at = occasion.at + dice->Milliseconds(0, 3000);
  if (!dice->OnceIn(3)) {
    const size_t host = Draw(1, scenario.workers, dice);
    faults.push_back(LinkFault(dice->OnceIn(2) ? occasion : meanwhile, host, 0, dice));
  }
  if (dice->OnceIn(3)) {
    faults.push_back(FaultAt(meanwhile, dice->OnceIn(4) ? Kind::kReplace : Kind::kKill, 0, dice));
  } else if (dice->OnceIn(2)) {
    faults.push_back(FaultAt(meanwhile, Kind::kFreeze, 0, dice));
  }
  if (dice->OnceIn(2)) {
    // Soon enough for its port to be another's.
    faults.push_back(FaultAt(meanwhile, Kind::kKill, Draw(1, scenario.workers, dice), dice));
  }
  if (dice->OnceIn(3)) {
    faults.push_back(HostFault(DrawOccasion(kStepPoints, scenario, dice), scenario, dice));
  }
  return faults;
}

// Long enough for shards to move and to go home.
void AdaptHosts(Dice* dice, Scenario* scenario) {
  RecordJob& job = scenario->job;
  if (!dice->OnceIn(8)) job.mode = RecordMode::kSynchronous;
  job.slots = job.mode == RecordMode::kSynchronous && !job.table;
  job.replicas = scenario->workers > 1 && dice->OnceIn(2) ? 4 : 2;
  job.records = 4 * dice->Roll(6, 14);
  scenario->evaluators = 0;
  if (!dice->OnceIn(3)) {
    // What is slow is not taken for lost.
    scenario->slow = dice->Milliseconds(50, 300);
  }
}

}  // namespace

std::string FaultProfileName(FaultProfile profile) { return kNames[static_cast<size_t>(profile)]; }

std::optional<FaultProfile> ParseFaultProfile(absl::string_view name) {
  for (size_t p = 0; p < std::size(kNames); ++p) {
    if (name == kNames[p]) return static_cast<FaultProfile>(p);
  }
  return std::nullopt;
}

FaultProfile DrawProfile(uint64_t seed) {
  // The other seeds are what they are whatever these shares are.
  if (Dice(seed ^ kHostsDice).OnceIn(6)) return FaultProfile::kHosts;
  if (Dice(seed ^ kHybridProfileDice).OnceIn(8)) return FaultProfile::kHybrid;
  if (Dice(seed ^ kRegistersProfileDice).OnceIn(10)) return FaultProfile::kRegisters;
  constexpr FaultProfile kProfiles[] = {
      FaultProfile::kAny,     FaultProfile::kAny,     FaultProfile::kAny,    FaultProfile::kPoints,
      FaultProfile::kPoints,  FaultProfile::kCuts,    FaultProfile::kCuts,   FaultProfile::kCommits,
      FaultProfile::kCommits, FaultProfile::kMembers, FaultProfile::kChiefs, FaultProfile::kDrains,
      FaultProfile::kRestarts};
  Dice dice(seed ^ 0x9e3779b97f4a7c15ull);
  return kProfiles[dice.Index(std::size(kProfiles))];
}

void AdaptJob(FaultProfile profile, Dice* dice, Scenario* scenario) {
  if (!dice->OnceIn(6)) scenario->evaluators = 0;
  if (dice->OnceIn(2)) {
    constexpr double kStalls[] = {0.001, 0.005, 0.02};
    scenario->stall = kStalls[dice->Index(std::size(kStalls))];
    scenario->longest_stall = dice->Milliseconds(20, 2500);
  }
  const bool rounds = profile == FaultProfile::kCommits || profile == FaultProfile::kDrains;
  if (rounds && !dice->OnceIn(8)) scenario->job.mode = RecordMode::kSynchronous;
  if (profile >= FaultProfile::kHosts) return AdaptHosts(dice, scenario);
  if (profile != FaultProfile::kPoints && scenario->servers == 1) {
    scenario->servers = static_cast<size_t>(dice->Roll(1, 3));
  }
  const bool alone = scenario->workers == 1 && !scenario->collective;
  if (profile == FaultProfile::kMembers && alone) {
    scenario->workers = static_cast<size_t>(dice->Roll(2, 3));
  }
  if (profile == FaultProfile::kCuts) scenario->job.save_steps = dice->Roll(1, 4);
}

std::vector<SimFault> DrawFaults(FaultProfile profile, const Scenario& scenario, Dice* dice) {
  switch (profile) {
    case FaultProfile::kAny:
      return {};
    case FaultProfile::kPoints:
      return DrawPoints(scenario, dice);
    case FaultProfile::kCommits:
      return DrawCommits(scenario, dice);
    case FaultProfile::kCuts:
      return DrawCuts(scenario, dice);
    case FaultProfile::kMembers:
      return DrawMembers(scenario, dice);
    case FaultProfile::kChiefs:
      return DrawChiefs(scenario, dice);
    case FaultProfile::kDrains:
      return DrawDrains(scenario, dice);
    case FaultProfile::kRestarts:
      return DrawRestarts(scenario, dice);
    case FaultProfile::kHosts:
    case FaultProfile::kHybrid:
      return DrawHosts(scenario, dice);
    case FaultProfile::kRegisters:
      return DrawRegisters(scenario, dice);
  }
  return {};
}

}  // namespace keelson
