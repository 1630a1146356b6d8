#include "evaluator/metrics_log.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/presence.h"

namespace keelson {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kStep[] = "step";
constexpr char kWallTime[] = "wall_time";
constexpr char kLoss[] = "loss";
constexpr char kExamples[] = "examples";
constexpr char kSeconds[] = "seconds";
constexpr char kSnapshot[] = "snapshot";  // no number, which readers would take for a metric

struct ParsedLog {
  std::map<int64_t, EvaluationRecord> records;
  // The length of the complete lines; the rest is torn.
  size_t good_bytes = 0;
};

absl::Status BadLine(absl::string_view path, int64_t line) {
  return absl::DataLossError(
      absl::StrCat(path, ": line ", line, ": expected an evaluation, {\"step\":…,\"loss\":…,…}"));
}

bool IsMetric(absl::string_view key) {
  return key != kStep && key != kWallTime && key != kExamples && key != kSeconds;
}

double NumberOr(const OrderedJson& value, double otherwise) {
  return value.is_number() ? value.get<double>() : otherwise;
}

absl::StatusOr<ParsedLog> ParseLog(const std::string& path, absl::string_view text) {
  ParsedLog log;
  int64_t line_number = 0;
  while (log.good_bytes < text.size()) {
    ++line_number;
    const absl::string_view rest = text.substr(log.good_bytes);
    const size_t length = rest.find('\n');
    if (length == absl::string_view::npos) return log;
    std::optional<EvaluationRecord> record = ParseEvaluationRecord(rest.substr(0, length));
    if (!record.has_value()) {
      const bool last = length + 1 == rest.size();
      if (last) return log;
      return BadLine(path, line_number);
    }
    log.records[record->step] = *std::move(record);
    log.good_bytes += length + 1;
  }
  return log;
}

}  // namespace

std::string FormatEvaluationRecord(const EvaluationRecord& record) {
  OrderedJson object;
  object[kStep] = record.step;
  object[kWallTime] = static_cast<double>(absl::ToUnixMicros(record.wall_time)) / 1e6;
  const auto loss = record.metrics.find(kLoss);
  if (loss != record.metrics.end()) object[kLoss] = loss->second;
  for (const auto& [name, value] : record.metrics) object[name] = value;
  object[kExamples] = record.examples;
  object[kSeconds] = record.seconds;
  if (record.snapshot_id != 0) object[kSnapshot] = FormatSnapshotId(record.snapshot_id);
  return absl::StrCat(object.dump(), "\n");
}

std::optional<EvaluationRecord> ParseEvaluationRecord(absl::string_view line) {
  const OrderedJson object =
      OrderedJson::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto step = object.find(kStep);
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  EvaluationRecord record;
  record.step = step->get<int64_t>();
  const auto snapshot = object.find(kSnapshot);
  if (snapshot != object.end() && snapshot->is_string()) {
    record.snapshot_id = ParseSnapshotId(snapshot->get<std::string>());
  }
  for (const auto& [key, value] : object.items()) {
    if (!value.is_number() && !value.is_null()) continue;
    if (key == kWallTime) {
      record.wall_time = absl::FromUnixMicros(std::llround(NumberOr(value, 0) * 1e6));
    } else if (key == kExamples) {
      record.examples = value.is_number_integer() ? value.get<int64_t>() : 0;
    } else if (key == kSeconds) {
      record.seconds = NumberOr(value, 0);
    } else if (IsMetric(key)) {
      record.metrics[key] = NumberOr(value, std::numeric_limits<double>::quiet_NaN());
    }
  }
  return record;
}

std::string FormatSnapshotId(uint64_t id) { return absl::StrCat(absl::Hex(id, absl::kZeroPad16)); }

uint64_t ParseSnapshotId(absl::string_view text) {
  uint64_t id;
  return text.size() == 16 && absl::SimpleHexAtoi(text, &id) ? id : 0;
}

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsLog::Open(const std::string& path,
                                                             FileSystem* file_system) {
  ParsedLog log;
  ASSIGN_OR_RETURN(const bool exists, IsPresent(path, file_system));
  if (exists) {
    const absl::StatusOr<std::string> text = ReadFile(path, file_system);
    // It was there just now.
    if (absl::IsNotFound(text.status())) return absl::UnavailableError(text.status().message());
    RETURN_IF_ERROR(text.status());
    ASSIGN_OR_RETURN(log, ParseLog(path, *text));
    if (log.good_bytes < text->size()) {
      LogWarning(path, ": the last line is torn, dropping it");
      RETURN_IF_ERROR(WriteFileAtomically(path, text->substr(0, log.good_bytes), file_system));
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file,
                   file_system->OpenForAppend(path, /*truncate=*/false));
  // What is appended is durable only where the name is.
  if (!exists) RETURN_IF_ERROR(file_system->SyncDirectory(DirectoryOf(path)));
  return std::unique_ptr<MetricsLog>(
      new MetricsLog(path, file_system, std::move(log.records), std::move(file)));
}

absl::Status MetricsLog::CutAfter(int64_t step) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path_, file_system_));
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::optional<EvaluationRecord> record = ParseEvaluationRecord(line);
    if (!record.has_value() || record->step <= step) absl::StrAppend(&kept, line, "\n");
  }
  records_.erase(records_.upper_bound(step), records_.end());
  if (kept.size() == text.size()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteFileAtomically(path_, kept, file_system_));
  ASSIGN_OR_RETURN(file_, file_system_->OpenForAppend(path_, /*truncate=*/false));
  return absl::OkStatus();
}

absl::Status MetricsLog::Append(const EvaluationRecord& record) {
  RETURN_IF_ERROR(file_->Append(FormatEvaluationRecord(record)));
  RETURN_IF_ERROR(file_->Sync());
  records_[record.step] = record;
  return absl::OkStatus();
}

const EvaluationRecord* MetricsLog::Find(int64_t step) const {
  const auto record = records_.find(step);
  return record == records_.end() ? nullptr : &record->second;
}

}  // namespace keelson
