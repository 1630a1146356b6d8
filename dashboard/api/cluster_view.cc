// ClusterJson of run_view.h.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/cluster/figures.h"
#include "dashboard/api/run_view.h"

namespace keelson {
namespace {

constexpr double kStragglerSpeed = 0.7;
constexpr double kSkew = 1.25;
constexpr double kStaleness = 2;
constexpr double kWaitingShare = 0.5;
// With less traffic or staleness than this, differences between tasks mean nothing.
constexpr double kLeastTraffic = 1 << 20;
constexpr double kLeastStaleness = 1;

constexpr const char* kTexts[] = {"state", "peer", "address", "host", "device"};
constexpr const char* kNumbers[] = {"since",       "restarts",   "shard_step",
                                    "value_bytes", "slot_bytes", "clients"};
constexpr const char* kStates[] = {"waiting", "alive", "away", "restoring", "lost", "left", "down"};
constexpr std::array<const char*, 4> kRoles = {"chief", "ps", "worker", "evaluator"};
constexpr absl::string_view kStepSeconds = "step_seconds.";

// Calls `visit` with all figures of a worker that status.json has.
template <typename Visit>
void VisitFigures(const Visit& visit) {
  for (const auto* const figures : {&WorkerFigures(), &TrainingFigures()}) {
    for (const Figure& figure : *figures) {
      if (!figure.options().status().empty()) visit(figure.options());
    }
  }
}

void CopyNumber(const char* key, const Json& from, Json* to) {
  if (const auto integer = IntegerAt(from, key)) {
    (*to)[key] = *integer;
  } else if (const auto number = NumberAt(from, key)) {
    (*to)[key] = *number;
  }
}

// Of an object within.
void CopyPart(const std::string& object, const std::string& key, const Json& from, Json* to) {
  const Json* const parts = ObjectAt(from, object.c_str());
  if (parts == nullptr) return;
  Json part = Json::object();
  CopyNumber(key.c_str(), *parts, &part);
  if (!part.empty()) (*to)[object].update(part);
}

void CopyNumbers(const Json& from, Json* to) {
  for (const char* const key : kNumbers) CopyNumber(key, from, to);
  VisitFigures([&](const v1::FigureOptions& figure) {
    const std::string& key = figure.status();
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      CopyNumber(key.c_str(), from, to);
    } else {
      CopyPart(key.substr(0, dot), key.substr(dot + 1), from, to);
    }
  });
}

Json NumbersOf(const Json& list) {
  Json numbers = Json::array();
  for (const Json& value : list) {
    if (value.is_number()) numbers.push_back(value);
  }
  return numbers;
}

void CopyStaleness(const Json& from, Json* to) {
  const Json* const staleness = ObjectAt(from, "staleness");
  if (staleness == nullptr) return;
  Json json = Json::object();
  for (const char* const key : {"mean", "max"}) {
    if (const auto value = NumberAt(*staleness, key)) json[key] = *value;
  }
  const Json* const bounds = ListAt(*staleness, "bounds");
  const Json* const counts = ListAt(*staleness, "counts");
  if (bounds != nullptr && counts != nullptr && counts->size() == bounds->size() + 1) {
    json["bounds"] = NumbersOf(*bounds);
    json["counts"] = NumbersOf(*counts);
  }
  (*to)["staleness"] = std::move(json);
}

void CopyStepSeconds(const Json& from, Json* to) {
  const Json* const seconds = ObjectAt(from, "step_seconds");
  if (seconds == nullptr) return;
  Json json = Json::object();
  VisitFigures([&](const v1::FigureOptions& figure) {
    if (!absl::StartsWith(figure.status(), kStepSeconds)) return;
    const char* const part = figure.status().c_str() + kStepSeconds.size();
    json[part] = NumberAt(*seconds, part).value_or(0);
  });
  (*to)["step_seconds"] = std::move(json);
}

// The task's JSON; null if the entry has no valid task.
Json TaskJson(const Json& entry) {
  const std::string task = TextAt(entry, "task").value_or("");
  const std::vector<std::string> parts = absl::StrSplit(task, absl::MaxSplits('-', 1));
  int index = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &index) || index < 0) return nullptr;
  if (std::find(kRoles.begin(), kRoles.end(), parts[0]) == kRoles.end()) return nullptr;
  Json json = {{"task", task}, {"role", parts[0]}, {"index", index}, {"state", "waiting"}};
  for (const char* const key : kTexts) {
    if (auto text = TextAt(entry, key)) json[key] = *std::move(text);
  }
  const std::string state = json["state"].get<std::string>();
  if (std::find(std::begin(kStates), std::end(kStates), state) == std::end(kStates)) {
    json["state"] = "waiting";
  }
  CopyNumbers(entry, &json);
  CopyStaleness(entry, &json);
  CopyStepSeconds(entry, &json);
  return json;
}

