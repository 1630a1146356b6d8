#include "tests/search/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/search/dice.h"
#include "tests/search/profiles.h"

namespace keelson {
namespace {

using Kind = SimFault::Kind;

// A host that leaves takes a chief that is silent for a second for one that has ended
// (departure.h).
constexpr absl::Duration kChiefSilence = absl::Milliseconds(400);
// Of the numbers that say whether a cluster is collective, whose processes may register, or hybrid.
constexpr uint64_t kCollectiveDice = 0x165667b19e3779f9;
constexpr uint64_t kRegistersDice = 0xff51afd7ed558ccd;
constexpr uint64_t kHybridDice = 0x85ebca77c2b2ae63;
// How long a replaced process acts beside its successor.
constexpr absl::Duration kAwake = absl::Seconds(4);
// Of the numbers that say whether a job has a table, so that they do not depend on others.
constexpr uint64_t kTableDice = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t kExpiryDice = 0x9e3779b97f4a7c15;
// The same of those that say whether such a job writes deltas.
constexpr uint64_t kDeltaDice = 0x9e3779b185ebca87;

std::string ModeName(RecordMode mode) {
  switch (mode) {
    case RecordMode::kAsynchronous:
      return "async";
    case RecordMode::kBoundedStaleness:
      return "bounded staleness";
    case RecordMode::kSynchronous:
      return "sync";
  }
  return "";
}

std::string StorageName(StorageFault fault) {
  switch (fault) {
    case StorageFault::kNone:
      return "works";
    case StorageFault::kErrs:
      return "errs";
    case StorageFault::kReadOnly:
      return "is read-only";
    case StorageFault::kHangs:
      return "hangs";
    case StorageFault::kLies:
      return "lies";
  }
  return "";
}

std::string CopiesName(v1::CollectiveConfig::Replicas copies) {
  switch (copies) {
    case v1::CollectiveConfig::ALWAYS:
      return "always";
    case v1::CollectiveConfig::NEVER:
      return "never";
    default:
      return "the usual";
  }
}

SimFault RollFault(const Scenario& scenario, Dice* dice) {
  constexpr Kind kKinds[] = {
      Kind::kKill, Kind::kKill,    Kind::kKillAt,  Kind::kKillAt,  Kind::kFreeze,   Kind::kCut,
      Kind::kCut,  Kind::kLoss,    Kind::kStorage, Kind::kReplace, Kind::kPowerCut, Kind::kStop,
      Kind::kStop, Kind::kStopAll, Kind::kSetMode, Kind::kSetMode, Kind::kSetMode};
  constexpr const char* kModes[] = {"async", "ssp:1", "sync:1", "sync:2", "sync:1/2"};
  constexpr StorageFault kStorage[] = {StorageFault::kErrs, StorageFault::kReadOnly,
                                       StorageFault::kHangs, StorageFault::kLies};
  SimFault fault;
  fault.kind = kKinds[dice->Roll(0, std::size(kKinds) - 1)];
  fault.at = dice->Milliseconds(100, 8000);
  fault.length = dice->Roll(0, 3) == 0 ? dice->Milliseconds(1, 300) : dice->Milliseconds(300, 6000);
  const auto nodes = static_cast<int64_t>(scenario.nodes());
  // The chief is where most is decided.
  fault.node = static_cast<size_t>(dice->Roll(0, 2) == 0 ? 0 : dice->Roll(0, nodes - 1));
  fault.other = (fault.node + static_cast<size_t>(dice->Roll(1, nodes - 1))) % scenario.nodes();
  fault.both = dice->Roll(0, 1) == 0;
  fault.operation = dice->Roll(1, dice->Roll(0, 1) == 0 ? 100 : 2000);
  fault.storage = kStorage[dice->Roll(0, std::size(kStorage) - 1)];
  fault.mode = *ConsistencyMode::Parse(kModes[dice->Roll(0, std::size(kModes) - 1)]);
  if (fault.kind == Kind::kReplace) fault.node = 0;
  // An evaluator's claim may end while it is away.
  if (fault.kind == Kind::kFreeze && scenario.IsEvaluator(fault.node) && dice->Roll(0, 1) == 0) {
    fault.length = dice->Milliseconds(31'000, 45'000);
  }
  // A server that is drained alone is what costs most.
  if (fault.kind == Kind::kStop && dice->Roll(0, 1) == 0) {
    const size_t holders = scenario.collective ? scenario.workers : scenario.shards();
    fault.node = static_cast<size_t>(dice->Roll(1, static_cast<int64_t>(holders)));
  }
  return fault;
}

// Two to four hosts. Models with tables are not trained without servers.
void MakeCollective(Dice* dice, Scenario* scenario) {
  scenario->collective = true;
  scenario->servers = 0;
  scenario->workers = static_cast<size_t>(dice->Roll(1, 3));
  RecordJob& job = scenario->job;
  const bool two = scenario->workers == 1;
  if (dice->OnceIn(two ? 2 : 6)) {
    job.copies = two ? v1::CollectiveConfig::ALWAYS : v1::CollectiveConfig::NEVER;
  }
  job.distinct = true;
  job.table = false;
  job.expire_after = job.full_every = 0;
}

// One or two servers, and one to four workers with a shard each.
void MakeHybrid(Dice* dice, Scenario* scenario) {
  scenario->hybrid = true;
  scenario->servers = static_cast<size_t>(dice->Roll(1, 2));
  scenario->workers = static_cast<size_t>(dice->OnceIn(8) ? 1 : dice->Roll(2, 4));
  RecordJob& job = scenario->job;
  const bool two = scenario->workers == 2;
  if (dice->OnceIn(two ? 2 : 6)) {
    job.copies = two ? v1::CollectiveConfig::ALWAYS : v1::CollectiveConfig::NEVER;
  }
  job.hybrid = job.table = job.distinct = true;
  job.depth = 1;
}

std::string WhereOf(const Scenario& scenario, const SimFault& fault) {
  const std::string at = absl::FormatDuration(fault.at);
  if (!fault.trigger.has_value()) return absl::StrCat("at ", at, ": ");
  constexpr const char* kWhens[] = {"sends",          "is about to execute",
                                    "has executed",   "has the answer of",
                                    "is about to do", "has done"};
  const SimTrigger& trigger = *fault.trigger;
  return absl::StrCat("from ", at, " on, when ", scenario.NameOf(trigger.node), " ",
                      kWhens[static_cast<size_t>(trigger.when)], " \"", trigger.what, "\", time ",
                      trigger.number, ": ");
}

std::string ToText(const Scenario& scenario, const SimFault& fault) {
  const std::string node = scenario.NameOf(fault.node);
  const std::string at = WhereOf(scenario, fault);
  const std::string length = absl::StrCat(" for ", absl::FormatDuration(fault.length));
  switch (fault.kind) {
    case Kind::kKill:
      return absl::StrCat(at, node, " is killed and away", length);
    case Kind::kKillAt:
      return absl::StrCat("at its operation ", fault.operation, ": ", node, " is killed and away",
                          length);
    case Kind::kFreeze:
      return absl::StrCat(at, node, " is frozen", length);
    case Kind::kReplace:
      return absl::StrCat(at, node, " is frozen and replaced, and wakes up after ",
                          absl::FormatDuration(fault.length));
    case Kind::kStop:
      return absl::StrCat(at, node, " is asked to stop");
    case Kind::kStopAll:
      return absl::StrCat(at, "all are asked to stop");
    case Kind::kSetMode:
      return absl::StrCat(at, "the mode is changed to ", fault.mode.ToString());
    case Kind::kCut:
      return absl::StrCat(at, "messages from ", node, " to ", scenario.NameOf(fault.other),
                          fault.both ? " and back" : "", " are lost", length);
    case Kind::kSlow:
      return absl::StrCat(at, "messages from ", node, " to ", scenario.NameOf(fault.other),
                          fault.both ? " and back" : "", " take up to ",
                          absl::FormatDuration(fault.length), ", for as long");
    case Kind::kLoss:
      return absl::StrCat(at, "one message in twenty is lost", length);
    case Kind::kStorage:
      return absl::StrCat(at, "storage ", StorageName(fault.storage), length);
    case Kind::kPowerCut:
      return absl::StrCat(at, "the power is cut", length);
    case Kind::kErase:
      return absl::StrCat(at, "all files are erased");
  }
  return "";
}

// When it is over at the latest.
absl::Duration EndOf(const SimFault& fault) {
  const absl::Duration end = fault.at + fault.length;
  return fault.trigger.has_value() ? end + kTriggerWindow : end;
}

}  // namespace

std::string Scenario::NameOf(size_t node) const {
  if (node == 0) return "chief";
  if (registers && IsWorker(node)) return absl::StrCat("worker-", node);
  if (IsServer(node)) return absl::StrCat("ps-", node - 1);
  if (IsWorker(node)) return absl::StrCat("worker-", node - 1 - servers);
  if (IsEvaluator(node)) return absl::StrCat("evaluator-", node - 1 - servers - workers);
  return "user";
}

bool Scenario::OnlyAHostLeaves() const {
  return faults.size() == 1 && faults.front().kind == Kind::kStop && faults.front().node != 0 &&
         HostsShard(faults.front().node) && trainers() > 1 && stall == 0 && slow < kChiefSilence;
}

std::string Scenario::ToString() const {
  std::string text = absl::StrCat(
      "seed ", seed, ": ", ModeName(job.mode), ", ",
      servers > 0 ? absl::StrCat(servers, " servers, ") : "",
      collective || hybrid
          ? absl::StrCat(trainers(), " hosts", registers ? ", which register," : "", " with ",
                         CopiesName(job.copies), " replicas")
          : absl::StrCat(workers, " workers"),
      ", ", evaluators, " evaluators, ", job.records, " records, ", job.replicas, " a step, depth ",
      job.depth, job.table ? ", a table" : "",
      job.expire_after > 0 ? absl::StrCat(" whose rows expire after ", job.expire_after, " steps")
                           : "",
      ", a snapshot every ", job.save_steps, " steps",
      job.full_every > 0 ? absl::StrCat(", whole every ", job.full_every) : "", ", written by ",
      servers_write ? "servers" : "the chief", ", steps of up to ", absl::FormatDuration(step_time),
      ", faults: ", profile, "\n");
  for (const SimFault& fault : faults) absl::StrAppend(&text, "  ", ToText(*this, fault), "\n");
  return text;
}

Scenario MakeScenario(uint64_t seed, uint64_t faults) {
  Dice dice(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.job.mode = static_cast<RecordMode>(dice.Roll(0, 2));
  scenario.servers = static_cast<size_t>(dice.Roll(1, 3));
  scenario.workers = static_cast<size_t>(dice.Roll(1, 4));
  scenario.servers_write = dice.Roll(0, 3) > 0;
  scenario.job.replicas = dice.Roll(0, 1) == 0 ? 1 : 2;
  scenario.job.depth = dice.Roll(1, 2);
  scenario.job.records = 2 * dice.Roll(4, 16);
  scenario.job.save_steps = dice.Roll(2, 8);
  constexpr double kSwitching[] = {0.02, 0.1, 0.5};
  scenario.switching = kSwitching[dice.Roll(0, 2)];
  scenario.repetition = dice.Roll(0, 2) == 0 ? 0.1 : 0;
  constexpr double kSlowShares[] = {0.02, 0.1, 0.3};
  scenario.slow_share = kSlowShares[dice.Roll(0, 2)];
  scenario.slow = dice.Milliseconds(50, 2500);
  absl::Duration pace = dice.Milliseconds(2000, 16'000);
  constexpr size_t kEvaluators[] = {0, 0, 1, 2};
  scenario.evaluators = kEvaluators[dice.Roll(0, 3)];
  scenario.score_time = dice.Milliseconds(1, 2000);
  scenario.job.table = Dice(seed ^ kTableDice).OnceIn(3);
  // Models with tables are not trained otherwise.
  if (scenario.job.table) scenario.job.depth = 1;
  Dice expiry(seed ^ kExpiryDice);
  if (scenario.job.table && expiry.OnceIn(3)) scenario.job.expire_after = expiry.Roll(1, 6);
  Dice delta_dice(seed ^ kDeltaDice);
  if (scenario.job.table && delta_dice.OnceIn(3)) scenario.job.full_every = delta_dice.Roll(2, 5);
  const FaultProfile profile = DrawProfile(seed);
  Dice collective_dice(seed ^ kCollectiveDice);
  const bool registers = profile == FaultProfile::kRegisters;
  const bool may_be_collective = profile != FaultProfile::kHybrid && collective_dice.OnceIn(6);
  if (profile == FaultProfile::kHosts || registers || may_be_collective) {
    MakeCollective(&collective_dice, &scenario);
    scenario.registers = registers || Dice(seed ^ kRegistersDice).OnceIn(4);
    // Launchers that number processes start none.
    if (scenario.registers) scenario.evaluators = 0;
  }
  Dice hybrid_dice(seed ^ kHybridDice);
  const bool may_be_hybrid = !scenario.collective && hybrid_dice.OnceIn(8);
  if (profile == FaultProfile::kHybrid || may_be_hybrid) MakeHybrid(&hybrid_dice, &scenario);
  scenario.profile = FaultProfileName(profile);
  if (profile >= FaultProfile::kHosts) pace = std::max(pace, absl::Seconds(6));
  std::vector<SimFault> drawn;
  if (profile == FaultProfile::kAny) {
    const int64_t count = dice.Roll(0, 6);
    for (int64_t i = 0; i < count; ++i) drawn.push_back(RollFault(scenario, &dice));
  } else {
    AdaptJob(profile, &dice, &scenario);
    drawn = DrawFaults(profile, scenario, &dice);
  }
  // The job takes about as long as faults begin.
  scenario.step_time = pace * static_cast<int64_t>(scenario.trainers()) / scenario.job.records;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (((faults >> i) & 1) == 0) continue;
    scenario.faults.push_back(drawn[i]);
    scenario.faults_end = std::max(scenario.faults_end, EndOf(drawn[i]));
  }
  const bool replaces =
      std::any_of(scenario.faults.begin(), scenario.faults.end(),
                  [](const SimFault& fault) { return fault.kind == Kind::kReplace; });
  if (replaces && profile != FaultProfile::kAny) scenario.faults_end += kAwake;
  return scenario;
}

}  // namespace keelson
