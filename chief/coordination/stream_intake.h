// The files of a stream as the chief finds them.
#ifndef KEELSON_CHIEF_COORDINATION_STREAM_INTAKE_H_
#define KEELSON_CHIEF_COORDINATION_STREAM_INTAKE_H_

#include <cstdint>
#include <string>

#include "chief/coordination/coordinator_state.h"

namespace keelson {

// Thread-safe. A face of the coordinator, which owns it; the coordinator's lock guards all that it
// changes. Call it after training has started, of a job whose data is a stream.
class StreamIntake {
 public:
  // `state` outlives this.
  explicit StreamIntake(CoordinatorState* state) : state_(state) {}

  // The name of the newest file that is known; empty: there is none.
  std::string newest() const;
  // The next file has this many records (> 0), which are handed out from now on.
  void Add(const std::string& name, int64_t records);
  // No file follows. Repeating it does nothing.
  void End();

 private:
  CoordinatorState* const state_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_STREAM_INTAKE_H_