void Change(Json* task, const char* state, const std::optional<double>& since) {
  (*task)["state"] = state;
  if (since.has_value()) (*task)["since"] = *since;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool IsHostedShard(const Json& task) { return task["role"] == "ps" && task.contains("host"); }

bool IsServer(const Json& task) { return task["role"] == "ps" && !task.contains("host"); }

// A worker, or a chief that trains too.
bool Trains(const Json& task) { return task["role"] == "worker" || task.contains("steps"); }

// The tasks of a kind that are alive, and a figure of each.
class Peers {
 public:
  Peers(Json* tasks, bool (*are_peers)(const Json& task)) {
    for (Json& task : *tasks) {
      if (are_peers(task) && task["state"] == "alive") members_.push_back(&task);
    }
  }

  // `figure` returns nullopt for those that do not count; `judge` is given those that do, with the
  // figures of all, when there are several.
  template <typename Figure, typename Judge>
  void Compare(const Figure& figure, const Judge& judge) const {
    std::vector<std::pair<Json*, double>> figures;
    std::vector<double> values;
    for (Json* const member : members_) {
      const std::optional<double> value = figure(*member);
      if (!value.has_value()) continue;
      figures.emplace_back(member, *value);
      values.push_back(*value);
    }
    if (values.size() < 2) return;
    for (const auto& entry : figures) judge(entry.first, entry.second, values);
  }

 private:
  std::vector<Json*> members_;
};

void Remark(Json* task, const char* kind, std::string text) {
  (*task)["remarks"].push_back({{"kind", kind}, {"text", std::move(text)}});
}

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Workers that are slow, or far behind.
void RemarkWorkers(Json* tasks) {
  const Peers workers(tasks, Trains);
  workers.Compare([](const Json& task) { return NumberAt(task, "steps_per_second"); },
                  [](Json* task, double speed, const std::vector<double>& all) {
                    const double median = Median(all);
                    if (median <= 0 || speed >= kStragglerSpeed * median) return;
                    Remark(
                        task, "straggler",
                        absl::StrFormat("%.2g of the median speed of the workers", speed / median));
                  });
  workers.Compare(
      [](const Json& task) {
        const Json* const staleness = ObjectAt(task, "staleness");
        return staleness == nullptr ? std::nullopt : NumberAt(*staleness, "mean");
      },
      [](Json* task, double staleness, const std::vector<double>& all) {
        const double median = Median(all);
        if (staleness < kLeastStaleness || staleness <= kStaleness * median) return;
        Remark(
            task, "stale",
            absl::StrFormat("mean staleness %.1f, the workers' median is %.1f", staleness, median));
      });
}

void RemarkWaiting(Json* tasks) {
  for (Json& task : *tasks) {
    const Json* const seconds = ObjectAt(task, "step_seconds");
    if (seconds == nullptr || task["state"] != "alive") continue;
    const auto part = [&](const char* key) { return NumberAt(*seconds, key).value_or(0); };
    const double waiting = part("input") + part("pull") + part("push");
    const double step = waiting + part("compute");
    if (step <= 0 || waiting <= kWaitingShare * step) continue;
    Remark(&task, "waiting", absl::StrFormat("waits for %.0f%% of its step", 100 * waiting / step));
  }
}

// Servers that hold or move more than their share. `whose`: "the servers'".
void RemarkServers(const Peers& servers, const char* whose) {
  const auto judge = [whose](const char* what, double least) {
    return [whose, what, least](Json* task, double value, const std::vector<double>& all) {
      const double mean = Sum(all) / static_cast<double>(all.size());
      if (mean <= least || value <= kSkew * mean) return;
      Remark(task, "skew", absl::StrFormat("%.2g times %s mean %s", value / mean, whose, what));
    };
  };
  const auto sum_of = [](const char* a, const char* b) {
    return [a, b](const Json& task) -> std::optional<double> {
      const auto first = NumberAt(task, a);
      const auto second = NumberAt(task, b);
      if (!first.has_value() && !second.has_value()) return std::nullopt;
      return first.value_or(0) + second.value_or(0);
    };
  };
  servers.Compare(sum_of("value_bytes", "slot_bytes"), judge("bytes", 0));
  servers.Compare(sum_of("pushed_bytes_per_second", "pulled_bytes_per_second"),
                  judge("traffic", kLeastTraffic));
}

size_t RoleRank(const Json& task) {
  const auto role = std::find(kRoles.begin(), kRoles.end(), task["role"].get<std::string>());
  return role - kRoles.begin();
}

// The figures that are shown among a worker's details.
Json FigureList() {
  Json list = Json::array();
  VisitFigures([&](const v1::FigureOptions& figure) {
    if (figure.label().empty()) return;
    list.push_back({{"key", figure.status()},
                    {"label", figure.label()},
                    {"unit", figure.unit()},
                    {"help", figure.help()}});
  });
  return list;
}

Json ChiefEntry(const Json& status) {
  const Json* const chief = ObjectAt(status, "chief");
  Json entry = chief == nullptr ? Json::object() : *chief;
  if (!TextAt(entry, "task").has_value()) entry["task"] = "chief-0";
  entry["state"] = "alive";
  return entry;
}

// What each server has of a table.
Json ServersOfTable(const Json& status, const std::string& name) {
  Json servers = Json::array();
  const Json* const list = ListAt(status, "servers");
  for (const Json& server : list == nullptr ? Json::array() : *list) {
    const std::optional<std::string> task = TextAt(server, "task");
    const Json* const tables = ListAt(server, "tables");
    if (!task.has_value() || tables == nullptr) continue;
    for (const Json& table : *tables) {
      if (TextAt(table, "name") != name) continue;
      Json& out = servers.emplace_back(Json{{"task", *task}});
      CopyNumber("rows", table, &out);
      CopyNumber("bytes", table, &out);
    }
  }
  return servers;
}

std::optional<int64_t> DimOfTable(const std::optional<RunModel>& model, const std::string& name) {
  if (!model.has_value()) return std::nullopt;
  for (const TableSpec& table : model->spec.tables) {
    if (table.name == name) return table.dim;
  }
  return std::nullopt;
}

Json TablesJson(const RunData& data) {
  const Json& status = data.status;
  Json tables = Json::array();
  const Json* const list = ListAt(status, "tables");
  if (list == nullptr) return tables;
  for (const Json& entry : *list) {
    const std::optional<std::string> name = TextAt(entry, "name");
    if (!name.has_value()) continue;
    Json table = {{"name", *name}};
    if (const auto dim = DimOfTable(data.model, *name)) table["dim"] = *dim;
    if (Json servers = ServersOfTable(status, *name); !servers.empty()) {
      table["servers"] = std::move(servers);
    }
    for (const char* const key :
         {"rows", "bytes", "ghosts", "refused_rows", "admitted_rows", "expired_rows",
          "evicted_rows", "looked_up", "looked_up_absent", "balance"}) {
      CopyNumber(key, entry, &table);
    }
    if (const Json* const ids = ObjectAt(entry, "row_ids"); ids != nullptr) {
      Json& out = table["row_ids"] = Json::object();
      CopyNumber("all", *ids, &out);
      CopyNumber("distinct", *ids, &out);
    }
    const Json* const hottest = ListAt(entry, "hottest");
    for (const Json& hot : hottest == nullptr ? Json::array() : *hottest) {
      const std::optional<std::string> id = TextAt(hot, "id");
      if (!id.has_value()) continue;
      Json& out = table["hottest"].emplace_back(Json{{"id", *id}});
      CopyNumber("pushes", hot, &out);
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace

Json ClusterJson(const Run& run, const RunData& data) {
  const RunState& state = data.state;
  const std::optional<double> updated = NumberAt(data.status, "time");
  Json tasks = Json::array();
  const auto add = [&](const Json& entry) {
    Json task = TaskJson(entry);
    if (task.is_null()) return;
    // The chief wrote the last status at the end of the job.
    if (state.over() && task["state"] == "alive") Change(&task, "left", updated);
    tasks.push_back(std::move(task));
  };
  if (data.status.is_object()) {
    add(ChiefEntry(data.status));
    if (state.chief_away && !tasks.empty()) Change(&tasks[0], "down", updated);
  }
  for (const char* const key : {"servers", "members"}) {
    const Json* const list = ListAt(data.status, key);
    if (list == nullptr) continue;
    for (const Json& entry : *list) {
      const std::string task = TextAt(entry, "task").value_or("");
      if (tasks.empty() || tasks[0]["task"] != task) {
        add(entry);
        continue;
      }
      // A chief that trains is a member of its own.
      Json work = TaskJson(entry);
      work.update(tasks[0]);
      tasks[0] = std::move(work);
    }
  }
  RemarkWorkers(&tasks);
  RemarkWaiting(&tasks);
  RemarkServers(Peers(&tasks, IsServer), "the servers'");
  // Placed by rules of their own.
  RemarkServers(Peers(&tasks, IsHostedShard), "the shards'");
  std::vector<Json> sorted(std::make_move_iterator(tasks.begin()),
                           std::make_move_iterator(tasks.end()));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Json& a, const Json& b) {
    return std::make_pair(RoleRank(a), a["index"].get<int>()) <
           std::make_pair(RoleRank(b), b["index"].get<int>());
  });
  Json json = {{"run", run.id()},
               {"stale", state.chief_away},
               {"figures", FigureList()},
               {"tasks", std::move(sorted)}};
  if (updated.has_value()) json["updated"] = *updated;
  Json tables = TablesJson(data);
  if (!tables.empty()) json["tables"] = std::move(tables);
  return json;
}

}  // namespace keelson
