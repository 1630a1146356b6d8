#include "core/summary/event_handover.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr char kSuffix[] = ".event";
constexpr uint64_t kMaxEventBytes = uint64_t{64} << 20;

}  // namespace

absl::Status HandOverEvent(const v1::Event& event, const std::string& directory,
                           FileSystem* file_system) {
  RETURN_IF_ERROR(file_system->CreateDirectories(directory));
  // The names sort as the steps do.
  const std::string name = absl::StrFormat("%020d%s", event.step(), kSuffix);
  return WriteFileAtomically(JoinPath(directory, name), event.SerializeAsString(), file_system);
}

absl::Status TakeEvents(const std::string& directory, FileSystem* file_system,
                        EventWriter* writer) {
  const absl::StatusOr<std::vector<std::string>> names = file_system->List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (!absl::EndsWith(name, kSuffix)) continue;
    const std::string path = JoinPath(directory, name);
    ASSIGN_OR_RETURN(const std::string bytes, ReadBoundedFile(path, kMaxEventBytes, file_system));
    v1::Event event;
    if (event.ParseFromString(bytes) && event.has_summary()) {
      RETURN_IF_ERROR(writer->AddEvent(std::move(event)));
    }
    RETURN_IF_ERROR(file_system->Remove(path));
  }
  return absl::OkStatus();
}

}  // namespace keelson
