// The ids of a table that pushes have most often, estimated in constant memory.
#ifndef KEELSON_PS_SERVER_UNITS_HOT_IDS_H_
#define KEELSON_PS_SERVER_UNITS_HOT_IDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"

namespace keelson {

// When there is no place for a new id, one is taken off all counts, and who has none left goes.
// Source: Misra and Gries, "Finding repeated elements", Science of Computer Programming 2(2), 1982.
// Thread-safe.
class HotIds {
 public:
  // Ids that are counted. An id that is more than so great a part of all is always among them.
  static constexpr size_t kCounted = 4096;

  struct Count {
    uint64_t id = 0;
    int64_t count = 0;  // too low by at most `error`
    int64_t error = 0;
  };

  void Add(uint64_t id);
  // Those with the highest counts, falling.
  std::vector<Count> Top(size_t most) const;

 private:
  mutable Mutex mu_;
  absl::flat_hash_map<uint64_t, int64_t> counts_ ABSL_GUARDED_BY(mu_);
  int64_t taken_off_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_HOT_IDS_H_
