#include "core/checkpoint/done_marker.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/presence.h"

namespace keelson {
namespace {

using nlohmann::json;

constexpr char kStepField[] = "step";
constexpr char kHashField[] = "config_hash";
constexpr uint64_t kMaxMarkerBytes = uint64_t{64} << 10;

std::string MarkerPath(absl::string_view model_dir) { return JoinPath(model_dir, "DONE"); }

absl::Status BadMarker(absl::string_view path) {
  return absl::DataLossError(
      absl::StrCat(path, ": not the marker of a finished job; expected one line of JSON with ",
                   kStepField, " and ", kHashField));
}

}  // namespace

absl::Status WriteDoneMarker(FileSystem* file_system, absl::string_view model_dir,
                             const DoneMarker& marker) {
  const json object = {{kStepField, marker.step},
                       {kHashField, absl::StrFormat("%016x", marker.config_hash)}};
  return WriteFileAtomically(MarkerPath(model_dir), absl::StrCat(object.dump(), "\n"), file_system);
}

absl::StatusOr<std::optional<DoneMarker>> ReadDoneMarker(absl::string_view model_dir,
                                                         FileSystem* file_system) {
  const std::string path = MarkerPath(model_dir);
  ASSIGN_OR_RETURN(const bool present, IsPresent(path, file_system));
  if (!present) return std::nullopt;
  const auto text = ReadBoundedFile(path, kMaxMarkerBytes, file_system);
  // It was there a moment ago.
  if (absl::IsNotFound(text.status())) return absl::UnavailableError(text.status().message());
  RETURN_IF_ERROR(text.status());
  const json object = json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return BadMarker(path);
  const auto step = object.find(kStepField);
  const auto hash = object.find(kHashField);
  if (step == object.end() || hash == object.end() || !step->is_number_integer() ||
      !hash->is_string()) {
    return BadMarker(path);
  }
  DoneMarker marker;
  marker.step = step->get<int64_t>();
  if (!absl::SimpleHexAtoi(hash->get_ref<const std::string&>(), &marker.config_hash)) {
    return BadMarker(path);
  }
  return marker;
}

absl::Status RemoveDoneMarker(FileSystem* file_system, absl::string_view model_dir) {
  const std::string path = MarkerPath(model_dir);
  // Where nothing can be written, not even the removal of what is absent succeeds.
  ASSIGN_OR_RETURN(const bool exists, file_system->Exists(path));
  return exists ? file_system->Remove(path) : absl::OkStatus();
}

}  // namespace keelson
