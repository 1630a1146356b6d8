#include "core/checkpoint/tensor_slice.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace keelson {
namespace {

using Extent = TensorSliceSpec::Extent;

// Keeps byte counts of any element type within int64.
constexpr int64_t kMaxElements = int64_t{1} << 58;

// Slices that are cut in three or more dimensions may be this many, since each pair is compared.
constexpr size_t kMaxGridSlices = 4096;

absl::Status OutsideError(const TensorSliceSpec& slice, const Shape& shape) {
  return absl::InvalidArgumentError(
      absl::StrCat("slice ", ToString(slice), " does not lie within shape ", shape.ToString()));
}

absl::Status OverlapError(const TensorSliceSpec& a, const TensorSliceSpec& b) {
  return absl::InvalidArgumentError(
      absl::StrCat("slices ", ToString(a), " and ", ToString(b), " overlap"));
}

absl::Status TooManyError(size_t slices, size_t dimensions) {
  return absl::InvalidArgumentError(absl::StrCat(slices, " slices are cut in ", dimensions,
                                                 " dimensions, expected at most ", kMaxGridSlices));
}

absl::Status GapError(const Shape& shape, int64_t covered) {
  return absl::InvalidArgumentError(absl::StrCat("slices cover ", covered, " of the ",
                                                 shape.num_elements(), " elements of shape ",
                                                 shape.ToString()));
}

bool Overlap(const TensorSliceSpec& a, const TensorSliceSpec& b) {
  for (size_t i = 0; i < a.extents.size(); ++i) {
    if (a.extents[i].end() <= b.extents[i].start || b.extents[i].end() <= a.extents[i].start) {
      return false;
    }
  }
  return true;
}

bool Before(const TensorSliceSpec& a, const TensorSliceSpec& b) {
  return std::lexicographical_compare(a.extents.begin(), a.extents.end(), b.extents.begin(),
                                      b.extents.end(), [](const Extent& x, const Extent& y) {
                                        return std::pair(x.start, x.length) <
                                               std::pair(y.start, y.length);
                                      });
}

bool IsEmpty(const TensorSliceSpec& slice) {
  return absl::c_any_of(slice.extents, [](const Extent& extent) { return extent.length == 0; });
}

// The dimensions in which the slices differ.
std::vector<size_t> CutDimensions(const std::vector<TensorSliceSpec>& slices) {
  std::vector<size_t> dimensions;
  for (size_t i = 0; i < slices[0].extents.size(); ++i) {
    const auto differs = [&](const TensorSliceSpec& slice) {
      return !(slice.extents[i] == slices[0].extents[i]);
    };
    if (absl::c_any_of(slices, differs)) dimensions.push_back(i);
  }
  return dimensions;
}

absl::Status CheckPairs(const std::vector<TensorSliceSpec>& slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(slices[j], slices[i])) return OverlapError(slices[j], slices[i]);
    }
  }
  return absl::OkStatus();
}

// For slices that differ at most in the two dimensions, sorted by the first of them. A line moves
// along that one; the slices that it crosses are kept by where they start in the other one. As
// these are disjoint, a slice that the line reaches has to be compared with its neighbours only.
absl::Status Sweep(const std::vector<TensorSliceSpec>& sorted, size_t first, size_t second) {
  using Ending = std::pair<int64_t, int64_t>;  // in the first dimension, start in the second
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  std::map<int64_t, const TensorSliceSpec*> crossed;
  for (const TensorSliceSpec& slice : sorted) {
    const int64_t start = slice.extents[second].start;
    while (!endings.empty() && endings.top().first <= slice.extents[first].start) {
      crossed.erase(endings.top().second);
      endings.pop();
    }
    const auto next = crossed.lower_bound(start);
    if (next != crossed.end() && Overlap(*next->second, slice)) {
      return OverlapError(*next->second, slice);
    }
    if (next != crossed.begin() && Overlap(*std::prev(next)->second, slice)) {
      return OverlapError(*std::prev(next)->second, slice);
    }
    crossed.emplace_hint(next, start, &slice);
    endings.emplace(slice.extents[first].end(), start);
  }
  return absl::OkStatus();
}

