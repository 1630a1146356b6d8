#include "chief/reporting/status_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/cluster/figures.h"
#include "core/cluster/staleness_buckets.h"
#include "core/cluster/table_totals.h"

namespace keelson {
namespace {

using Json = nlohmann::json;

const char* PhaseName(JobPhase phase) {
  switch (phase) {
    case JobPhase::kWaitingForServers:
      return "WAITING_FOR_SERVERS";
    case JobPhase::kTraining:
      return "TRAINING";
    case JobPhase::kFinishing:
      return "FINISHING";
    case JobPhase::kEvaluating:
      return "EVALUATING";
    case JobPhase::kDone:
      return "DONE";
    case JobPhase::kFailed:
      return "FAILED";
  }
  return "";
}

double Seconds(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

// The place of a figure's key: that of "staleness.max" is in an object of its own.
Json& At(const std::string& key, Json* json) {
  for (const absl::string_view part : absl::StrSplit(key, '.')) json = &(*json)[std::string(part)];
  return *json;
}

// Adds what the job and each worker have of an interval, by the keys of the one or of the other.
void AddMeans(const v1::TrainingFigures& figures, bool of_job, Json* json) {
  for (const Figure& figure : TrainingFigures()) {
    const v1::FigureOptions& options = figure.options();
    const bool differs = of_job && !options.job_status().empty();
    const std::string& key = differs ? options.job_status() : options.status();
    if (!key.empty()) At(key, json) = figure.Number(figures);
  }
}

void AddStalenessCounts(const Figure& figure, const v1::WorkerFigures& sums, Json* json) {
  std::vector<int64_t> counts = figure.List(sums);
  counts.resize(StalenessCounts().size());
  if (std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 0; })) return;
  (*json)["staleness"]["bounds"] = kStalenessBounds;
  At(figure.options().status(), json) = std::move(counts);
}

void AddWork(const v1::WorkerFigures& sums, Json* json) {
  for (const Figure& figure : WorkerFigures()) {
    const std::string& key = figure.options().status();
    if (key.empty()) continue;
    if (figure.is_list()) {
      AddStalenessCounts(figure, sums, json);
    } else if (figure.is_integer()) {
      At(key, json) = figure.Integer(sums);
    } else {
      At(key, json) = figure.Number(sums);
    }
  }
}

Json TaskJson(Task task, absl::string_view state, absl::Time since, int restarts) {
  return {{"task", task.ToString()}, {"role", std::string(RoleName(task.role))},
          {"index", task.index},     {"state", std::string(state)},
          {"since", Seconds(since)}, {"restarts", restarts}};
}

Json MemberJson(const Member& member, const StatusReport& report) {
  Json json = TaskJson(member.task, MemberStateName(member.state), member.since, member.restarts);
  json["peer"] = member.peer;
  if (!member.device.empty()) json["device"] = member.device;
  const auto sums = report.job.workers.find(member.task);
  if (sums == report.job.workers.end() || member.task.role == Role::kEvaluator) return json;
  AddWork(sums->second, &json);
  const auto figures = report.tasks.workers().find(member.task);
  if (member.state != Member::kAlive || figures == report.tasks.workers().end()) return json;
  AddMeans(figures->second, /*of_job=*/false, &json);
  return json;
}

Json TableJson(const v1::TablePartStatus& table) {
  return {{"name", table.name()},
          {"rows", table.rows()},
          {"bytes", table.bytes()},
          {"ghosts", table.ghosts()},
          {"refused_rows", table.refused_rows()},
          {"admitted_rows", table.admitted_rows()},
          {"expired_rows", table.expired_rows()},
          {"evicted_rows", table.evicted_rows()},
          {"looked_up", table.looked_up()},
          {"looked_up_absent", table.looked_up_absent()}};
}

Json ServerJson(const ServerView& server, const TaskFigures& tasks) {
  Json json = {{"task", server.task.ToString()},
               {"address", server.address},
               {"state", std::string(ServerKindName(server.kind))},
               {"since", Seconds(server.since)},
               {"restarts", server.restarts}};
  if (server.host.has_value()) json["host"] = server.host->ToString();
  if (server.incarnation == 0) return json;
  json["shard_step"] = server.shard_step;
  json["value_bytes"] = server.value_bytes;
  json["slot_bytes"] = server.slot_bytes;
  json["clients"] = server.clients;
  for (const v1::TablePartStatus& table : server.tables) {
    json["tables"].push_back(TableJson(table));
  }
  const auto rates = tasks.servers().find(server.task);
  if (server.kind != ServerView::kAlive || rates == tasks.servers().end()) return json;
  json["pushed_bytes_per_second"] = rates->second.pushed_bytes_per_second;
  json["pulled_bytes_per_second"] = rates->second.pulled_bytes_per_second;
  return json;
}

// What all workers have had of a table, by its place in the model.
Json RowIdsJson(const std::map<Task, v1::WorkerFigures>& workers, int table) {
  int64_t all = 0, distinct = 0;
  for (const auto& [task, figures] : workers) {
    const int known = std::min(figures.table_row_ids_size(), figures.table_distinct_row_ids_size());
    if (table >= known) continue;
    all += figures.table_row_ids(table);
    distinct += figures.table_distinct_row_ids(table);
  }
  return {{"all", all}, {"distinct", distinct}};
}

Json TablesJson(const StatusReport& report) {
  TableTotals sums;
  for (const ServerView& server : report.servers) sums.AddShard(server.tables);
  Json tables = Json::array();
  for (const TableTotal& table : sums.totals()) {
    Json json = TableJson(table.table);
    json["row_ids"] = RowIdsJson(report.job.workers, static_cast<int>(tables.size()));
    json["balance"] = table.balance;
    for (const v1::TablePartStatus::HotId& hot : table.table.hottest()) {
      // JavaScript's numbers have not all ids.
      json["hottest"].push_back(
          {{"id", absl::StrCat(hot.id())}, {"pushes", hot.pushes()}, {"error", hot.error()}});
    }
    tables.push_back(std::move(json));
  }
  return tables;
}

Json SnapshotsJson(const SnapshotFigures& figures, absl::Time now) {
  Json json = {{"write_seconds", absl::ToDoubleSeconds(figures.write_time)},
               {"bytes", figures.bytes},
               {"cut_microseconds", figures.longest_cut_microseconds},
               {"written", figures.written},
               {"failures", figures.failures},
               {"error", figures.error}};
  if (figures.step >= 0) json["age_seconds"] = absl::ToDoubleSeconds(now - figures.committed);
  return json;
}

Json ChiefJson(const ChiefIdentity& chief) {
  return {{"task", chief.task.ToString()},
          {"peer", chief.peer},
          {"since", Seconds(chief.since)},
          {"restarts", chief.restarts}};
}

void AddNewest(const CoordinatorStatus& job, Json* json) {
  (*json)["diverging"] = job.diverging;
  const double speed = job.newest.steps_per_second();
  if (speed <= 0) {
    // A short job: nothing was measured over time.
    if (job.recent_loss != 0) (*json)["loss"] = job.recent_loss;
    return;
  }
  AddMeans(job.newest, /*of_job=*/true, json);
  if (job.max_steps == 0) return;
  (*json)["eta_seconds"] =
      static_cast<double>(std::max<int64_t>(job.max_steps - job.step, 0)) / speed;
}

Json StreamJson(const v1::StreamStatus& stream) {
  return {{"file", stream.file()},
          {"done_records", stream.done_records()},
          {"known_records", stream.known_records()},
          {"ended", stream.ended()}};
}

Json MembersJson(const StatusReport& report) {
  const std::vector<Member>& known = report.job.members;
  Json members = Json::array();
  for (const Member& member : known) members.push_back(MemberJson(member, report));
  for (const Task task : report.expected_members) {
    const bool registered = std::any_of(known.begin(), known.end(),
                                        [&](const Member& member) { return member.task == task; });
    if (!registered) members.push_back(TaskJson(task, "waiting", report.chief.since, 0));
  }
  return members;
}

void AddTasks(const StatusReport& report, Json* json) {
  (*json)["chief"] = ChiefJson(report.chief);
  (*json)["members"] = MembersJson(report);
  Json& servers = (*json)["servers"] = Json::array();
  for (const ServerView& server : report.servers) {
    servers.push_back(ServerJson(server, report.tasks));
  }
  Json tables = TablesJson(report);
  if (!tables.empty()) (*json)["tables"] = std::move(tables);
}

}  // namespace

