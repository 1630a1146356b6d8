// Which versions of the persisted job state the servers hold, and whether they lack one that a
// successor must know.
#ifndef KEELSON_CHIEF_COORDINATION_STORED_VERSIONS_H_
#define KEELSON_CHIEF_COORDINATION_STORED_VERSIONS_H_

#include <algorithm>
#include <cstdint>

namespace keelson {

// See StateVersions in chief_service.proto.
struct StateVersions {
  uint64_t current = 0;
  uint64_t stored = 0;
};

// Versions are those of WorkLedger. Not thread-safe: a coordinator owns it, whose lock guards it.
class StoredVersions {
 public:
  // A successor must know of the change that led to this version.
  void Request(uint64_t version) { urgent_ = version; }
  // The servers hold this version.
  void NoteStored(uint64_t version) { stored_ = std::max(stored_, version); }

  // The servers lack something that a successor must know.
  bool urgent() const { return urgent_ > stored_; }
  // The newest version that they hold; 0: none.
  uint64_t stored() const { return stored_; }

 private:
  uint64_t urgent_ = 0;
  uint64_t stored_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_STORED_VERSIONS_H_
