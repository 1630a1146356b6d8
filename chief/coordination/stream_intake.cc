#include "chief/coordination/stream_intake.h"

#include "core/base/log.h"

namespace keelson {

std::string StreamIntake::newest() const {
  MutexLock lock(&state_->mu);
  return state_->training->ledger().stream_files().newest();
}

void StreamIntake::Add(const std::string& name, int64_t records) {
  MutexLock lock(&state_->mu);
  state_->training->work().AddStreamFile(name, records);
  LogInfo("the stream has a new file: ", name, ", ", records, " records");
  state_->RequestPersistence();
  state_->WakeAll();
}

void StreamIntake::End() {
  MutexLock lock(&state_->mu);
  if (state_->training->ledger().stream_ended()) return;
  state_->training->work().EndStream();
  LogInfo("the stream has ended after ", state_->training->ledger().stream_files().known(),
          " records");
  state_->WakeAll();
}

}  // namespace keelson
