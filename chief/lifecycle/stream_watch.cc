#include "chief/lifecycle/stream_watch.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr absl::Duration kLookPause = absl::Milliseconds(500);

// Looking again does not help.
bool IsOfTheFile(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsDataLoss(status);
}

}  // namespace

void StreamWatch::Run(const StopSignal& end) {
  if (directory_ == nullptr) return;
  do {
    const absl::Status looked = Look();
    if (IsOfTheFile(looked)) {
      MutexLock lock(&mu_);
      status_ = looked;
      return;
    }
    trouble_.Note(looked);
  } while (!end.WaitFor(kLookPause));
}

absl::Status StreamWatch::Look() {
  // Before the files are looked for: those that come before the end are all there then.
  ASSIGN_OR_RETURN(const bool ended, directory_->HasEnded());
  RETURN_IF_ERROR(AddFiles());
  if (ended) intake_->End();
  return absl::OkStatus();
}

absl::Status StreamWatch::AddFiles() {
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<std::string> name,
                     directory_->FileBehind(std::max(intake_->newest(), empty_)));
    if (!name.has_value()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::shared_ptr<const FileRecords> records, directory_->Open(*name));
    if (records->size() > 0) {
      intake_->Add(*name, records->size());
    } else {
      LogWarning("a file of the stream has no record: ", directory_->PathOf(*name));
      empty_ = *name;
    }
  }
}

absl::Status StreamWatch::status() const {
  MutexLock lock(&mu_);
  return status_;
}

}  // namespace keelson
