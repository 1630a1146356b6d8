#include "evaluator/report_file.h"

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr char kReportSuffix[] = ".json";

std::string ReportDirectory(absl::string_view model_dir) {
  return JoinPath(model_dir, "eval/reports");
}

absl::StatusOr<std::set<int64_t>> StepsWithReports(const std::string& directory,
                                                   FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  std::set<int64_t> steps;
  for (absl::string_view name : names) {
    int64_t step = 0;
    if (absl::ConsumeSuffix(&name, kReportSuffix) && absl::SimpleAtoi(name, &step))
      steps.insert(step);
  }
  return steps;
}

absl::Status RemoveOldReports(absl::string_view model_dir, const std::set<int64_t>& keep,
                              FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::set<int64_t> steps,
                   StepsWithReports(ReportDirectory(model_dir), file_system));
  size_t newer = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (newer++ < kKeptReports || keep.count(*step) > 0) continue;
    const absl::Status removed = file_system->Remove(ReportPath(model_dir, *step));
    // Another evaluator may have removed it.
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  return absl::OkStatus();
}

}  // namespace

std::string ReportPath(absl::string_view model_dir, int64_t step) {
  return JoinPath(ReportDirectory(model_dir), absl::StrCat(step, kReportSuffix));
}

absl::Status WriteReport(absl::string_view model_dir, int64_t step, absl::string_view json,
                         const std::set<int64_t>& keep, FileSystem* file_system) {
  RETURN_IF_ERROR(file_system->CreateDirectories(ReportDirectory(model_dir)));
  RETURN_IF_ERROR(WriteFileAtomically(ReportPath(model_dir, step), json, file_system));
  std::set<int64_t> kept = keep;
  kept.insert(step);
  const absl::Status removed = RemoveOldReports(model_dir, kept, file_system);
  if (!removed.ok()) LogWarning("an old report stays: ", removed.message());
  return absl::OkStatus();
}

}  // namespace keelson
