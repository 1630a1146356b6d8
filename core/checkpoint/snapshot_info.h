// What is known of a snapshot without opening it.
#ifndef KEELSON_CORE_CHECKPOINT_SNAPSHOT_INFO_H_
#define KEELSON_CORE_CHECKPOINT_SNAPSHOT_INFO_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace keelson {

inline constexpr int64_t kNoStep = -1;

struct SnapshotInfo {
  // kNoStep: the name has none (SnapshotNames::kAny).
  int64_t step = 0;
  // "MODEL_DIR/model.ckpt-100"; its files are DataPath(prefix, …) and IndexPath(prefix).
  std::string prefix;
  absl::Time time;  // of Commit
};

// What a state file may name beyond the snapshots in its directory and beneath.
enum class ForeignPaths {
  kRefused,
  kFollowed,  // snapshots anywhere, for those who only read
};

// What the snapshots of a state file are called.
enum class SnapshotNames {
  kWithStep,  // they end in "-<step>", as those of a training do
  kAny,       // those of TensorFlow's programs, for those who only read
};

}  // namespace keelson

#endif  // KEELSON_CORE_CHECKPOINT_SNAPSHOT_INFO_H_
