#include "chief/reporting/status_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

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

std::string Hex(uint64_t id) { return absl::StrCat(absl::Hex(id, absl::kZeroPad16)); }

Json StepSeconds(const TrainingFigures& figures) {
  return {{"input", figures.input_seconds},
          {"pull", figures.pull_seconds},
          {"compute", figures.compute_seconds},
          {"push", figures.push_seconds}};
}

// Adds the rates, which the job and each worker have.
void AddRates(const TrainingFigures& figures, Json* json) {
  (*json)["steps_per_second"] = figures.steps_per_second;
  (*json)["examples_per_second"] = figures.examples_per_second;
  (*json)["pushed_bytes_per_second"] = figures.pushed_bytes_per_second;
  (*json)["pulled_bytes_per_second"] = figures.pulled_bytes_per_second;
  (*json)["credit_wait_seconds"] = figures.credit_wait_seconds;
  (*json)["step_seconds"] = StepSeconds(figures);
}

void AddWork(const WorkerReport& sums, Json* json) {
  (*json)["steps"] = sums.steps;
  (*json)["examples"] = sums.examples;
  (*json)["push_retries"] = sums.push_retries;
  Json& staleness = (*json)["staleness"];
  staleness = {{"max", sums.staleness_max}};
  const bool counted = std::any_of(sums.staleness_counts.begin(), sums.staleness_counts.end(),
                                   [](int64_t count) { return count > 0; });
  if (!counted) return;
  staleness["bounds"] = kStalenessBounds;
  staleness["counts"] = sums.staleness_counts;
}

Json TaskJson(Task task, absl::string_view state, absl::Time since, int restarts) {
  return {{"task", task.ToString()}, {"role", std::string(RoleName(task.role))},
          {"index", task.index},     {"state", std::string(state)},
          {"since", Seconds(since)}, {"restarts", restarts}};
}

Json MemberJson(const Member& member, const StatusReport& report) {
  Json json = TaskJson(member.task, MemberStateName(member.state), member.since, member.restarts);
  json["peer"] = member.peer;
  json["incarnation"] = Hex(member.incarnation);
  if (!member.device.empty()) json["device"] = member.device;
  const auto sums = report.job.workers.find(member.task);
  if (sums == report.job.workers.end() || member.task.role == Role::kEvaluator) return json;
  AddWork(sums->second, &json);
  const auto figures = report.tasks.workers().find(member.task);
  if (member.state != Member::kAlive || figures == report.tasks.workers().end()) return json;
  AddRates(figures->second, &json);
  json["staleness"]["mean"] = figures->second.staleness;
  return json;
}

Json ServerJson(const ServerView& server, const TaskFigures& tasks) {
  Json json = {{"task", server.task.ToString()},
               {"address", server.address},
               {"state", std::string(ServerKindName(server.kind))},
               {"since", Seconds(server.since)},
               {"restarts", server.restarts}};
  if (server.incarnation == 0) return json;
  json["incarnation"] = Hex(server.incarnation);
  json["shard_step"] = server.shard_step;
  json["value_bytes"] = server.value_bytes;
  json["slot_bytes"] = server.slot_bytes;
  json["clients"] = server.clients;
  const auto rates = tasks.servers().find(server.task);
  if (server.kind != ServerView::kAlive || rates == tasks.servers().end()) return json;
  json["pushed_bytes_per_second"] = rates->second.pushed_bytes_per_second;
  json["pulled_bytes_per_second"] = rates->second.pulled_bytes_per_second;
  return json;
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
          {"incarnation", Hex(chief.incarnation)},
          {"since", Seconds(chief.since)},
          {"restarts", chief.restarts}};
}

void AddFigures(const Coordinator::Status& job, Json* json) {
  const TrainingFigures& newest = job.newest;
  if (newest.steps_per_second <= 0) return;
  AddRates(newest, json);
  (*json)["loss"] = newest.loss;
  (*json)["staleness"] = newest.staleness;
  (*json)["eta_seconds"] =
      static_cast<double>(std::max<int64_t>(job.max_steps - job.step, 0)) / newest.steps_per_second;
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
}

}  // namespace

std::string StatusJson(const StatusReport& report) {
  const Coordinator::Status& job = report.job;
  Json json = {{"time", Seconds(report.now)},
               {"started", Seconds(report.chief.started)},
               {"phase", PhaseName(job.phase)},
               {"error", job.error},
               {"mode", job.mode.ToString()},
               {"end_reason", job.end_reason},
               {"step", job.step},
               {"max_steps", job.max_steps},
               {"epoch", job.epoch},
               {"snapshot_step", job.snapshot_step},
               {"learning_rate", report.learning_rate},
               {"snapshot", SnapshotsJson(report.snapshots, report.now)}};
  if (report.steps_per_epoch > 0) json["steps_per_epoch"] = report.steps_per_epoch;
  if (job.phase == JobPhase::kWaitingForServers) json["waiting_for"] = report.missing_servers;
  AddFigures(job, &json);
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
