#include "core/tensor_files/name_list.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {

std::string SomeOf(std::vector<std::string> names) {
  constexpr size_t kShownNames = 8;
  const size_t count = names.size();
  names.resize(std::min(count, kShownNames));
  return absl::StrCat(count, " (", absl::StrJoin(names, ", "), count > kShownNames ? ", …" : "",
                      ")");
}

}  // namespace keelson
