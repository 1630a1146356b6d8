#include "bench/scenario.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/models.h"
#include "core/base/name_pattern.h"

namespace keelson::bench {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

// Small messages need more of them under way to keep both sides busy.
int InFlight(int64_t message_bytes) {
  if (message_bytes <= 16 * kKiB) return 16;
  return message_bytes <= 256 * kKiB ? 8 : 4;
}

Scenario Message(int64_t bytes, Direction direction, Handler handler, Wire wire) {
  Scenario scenario;
  scenario.name = absl::StrCat("message-", MessageSizeName(bytes));
  scenario.model = "flat";
  scenario.direction = direction;
  scenario.handler = handler;
  scenario.wire = wire;
  scenario.message_bytes = bytes;
  scenario.in_flight = InFlight(bytes);
  return scenario;
}

Scenario Messages(const std::string& model, Direction direction, Handler handler) {
  Scenario scenario = Message(4 * kMiB, direction, handler, Wire::kFloat32);
  scenario.name = absl::StrCat("model-", model);
  scenario.model = model;
  return scenario;
}

Scenario Steps(const std::string& model, Handler handler, Wire wire) {
  Scenario scenario = Messages(model, Direction::kPushPull, handler);
  scenario.workload = Workload::kSteps;
  scenario.wire = wire;
  scenario.message_bytes = std::min(scenario.message_bytes, ModelBytes(model));
  return scenario;
}

Scenario KeyValues() {
  Scenario scenario = Message(4 * kMiB, Direction::kPush, Handler::kDiscard, Wire::kFloat32);
  scenario.name = "key-value";
  scenario.workload = Workload::kKeyValues;
  return scenario;
}

Scenario HundredWorkers() {
  Scenario scenario = Steps("2.7MB", Handler::kSgd, Wire::kFloat32);
  scenario.name = "workers-100";
  scenario.workers = 4;
  scenario.clients_per_worker = 25;
  scenario.least_seconds = 5;
  return scenario;
}

Scenario Scaled(Direction direction, int servers, int workers) {
  Scenario scenario = Message(4 * kMiB, direction, Handler::kSgd, Wire::kFloat32);
  scenario.name = "scaling";
  scenario.servers = servers;
  scenario.workers = workers;
  return scenario;
}

using Scenarios = std::vector<Scenario>;

void Append(const Scenarios& from, Scenarios* to) {
  to->insert(to->end(), from.begin(), from.end());
}

Scenarios AllOfSize(int64_t bytes) {
  Scenarios scenarios;
  for (const Handler handler : {Handler::kDiscard, Handler::kSum, Handler::kSgd, Handler::kAdam}) {
    scenarios.push_back(Message(bytes, Direction::kPush, handler, Wire::kFloat32));
  }
  for (const Wire wire : {Wire::kBfloat16, Wire::kInt8}) {
    scenarios.push_back(Message(bytes, Direction::kPush, Handler::kSgd, wire));
  }
  scenarios.push_back(Message(bytes, Direction::kPull, Handler::kSgd, Wire::kFloat32));
  scenarios.push_back(Message(bytes, Direction::kPull, Handler::kSgd, Wire::kBfloat16));
  return scenarios;
}

Scenarios LargeModel(const std::string& model) {
  return {Messages(model, Direction::kPush, Handler::kDiscard),
          Messages(model, Direction::kPush, Handler::kSgd),
          Messages(model, Direction::kPush, Handler::kAdam),
          Messages(model, Direction::kPull, Handler::kSgd),
          Steps(model, Handler::kSgd, Wire::kFloat32)};
}

}  // namespace

std::string Name(Direction direction) {
  if (direction == Direction::kPush) return "push";
  return direction == Direction::kPull ? "pull" : "pushpull";
}

std::string Name(Handler handler) {
  if (handler == Handler::kDiscard) return "discard";
  if (handler == Handler::kSum) return "sum";
  return handler == Handler::kSgd ? "sgd" : "adam";
}

std::string Name(Wire wire) {
  if (wire == Wire::kFloat32) return "f32";
  return wire == Wire::kBfloat16 ? "bf16" : "int8";
}

std::string MessageSizeName(int64_t bytes) {
  return bytes >= kMiB ? absl::StrCat(bytes / kMiB, "MB") : absl::StrCat(bytes / kKiB, "KB");
}

nlohmann::json ToJson(const Scenario& scenario) {
  return {{"name", scenario.name},
          {"model", scenario.model},
          {"workload", static_cast<int>(scenario.workload)},
          {"direction", static_cast<int>(scenario.direction)},
          {"handler", static_cast<int>(scenario.handler)},
          {"wire", static_cast<int>(scenario.wire)},
          {"message_bytes", scenario.message_bytes},
          {"servers", scenario.servers},
          {"workers", scenario.workers},
          {"clients_per_worker", scenario.clients_per_worker},
          {"in_flight", scenario.in_flight},
          {"least_seconds", scenario.least_seconds}};
}

