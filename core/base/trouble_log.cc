#include "core/base/trouble_log.h"

#include "core/base/log.h"

namespace keelson {

bool TroubleLog::Note(const absl::Status& outcome) {
  const absl::Duration now = clock_->Monotonic();
  const bool changed = outcome.code() != last_;
  last_ = outcome.code();
  if (!changed && (outcome.ok() || now - logged_at_ < repeat_)) return false;
  logged_at_ = now;
  if (outcome.ok()) {
    LogInfo(what_, ": works again");
  } else {
    LogWarning(what_, ": ", outcome.message());
  }
  return true;
}

}  // namespace keelson
