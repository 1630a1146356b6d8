#include "ps_server/service/table_limits_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {

void TableLimitsLog::Note(const TableStore& store, const std::vector<TableSize>& sizes) {
  MutexLock lock(&mu_);
  tables_.resize(sizes.size());
  for (size_t t = 0; t < sizes.size(); ++t) {
    const TableSize& size = sizes[t];
    const TableSpec& spec = store.tables()[t].spec;
    const std::string bound =
        spec.max_rows == 0 ? "" : absl::StrCat("max_rows (", spec.max_rows, ") or ");
    const std::string memory = "the memory for rows (--max_shard_bytes)";
    const auto found = [&] {
      return absl::StrCat(size.rows, " rows, ", size.bytes, " bytes here");
    };
    NoteRows(
        size.refused_rows,
        [&] {
          return absl::StrCat("table ", spec.name, ": left out ", size.refused_rows,
                              " updates of rows that do not exist and are beyond ", bound, memory,
                              ": ", found());
        },
        &tables_[t].refused);
    NoteRows(
        size.evicted_rows,
        [&] {
          return absl::StrCat("table ", spec.name, ": evicted ", size.evicted_rows,
                              " rows to make place for others, within ", bound, memory, ": ",
                              found());
        },
        &tables_[t].evicted);
  }
}

void TableLimitsLog::NoteRows(int64_t rows, absl::FunctionRef<std::string()> text,
                              Written* written) {
  // Fewer: another shard has taken the place of the one before.
  if (rows < written->rows) *written = {};
  if (rows == written->rows) return;
  const absl::Duration now = clock_->Monotonic();
  if (written->at.has_value() && now - *written->at < kPause) return;
  if (write_ == nullptr) {
    LogWarning(text());
  } else {
    write_(text());
  }
  *written = {rows, now};
}

}  // namespace keelson
