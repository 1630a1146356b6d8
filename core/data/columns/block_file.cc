#include "core/data/columns/block_file.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace keelson {

absl::Status NoSuchColumn(const std::string& path, const NeededColumns& needed, size_t column,
                          const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  const auto some = absl::MakeConstSpan(names).first(std::min(kMost, names.size()));
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": expected a column \"", needed.names[column], "\" (", needed.needed_by[column],
      "), found ", names.empty() ? "none" : absl::Utf8SafeCHexEscape(absl::StrJoin(some, ", ")),
      names.size() > kMost ? ", ..." : ""));
}

}  // namespace keelson
