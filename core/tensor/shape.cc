#include "core/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {

int64_t Shape::num_elements() const {
  int64_t n = 1;
  for (const int64_t dim : dims_) n *= dim;
  return n;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims_, ", "), "]"); }

}  // namespace keelson
