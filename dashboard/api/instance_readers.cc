#include "dashboard/api/instance_readers.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr size_t kKeptReaders = 4;

}  // namespace

absl::StatusOr<std::shared_ptr<const InstanceReader>> InstanceReaders::ReaderOf(
    const Run& run, const RunModel& model) {
  MutexLock lock(&mu_);
  for (const Kept& kept : kept_) {
    if (kept.run == run.id() && kept.config == model.text) return kept.reader;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<const InstanceReader> reader,
                   InstanceReader::Create(model.config, model.spec, run.file_system()));
  if (!reader->has_columns()) {
    return absl::InvalidArgumentError(
        "columns: expected features, for the run's records are not made of columns, found columns");
  }
  kept_.remove_if([&](const Kept& kept) { return kept.run == run.id(); });
  kept_.push_front({run.id(), model.text, std::move(reader)});
  if (kept_.size() > kKeptReaders) kept_.pop_back();
  return kept_.front().reader;
}

}  // namespace keelson
