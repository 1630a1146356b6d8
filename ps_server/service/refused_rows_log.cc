#include "ps_server/service/refused_rows_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace keelson {

void RefusedRowsLog::Note(const TableStore& store, const std::vector<TableSize>& sizes) {
  MutexLock lock(&mu_);
  tables_.resize(sizes.size());
  for (size_t t = 0; t < sizes.size(); ++t) {
    Written& written = tables_[t];
    const TableSize& size = sizes[t];
    // Fewer: another shard has taken the place of the one before.
    if (size.refused_rows < written.refused) written = {};
    if (size.refused_rows == written.refused) continue;
    const absl::Duration now = clock_->Monotonic();
    if (written.at.has_value() && now - *written.at < kPause) continue;
    const TableSpec& spec = store.tables()[t].spec;
    const std::string bound =
        spec.max_rows == 0 ? "" : absl::StrCat("max_rows (", spec.max_rows, ") or ");
    LogWarning("table ", spec.name, ": left out ", size.refused_rows,
               " updates of rows that do not exist and are beyond ", bound,
               "the memory for rows (--max_shard_bytes): ", size.rows, " rows, ", size.bytes,
               " bytes here");
    written = {size.refused_rows, now};
  }
}

}  // namespace keelson
