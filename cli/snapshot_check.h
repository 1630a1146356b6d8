// Finds all damage in a snapshot, not only the first.
#ifndef KEELSON_CLI_SNAPSHOT_CHECK_H_
#define KEELSON_CLI_SNAPSHOT_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

namespace keelson {

struct SnapshotCheck {
  int64_t tensors = 0;
  int64_t bytes = 0;  // of tensors, whose checksums were compared
  // One line each, with the file. Empty: the snapshot is as it was written.
  std::vector<std::string> problems;
  // Tensors whose type has a checksum that is not known here: "'name' of type variant".
  std::vector<std::string> not_checked;
};

// Reads all of the snapshot: the checksums of the index, that slices cover their tensors, that each
// data file is there in its size, the checksum of every slice, Keelson's own state, and the ids of
// tables. A damaged index hides the rest. A file that cannot be read is a problem too.
SnapshotCheck CheckSnapshot(const std::string& prefix);

}  // namespace keelson

#endif  // KEELSON_CLI_SNAPSHOT_CHECK_H_
