#include "cli/job_status_text.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/mode_text.h"
#include "cli/text_table.h"
#include "core/cluster/figures.h"
#include "core/cluster/table_totals.h"
#include "google/protobuf/util/json_util.h"

namespace keelson {
namespace {

std::string TaskName(const v1::TaskId& task) {
  const std::string role = v1::Role_Name(task.role());
  return absl::StrCat(absl::AsciiStrToLower(absl::StripPrefix(role, "ROLE_")), "-", task.index());
}

// "ps-0", or "shard-0 of chief-0" without parameter servers.
std::string ShardText(const v1::ServerStatus& server) {
  if (!server.has_host()) return TaskName(server.task());
  return absl::StrCat("shard-", server.task().index(), " of ", TaskName(server.host()));
}

std::string StepText(const v1::JobStatus& status) {
  if (status.max_steps() <= 0) return absl::StrCat(status.step());
  const double done =
      100.0 * static_cast<double>(status.step()) / static_cast<double>(status.max_steps());
  return absl::StrFormat("%d of %d (%.1f %%)", status.step(), status.max_steps(), done);
}

// "120 of 240 records are done, at clicks-2.csv; more may come"
std::string StreamText(const v1::StreamStatus& stream) {
  return absl::StrCat(stream.done_records(), " of ", stream.known_records(), " records are done",
                      stream.file().empty() ? "" : ", at ", stream.file(),
                      stream.ended() ? "; no more will come" : "; more may come");
}

// "0.52 (3)": mean and maximum.
std::string StalenessText(const v1::WorkerFigures& figures) {
  if (figures.steps() == 0) return "-";
  const double mean =
      static_cast<double>(figures.staleness_sum()) / static_cast<double>(figures.steps());
  return absl::StrFormat("%.2f (%d)", mean, figures.staleness_max());
}

std::string DeviceText(const v1::MemberStatus& member) {
  return member.device().empty() ? "-" : member.device();
}

// "1.5 MiB"
std::string BytesText(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string FigureText(const Figure& figure, const v1::MemberStatus& member) {
  if (member.task().role() == v1::ROLE_EVALUATOR) return "-";
  if (figure.name() == "staleness_max") return StalenessText(member.figures());
  if (figure.is_integer()) return absl::StrCat(figure.Integer(member.figures()));
  return absl::StrFormat("%.3f", figure.Number(member.figures()));
}

std::vector<std::string> MemberRow(const v1::MemberStatus& member) {
  std::vector<std::string> row = {TaskName(member.task()), member.state(),
                                  absl::StrCat(member.restarts())};
  for (const Figure& figure : WorkerFigures()) {
    if (!figure.options().column().empty()) row.push_back(FigureText(figure, member));
  }
  row.insert(row.end(), {DeviceText(member), member.peer()});
  return row;
}

std::vector<std::string> MemberHeadings() {
  std::vector<std::string> headings = {"task", "state", "restarts"};
  for (const Figure& figure : WorkerFigures()) {
    if (!figure.options().column().empty()) headings.push_back(figure.options().column());
  }
  headings.insert(headings.end(), {"device", "peer"});
  return headings;
}

// A member's figures stand among its other fields.
std::string WithFlatFigures(const std::string& json) {
  using Json = nlohmann::ordered_json;
  Json status = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return json;
  for (Json& member : status["members"]) {
    const Json figures = member.value("figures", Json::object());
    member.erase("figures");
    member.update(figures);
  }
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddJob(const v1::JobStatus& status, TextTable* table) {
  table->AddRow({"phase", v1::JobPhase_Name(status.phase())});
  if (!status.error().empty()) table->AddRow({"error", status.error()});
  table->AddRow({"step", StepText(status)});
  if (status.has_stream()) {
    table->AddRow({"stream", StreamText(status.stream())});
  } else {
    table->AddRow({"epoch", absl::StrFormat("%.3f", status.epoch())});
  }
  table->AddRow({"loss", absl::StrFormat("%.6g", status.loss())});
  table->AddRow(
      {"speed", absl::StrFormat("%.1f steps/s, %.1f examples/s", status.steps_per_second(),
                                status.examples_per_second())});
  table->AddRow({"mode", ModeText(status)});
  if (status.missing_workers() > 0) {
    table->AddRow({"waits for", absl::StrCat(status.missing_workers(), " more tasks to train")});
  }
  if (!status.end_reason().empty()) table->AddRow({"ends early", status.end_reason()});
  table->AddRow({"snapshot", absl::StrCat("of step ", status.snapshot_step())});
}

void AddMembers(const v1::JobStatus& status, TextTable* table) {
  table->AddRow(MemberHeadings());
  std::vector<const v1::MemberStatus*> members;
  for (const v1::MemberStatus& member : status.members()) members.push_back(&member);
  std::stable_sort(members.begin(), members.end(),
                   [](const v1::MemberStatus* a, const v1::MemberStatus* b) {
                     return std::make_pair(a->task().role(), a->task().index()) <
                            std::make_pair(b->task().role(), b->task().index());
                   });
  for (const v1::MemberStatus* member : members) table->AddRow(MemberRow(*member));
}

void AddServers(const v1::JobStatus& status, TextTable* table) {
  table->AddRow({"task", "state", "restarts", "step", "values", "slots", "clients", "address"});
  for (const v1::ServerStatus& server : status.servers()) {
    table->AddRow({ShardText(server), server.state(), absl::StrCat(server.restarts()),
                   absl::StrCat(server.shard_step()), BytesText(server.value_bytes()),
                   BytesText(server.slot_bytes()), absl::StrCat(server.clients()),
                   server.address()});
  }
}

// "12.3%"; "-" of nothing.
std::string ShareText(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f%%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string TablesText(const v1::JobStatus& status) {
  TableTotals sums;
  for (const v1::ServerStatus& server : status.servers()) sums.AddShard(server.tables());
  TextTable tables;
  tables.AddRow({"table", "rows", "memory", "ghosts", "admitted", "expired", "evicted",
                 "refused rows", "without a row", "max/mean of servers"});
  for (const TableTotal& total : sums.totals()) {
    const v1::TablePartStatus& table = total.table;
    tables.AddRow({table.name(), absl::StrCat(table.rows()), BytesText(table.bytes()),
                   absl::StrCat(table.ghosts()), absl::StrCat(table.admitted_rows()),
                   absl::StrCat(table.expired_rows()), absl::StrCat(table.evicted_rows()),
                   absl::StrCat(table.refused_rows()),
                   ShareText(table.looked_up_absent(), table.looked_up()),
                   absl::StrFormat("%.2f", total.balance)});
  }
  return sums.totals().empty() ? "" : absl::StrCat("\n", tables.ToString());
}

}  // namespace

std::string JobStatusText(const v1::JobStatus& status) {
  TextTable job;
  AddJob(status, &job);
  std::string text = job.ToString();
  if (!status.members().empty()) {
    TextTable members;
    AddMembers(status, &members);
    absl::StrAppend(&text, "\n", members.ToString());
  }
  if (!status.servers().empty()) {
    TextTable servers;
    AddServers(status, &servers);
    absl::StrAppend(&text, "\n", servers.ToString());
  }
  absl::StrAppend(&text, TablesText(status));
  return text;
}

std::string JobStatusJson(const v1::JobStatus& status) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails for messages of unknown types only.
  google::protobuf::util::MessageToJsonString(status, &json, options);
  return WithFlatFigures(json);
}

}  // namespace keelson
