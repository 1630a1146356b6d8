// The files MODEL_DIR/eval/reports/<step>.json: the errors of a snapshot's model
// (core/scoring/report.h).
#ifndef KEELSON_EVALUATOR_REPORT_FILE_H_
#define KEELSON_EVALUATOR_REPORT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/file_system.h"

namespace keelson {

// Reports are kept for this many of the highest steps.
inline constexpr size_t kKeptReports = 20;

std::string ReportPath(absl::string_view model_dir, int64_t step);

// Writes the report of a step, atomically, and removes those of old steps but this one and the
// steps of `keep`. Several processes may do so at once. One that cannot be removed is logged.
// Errors of file.h: the report is not written.
absl::Status WriteReport(absl::string_view model_dir, int64_t step, absl::string_view json,
                         const std::set<int64_t>& keep = {},
                         FileSystem* file_system = FileSystem::Real());

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_REPORT_FILE_H_
