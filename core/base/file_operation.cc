#include "core/base/file_operation.h"

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace keelson {

struct FileOperation::Registry {
  Mutex mu;
  std::list<Entry> entries ABSL_GUARDED_BY(mu);
};

FileOperation::Registry* FileOperation::OfProcess() {
  static auto* const registry = new Registry();
  return registry;
}

FileOperation::FileOperation(absl::string_view name, absl::string_view path) {
  const absl::Duration now = Clock::Real()->Monotonic();
  Registry* const registry = OfProcess();
  MutexLock lock(&registry->mu);
  entry_ = registry->entries.insert(registry->entries.end(), {name, path, now});
}

FileOperation::~FileOperation() {
  Registry* const registry = OfProcess();
  MutexLock lock(&registry->mu);
  registry->entries.erase(entry_);
}

std::vector<std::string> FileOperation::UnderWay(absl::Duration at_least) {
  const absl::Duration now = Clock::Real()->Monotonic();
  Registry* const registry = OfProcess();
  std::vector<std::string> texts;
  MutexLock lock(&registry->mu);
  for (const Entry& entry : registry->entries) {
    if (now - entry.since < at_least) continue;
    const absl::Duration taken = absl::Trunc(now - entry.since, absl::Milliseconds(100));
    texts.push_back(
        absl::StrCat(entry.name, " of ", entry.path, " for ", absl::FormatDuration(taken)));
  }
  return texts;
}

}  // namespace keelson
