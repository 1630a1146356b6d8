// Says in the log which tables have had updates left out, because their rows could not be made.
#ifndef KEELSON_PS_SERVER_SERVICE_REFUSED_ROWS_LOG_H_
#define KEELSON_PS_SERVER_SERVICE_REFUSED_ROWS_LOG_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "ps_server/units/table_store.h"

namespace keelson {

// Thread-safe.
class RefusedRowsLog {
 public:
  // A table that goes on refusing has a line so often.
  static constexpr absl::Duration kPause = absl::Minutes(1);

  // `clock` outlives this.
  explicit RefusedRowsLog(const Clock* clock) : clock_(clock) {}

  // Writes a line for each table that has refused more rows than when its last line was written;
  // `sizes` are those of the tables, in their order.
  void Note(const TableStore& store, const std::vector<TableSize>& sizes);

 private:
  struct Written {
    int64_t refused = 0;
    std::optional<absl::Duration> at;
  };

  const Clock* const clock_;
  Mutex mu_;
  std::vector<Written> tables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_REFUSED_ROWS_LOG_H_
