#include "cli/mode_text.h"

#include "absl/strings/str_cat.h"
#include "core/cluster/consistency.h"

namespace keelson {

std::string ModeText(const v1::ConsistencyMode& proto) {
  const absl::StatusOr<ConsistencyMode> mode = ConsistencyMode::FromProto(proto);
  return mode.ok() ? mode->ToString() : proto.ShortDebugString();
}

std::string ModeText(const v1::JobStatus& status) {
  const std::string mode = ModeText(status.mode());
  if (!status.has_next_mode()) return mode;
  return absl::StrCat(mode, ", then ", ModeText(status.next_mode()));
}

}  // namespace keelson