std::string StatusJson(const StatusReport& report) {
  const CoordinatorStatus& job = report.job;
  Json json = {{"time", Seconds(report.now)},
               {"started", Seconds(report.chief.started)},
               {"phase", PhaseName(job.phase)},
               {"error", job.error},
               {"mode", job.mode.ToString()},
               {"end_reason", job.end_reason},
               {"missing_workers", job.missing_workers},
               {"step", job.step},
               {"snapshot_step", job.snapshot_step},
               {"learning_rate", report.learning_rate},
               {"snapshot", SnapshotsJson(report.snapshots, report.now)}};
  if (job.max_steps > 0 || !job.stream.has_value()) json["max_steps"] = job.max_steps;
  if (job.stream.has_value()) {
    json["stream"] = StreamJson(*job.stream);
  } else {
    json["epoch"] = job.epoch;
  }
  if (report.steps_per_epoch > 0) json["steps_per_epoch"] = report.steps_per_epoch;
  if (job.phase == JobPhase::kWaitingForServers) json["waiting_for"] = report.missing_servers;
  if (!job.logged.empty()) json["logged"] = job.logged;
  AddNewest(job, &json);
  AddTasks(report, &json);
  // A text that is not UTF-8 (an error with a file's name) must not end the chief.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ChiefIdentity AfterPredecessor(ChiefIdentity chief, absl::string_view predecessor_status) {
  chief.started = chief.since;
  const Json json = Json::parse(predecessor_status, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return chief;
  const auto started = json.find("started");
  if (started != json.end() && started->is_number()) {
    const absl::Time begun = absl::UnixEpoch() + absl::Seconds(started->get<double>());
    chief.started = std::clamp(begun, absl::UnixEpoch(), chief.since);
  }
  const auto before = json.find("chief");
  chief.restarts = 1;
  if (before == json.end() || !before->is_object()) return chief;
  const auto restarts = before->find("restarts");
  if (restarts != before->end() && restarts->is_number_integer()) {
    chief.restarts =
        static_cast<int>(std::clamp<int64_t>(restarts->get<int64_t>(), 0, 1 << 30)) + 1;
  }
  return chief;
}

}  // namespace keelson
