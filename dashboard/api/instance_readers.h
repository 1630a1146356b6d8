// What makes a record of values for the columns of a run's files.
#ifndef KEELSON_DASHBOARD_API_INSTANCE_READERS_H_
#define KEELSON_DASHBOARD_API_INSTANCE_READERS_H_

#include <list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/serving/instances.h"
#include "dashboard/runs/run.h"
#include "dashboard/runs/run_model.h"

namespace keelson {

// Those of the runs that were asked for last are kept, since a vocabulary may be a large file.
// Thread-safe.
class InstanceReaders {
 public:
  // Returns the reader of the run's `model`. INVALID_ARGUMENT: its records are not made of columns.
  // Otherwise errors of InstanceReader::Create.
  absl::StatusOr<std::shared_ptr<const InstanceReader>> ReaderOf(const Run& run,
                                                                 const RunModel& model);

 private:
  struct Kept {
    std::string run;
    std::string config;  // the text that it was made of
    std::shared_ptr<const InstanceReader> reader;
  };

  Mutex mu_;
  std::list<Kept> kept_ ABSL_GUARDED_BY(mu_);  // the newest first
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_INSTANCE_READERS_H_
