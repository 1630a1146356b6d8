#include "cli/ckpt_rollback.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/directory_change.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/tensor_files/snapshot_name.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxLogBytes = uint64_t{1} << 30;

// A line of eval/metrics.jsonl; one that cannot be read is left to its readers.
bool IsLater(absl::string_view line, int64_t step) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto found = json.find("step");
  return found != json.end() && found->is_number_integer() && found->get<int64_t>() > step;
}

// Removes the lines of later steps, and returns their number.
absl::StatusOr<int64_t> CutLog(const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(const std::string text, ReadBoundedFile(path, kMaxLogBytes, FileSystem::Real()));
  std::string kept;
  int64_t removed = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (IsLater(line, step)) {
      ++removed;
    } else {
      absl::StrAppend(&kept, line, "\n");
    }
  }
  if (removed > 0) RETURN_IF_ERROR(WriteFileAtomically(path, kept));
  return removed;
}

// The logs of all evaluators: "metrics.jsonl", "metrics-1.jsonl", …
absl::StatusOr<int64_t> CutEvaluations(const std::string& model_dir, int64_t step) {
  const std::string directory = JoinPath(model_dir, "eval");
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return 0;
  RETURN_IF_ERROR(names.status());
  int64_t removed = 0;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, "metrics") || !absl::EndsWith(name, ".jsonl")) continue;
    ASSIGN_OR_RETURN(const int64_t lines, CutLog(JoinPath(directory, name), step));
    removed += lines;
  }
  return removed;
}

}  // namespace

absl::Status RollBack(const std::string& model_dir, int64_t step, std::ostream* out) {
  StopSignal stop;
  ASSIGN_OR_RETURN(const auto owner, OwnForChange(model_dir, "keelson_ckpt rollback", &stop));
  CheckpointDirectory directory(FileSystem::Real(), model_dir, Clock::Real());
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> before, SnapshotsOf(model_dir));
  RETURN_IF_ERROR(directory.RollBack(step));
  RETURN_IF_ERROR(directory.RemoveDoneMarker());
  ASSIGN_OR_RETURN(const int64_t evaluations, CutEvaluations(model_dir, step));
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> after, directory.ListNamed());
  *out << "the next job continues from " << after.back().prefix
       << "; left behind: " << before.size() - after.size() << " later snapshots, " << evaluations
       << " evaluations of them\n";
  return absl::OkStatus();
}

}  // namespace keelson
