// Says in the log which tables have reached a limit: updates were left out, because their rows
// could not be made, or rows were evicted.
#ifndef KEELSON_PS_SERVER_SERVICE_TABLE_LIMITS_LOG_H_
#define KEELSON_PS_SERVER_SERVICE_TABLE_LIMITS_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "ps_server/units/table_store.h"

namespace keelson {

// Thread-safe.
class TableLimitsLog {
 public:
  // A table that goes on refusing, or evicting, has a line so often.
  static constexpr absl::Duration kPause = absl::Minutes(1);

  // `clock` outlives this. `write` gets the lines; null: they are warnings in the log.
  using Write = std::function<void(const std::string& line)>;
  explicit TableLimitsLog(const Clock* clock, Write write = nullptr)
      : clock_(clock), write_(std::move(write)) {}

  // Writes a line for each table that has refused or evicted more rows than when its last such line
  // was written; `sizes` are those of the tables, in their order.
  void Note(const TableStore& store, const std::vector<TableSize>& sizes);

 private:
  struct Written {
    int64_t rows = 0;
    std::optional<absl::Duration> at;
  };
  struct Table {
    Written refused;
    Written evicted;
  };

  // Writes text(), if it is time for it.
  void NoteRows(int64_t rows, absl::FunctionRef<std::string()> text, Written* written)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const Write write_;
  Mutex mu_;
  std::vector<Table> tables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_SERVICE_TABLE_LIMITS_LOG_H_
