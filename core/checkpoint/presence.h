// Whether a file is there, for those to whom an absent one means something.
#ifndef KEELSON_CORE_CHECKPOINT_PRESENCE_H_
#define KEELSON_CORE_CHECKPOINT_PRESENCE_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/base/file_system.h"

namespace keelson {

// Like FileSystem::Exists, but takes nothing for absent that its directory names: network file
// systems remember for a while that a name was missing. UNAVAILABLE: the directory names it, but it
// is not there to be opened.
absl::StatusOr<bool> IsPresent(const std::string& path, FileSystem* file_system);

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_PRESENCE_H_
