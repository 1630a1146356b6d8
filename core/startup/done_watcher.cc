#include "core/startup/done_watcher.h"

#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/done_marker.h"

namespace keelson {

absl::StatusOr<std::optional<int64_t>> DoneStepOf(const RoleContext& context) {
  const std::string& model_dir = context.config.checkpoint().model_dir();
  if (model_dir.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(const std::optional<DoneMarker> marker, ReadDoneMarker(model_dir));
  if (!marker.has_value()) return std::nullopt;
  const int64_t max_steps = context.config.train().max_steps();
  const bool done =
      marker->config_hash == context.config_hash || (max_steps > 0 && marker->step >= max_steps);
  return done ? std::optional<int64_t>(marker->step) : std::nullopt;
}

DoneWatcher::DoneWatcher(const RoleContext& context, StopSignal* stop, absl::Duration interval)
    : context_(context), stop_(stop), interval_(interval), thread_([this] { Watch(); }) {}

DoneWatcher::~DoneWatcher() {
  end_.Raise();
  thread_.Join();
}

void DoneWatcher::Watch() {
  bool seen = false;
  while (!end_.WaitFor(interval_)) {
    const absl::StatusOr<std::optional<int64_t>> step = DoneStepOf(context_);
    const bool there = step.ok() && step->has_value();
    if (there && seen) {
      LogInfo("the job is done at step ", **step, ", says the model directory");
      done_ = true;
      stop_->Raise();
      return;
    }
    seen = there;
  }
}

absl::Status DoneWatcher::Explain(const absl::Status& work) const {
  return done_ && absl::IsCancelled(work) ? absl::OkStatus() : work;
}

}  // namespace keelson