absl::Status CheckDisjoint(const std::vector<TensorSliceSpec>& sorted) {
  if (sorted.size() < 2) return absl::OkStatus();
  const std::vector<size_t> cut = CutDimensions(sorted);
  if (cut.size() <= 2)
    return Sweep(sorted, cut.empty() ? 0 : cut.front(), cut.empty() ? 0 : cut.back());
  if (sorted.size() > kMaxGridSlices) return TooManyError(sorted.size(), cut.size());
  return CheckPairs(sorted);
}

}  // namespace

TensorSliceSpec RowSlice(const Shape& shape, int64_t row_begin, int64_t row_end) {
  TensorSliceSpec slice;
  for (const int64_t dim : shape.dims()) slice.extents.push_back({0, dim});
  slice.extents[0] = {row_begin, row_end - row_begin};
  return slice;
}

absl::StatusOr<TensorSliceSpec> ResolveSlice(const TensorSliceSpec& slice, const Shape& shape) {
  if (slice.extents.size() != shape.dims().size()) return OutsideError(slice, shape);
  TensorSliceSpec resolved = slice;
  for (size_t i = 0; i < shape.rank(); ++i) {
    Extent& extent = resolved.extents[i];
    if (extent == Extent{}) extent.length = shape.dim(i);
    const bool inside = extent.start >= 0 && extent.start <= shape.dim(i) && extent.length >= 0 &&
                        extent.length <= shape.dim(i) - extent.start;
    if (!inside) return OutsideError(slice, shape);
  }
  return resolved;
}

Shape SliceShape(const TensorSliceSpec& resolved) {
  std::vector<int64_t> dims;
  for (const Extent& extent : resolved.extents) dims.push_back(extent.length);
  return Shape(std::move(dims));
}

absl::Status CheckExactCover(const Shape& shape, std::vector<TensorSliceSpec>* slices) {
  std::sort(slices->begin(), slices->end(), Before);
  if (shape.rank() == 0) return slices->size() == 1 ? absl::OkStatus() : GapError(shape, 0);
  std::vector<TensorSliceSpec> filled;
  absl::c_remove_copy_if(*slices, std::back_inserter(filled), IsEmpty);
  if (absl::Status status = CheckDisjoint(filled); !status.ok()) return status;
  int64_t covered = 0;
  for (const TensorSliceSpec& slice : filled) covered += SliceShape(slice).num_elements();
  return covered == shape.num_elements() ? absl::OkStatus() : GapError(shape, covered);
}

v1::TensorSlice ToProto(const TensorSliceSpec& slice) {
  v1::TensorSlice proto;
  for (const Extent& extent : slice.extents) {
    v1::TensorSlice::Extent* out = proto.add_extent();
    if (extent == Extent{}) continue;
    out->set_start(extent.start);
    out->set_length(extent.length);
  }
  return proto;
}

TensorSliceSpec FromProto(const v1::TensorSlice& proto) {
  TensorSliceSpec slice;
  for (const v1::TensorSlice::Extent& extent : proto.extent()) {
    const int64_t length = extent.has_length() ? extent.length() : TensorSliceSpec::kFullLength;
    slice.extents.push_back({extent.start(), length});
  }
  return slice;
}

v1::TensorShape ToProto(const Shape& shape) {
  v1::TensorShape proto;
  for (const int64_t dim : shape.dims()) proto.add_dim()->set_size(dim);
  return proto;
}

absl::StatusOr<Shape> FromProto(const v1::TensorShape& proto) {
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (const v1::TensorShape::Dim& dim : proto.dim()) {
    // Counted with zeros as ones, so that no partial product overflows either.
    const int64_t factor = std::max<int64_t>(dim.size(), 1);
    if (dim.size() < 0 || elements > kMaxElements / factor) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape with dimension ", dim.size(), " is not one of a tensor"));
    }
    elements *= factor;
    dims.push_back(dim.size());
  }
  return Shape(std::move(dims));
}

std::string ToString(const TensorSliceSpec& slice) {
  return absl::StrJoin(slice.extents, ":", [](std::string* out, const Extent& extent) {
    if (extent == Extent{}) {
      out->append("-");
    } else {
      absl::StrAppend(out, extent.start, ",", extent.length);
    }
  });
}

}  // namespace keelson
