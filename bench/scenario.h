// The scenarios that ps_bench measures, and its presets.
#ifndef KEELSON_BENCH_SCENARIO_H_
#define KEELSON_BENCH_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace keelson::bench {

enum class Direction { kPush, kPull, kPushPull };

// The server's handling of a gradient.
enum class Handler { kDiscard, kSum, kSgd, kAdam };

// kInt8: gradients; values are bfloat16 then.
enum class Wire { kFloat32, kBfloat16, kInt8 };

enum class Workload {
  kMessages,   // one message after another, round and round over a model, several in flight
  kSteps,      // whole steps of a ParameterClient: fused push and pull of a model
  kKeyValues,  // keys of 8 bytes, each with one float, as the messages' payload
};

std::string Name(Direction direction);  // "push", "pull", "pushpull"
std::string Name(Handler handler);      // "discard", "sum", "sgd", "adam"
std::string Name(Wire wire);            // "f32", "bf16", "int8"

// "1KB", "64KB", "2.7MB", "1GB": messages count by 1024, models by 1000.
std::string MessageSizeName(int64_t bytes);

struct Scenario {
  std::string name;   // "message-4MB"; those of one name are compared with each other
  std::string model;  // models.h
  Workload workload = Workload::kMessages;
  Direction direction = Direction::kPush;
  Handler handler = Handler::kSgd;
  Wire wire = Wire::kFloat32;
  // Payload of a message in float32; the last of a model may be smaller.
  int64_t message_bytes = 4 << 20;
  int servers = 1;
  int workers = 1;             // processes
  int clients_per_worker = 1;  // simulated workers in each
  int in_flight = 4;           // messages, at each server
  // The least duration of a run, so that each of many clients has its turns.
  double least_seconds = 0;

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

nlohmann::json ToJson(const Scenario& scenario);
// Reads the JSON that ToJson wrote.
Scenario ScenarioFromJson(const nlohmann::json& json);

// Each handler, direction and wire at each message size, each model, key-values, 100 simulated
// workers, and the sweep over servers and workers.
std::vector<Scenario> FullScenarios();
// The sweep alone: servers 1, 2, 4 by workers 1, 2, 4, 8.
std::vector<Scenario> ScalingScenarios();
// A selection that runs in a minute.
std::vector<Scenario> QuickScenarios();

// Those with one of the comma-separated `names`, which may have "*" for any characters. Empty:
// all.
std::vector<Scenario> Select(std::vector<Scenario> scenarios, absl::string_view names);

// Those that are compared with each other, in order: equal name, message size, servers and
// workers.
std::vector<std::vector<Scenario>> Comparisons(const std::vector<Scenario>& scenarios);

}  // namespace keelson::bench

#endif  // KEELSON_BENCH_SCENARIO_H_