Scenario ScenarioFromJson(const nlohmann::json& json) {
  Scenario scenario;
  scenario.name = json.at("name").get<std::string>();
  scenario.model = json.at("model").get<std::string>();
  scenario.workload = static_cast<Workload>(json.at("workload").get<int>());
  scenario.direction = static_cast<Direction>(json.at("direction").get<int>());
  scenario.handler = static_cast<Handler>(json.at("handler").get<int>());
  scenario.wire = static_cast<Wire>(json.at("wire").get<int>());
  scenario.message_bytes = json.at("message_bytes").get<int64_t>();
  scenario.servers = json.at("servers").get<int>();
  scenario.workers = json.at("workers").get<int>();
  scenario.clients_per_worker = json.at("clients_per_worker").get<int>();
  scenario.in_flight = json.at("in_flight").get<int>();
  scenario.least_seconds = json.at("least_seconds").get<double>();
  return scenario;
}

std::vector<Scenario> ScalingScenarios() {
  Scenarios scenarios;
  for (const int servers : {1, 2, 4}) {
    for (const int workers : {1, 2, 4, 8}) {
      scenarios.push_back(Scaled(Direction::kPush, servers, workers));
      scenarios.push_back(Scaled(Direction::kPull, servers, workers));
    }
  }
  return scenarios;
}

std::vector<Scenario> FullScenarios() {
  Scenarios scenarios;
  for (const int64_t bytes : {1 * kKiB, 64 * kKiB, 1 * kMiB, 4 * kMiB}) {
    Append(AllOfSize(bytes), &scenarios);
  }
  for (const char* model : {"180KB", "2.7MB"}) {
    for (const Handler handler : {Handler::kDiscard, Handler::kSgd, Handler::kAdam}) {
      scenarios.push_back(Steps(model, handler, Wire::kFloat32));
    }
    for (const Wire wire : {Wire::kBfloat16, Wire::kInt8}) {
      scenarios.push_back(Steps(model, Handler::kSgd, wire));
    }
  }
  Append(LargeModel("100MB"), &scenarios);
  Append(LargeModel("1GB"), &scenarios);
  scenarios.push_back(KeyValues());
  scenarios.push_back(HundredWorkers());
  Append(ScalingScenarios(), &scenarios);
  return scenarios;
}

std::vector<Scenario> QuickScenarios() {
  Scenarios scenarios;
  for (const int64_t bytes : {1 * kKiB, 64 * kKiB, 1 * kMiB}) {
    scenarios.push_back(Message(bytes, Direction::kPush, Handler::kSgd, Wire::kFloat32));
    scenarios.push_back(Message(bytes, Direction::kPull, Handler::kSgd, Wire::kFloat32));
  }
  Append(AllOfSize(4 * kMiB), &scenarios);
  scenarios.push_back(Steps("180KB", Handler::kSgd, Wire::kFloat32));
  for (const Wire wire : {Wire::kFloat32, Wire::kBfloat16, Wire::kInt8}) {
    scenarios.push_back(Steps("2.7MB", Handler::kSgd, wire));
  }
  scenarios.push_back(Messages("100MB", Direction::kPush, Handler::kSgd));
  scenarios.push_back(Messages("100MB", Direction::kPull, Handler::kSgd));
  scenarios.push_back(KeyValues());
  for (const int servers : {1, 2}) {
    scenarios.push_back(Scaled(Direction::kPush, servers, 2));
    scenarios.push_back(Scaled(Direction::kPull, servers, 2));
  }
  return scenarios;
}

std::vector<Scenario> Select(std::vector<Scenario> scenarios, absl::string_view names) {
  if (names.empty()) return scenarios;
  const std::vector<std::string> patterns = absl::StrSplit(names, ',');
  Scenarios selected;
  for (Scenario& scenario : scenarios) {
    if (std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
          return MatchesPattern(pattern, scenario.name);
        })) {
      selected.push_back(std::move(scenario));
    }
  }
  return selected;
}

std::vector<std::vector<Scenario>> Comparisons(const std::vector<Scenario>& scenarios) {
  const auto key = [](const Scenario& s) {
    return std::tie(s.name, s.message_bytes, s.servers, s.workers);
  };
  std::vector<Scenarios> comparisons;
  for (const Scenario& scenario : scenarios) {
    const auto found =
        std::find_if(comparisons.begin(), comparisons.end(),
                     [&](const Scenarios& others) { return key(others[0]) == key(scenario); });
    if (found == comparisons.end()) {
      comparisons.push_back({scenario});
    } else {
      found->push_back(scenario);
    }
  }
  return comparisons;
}

}  // namespace keelson::bench
