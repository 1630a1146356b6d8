#include "evaluator/evaluation_records.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::string_view kStem = "metrics";
constexpr absl::string_view kSuffix = ".jsonl";

std::string FileNameOf(int index) {
  return index == 0 ? absl::StrCat(kStem, kSuffix) : absl::StrCat(kStem, "-", index, kSuffix);
}

// "metrics.jsonl" and "metrics-12.jsonl"
bool IsMetricsFile(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kStem) || !absl::ConsumeSuffix(&name, kSuffix)) return false;
  if (name.empty()) return true;
  return absl::ConsumePrefix(&name, "-") && !name.empty() &&
         name.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Reads the content of `path` from `offset` on.
absl::StatusOr<std::string> ReadFrom(const std::string& path, FileSystem* file_system,
                                     uint64_t* offset) {
  ASSIGN_OR_RETURN(const auto file, file_system->OpenForRead(path));
  // The file was rewritten by a process that dropped a torn line.
  if (file->size() < *offset) *offset = 0;
  std::string text(file->size() - *offset, '\0');
  RETURN_IF_ERROR(file->Read(*offset, text.size(), text.data()));
  return text;
}

}  // namespace

std::vector<EvaluationRecord> FollowedLog::ReadNew() {
  std::vector<EvaluationRecord> records;
  const absl::StatusOr<std::string> text = ReadFrom(path_, file_system_, &offset_);
  if (!text.ok()) {
    if (!absl::IsNotFound(text.status())) Complain(text.status().message());
    return records;
  }
  absl::string_view rest = *text;
  for (size_t length = rest.find('\n'); length != absl::string_view::npos;
       length = rest.find('\n')) {
    std::optional<EvaluationRecord> record = ParseEvaluationRecord(rest.substr(0, length));
    if (record.has_value()) {
      records.push_back(*std::move(record));
    } else {
      Complain(absl::StrCat(path_, ": byte ", offset_, ": a line that is no evaluation, left out"));
    }
    offset_ += length + 1;
    rest.remove_prefix(length + 1);
  }
  return records;
}

void FollowedLog::Complain(absl::string_view what) {
  if (!complained_) LogWarning("the evaluations of another evaluator: ", what);
  complained_ = true;
}

absl::StatusOr<std::unique_ptr<EvaluationRecords>> EvaluationRecords::Open(
    const std::string& directory, int index, FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<MetricsLog> log,
                   MetricsLog::Open(JoinPath(directory, FileNameOf(index)), file_system));
  std::unique_ptr<EvaluationRecords> records(
      new EvaluationRecords(directory, index, file_system, std::move(log)));
  RETURN_IF_ERROR(records->Refresh().status());
  return records;
}

absl::StatusOr<std::map<int64_t, EvaluationRecord>> EvaluationRecords::Refresh() {
  FindFiles();
  std::map<int64_t, EvaluationRecord> fresh;
  for (auto& [name, file] : others_) {
    for (EvaluationRecord& record : file.ReadNew()) {
      if (Counts(record)) fresh[record.step] = std::move(record);
    }
  }
  for (const auto& [step, record] : fresh) {
    if (index_ == 0) RETURN_IF_ERROR(log_->Append(record));
    records_[step] = record;
  }
  return fresh;
}

bool EvaluationRecords::Counts(const EvaluationRecord& record) const {
  const EvaluationRecord* const known = Find(record.step);
  if (known == nullptr) return true;
  return record.snapshot_id != known->snapshot_id && record.wall_time > known->wall_time;
}

absl::Status EvaluationRecords::ForgetAfter(int64_t step) {
  records_.erase(records_.upper_bound(step), records_.end());
  return log_->CutAfter(step);
}

void EvaluationRecords::FindFiles() {
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(directory_);
  if (!names.ok() && !directory_lost_) {
    LogWarning("the evaluations of other evaluators: ", names.status().message());
  }
  directory_lost_ = !names.ok();
  if (directory_lost_) return;
  for (const std::string& name : *names) {
    if (!IsMetricsFile(name) || name == FileNameOf(index_)) continue;
    others_.emplace(name, FollowedLog(JoinPath(directory_, name), file_system_));
  }
}

absl::Status EvaluationRecords::Add(const EvaluationRecord& record) {
  RETURN_IF_ERROR(log_->Append(record));
  records_[record.step] = record;
  return absl::OkStatus();
}

const EvaluationRecord* EvaluationRecords::Find(int64_t step) const {
  const auto record = records_.find(step);
  return record == records_.end() ? nullptr : &record->second;
}

}  // namespace keelson
