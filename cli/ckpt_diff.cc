#include "cli/ckpt_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/element.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"

namespace keelson {
namespace {

struct Difference {
  int64_t count = 0;  // elements that differ
  double largest = 0;
  double largest_relative = 0;
  // The position of the largest difference.
  int64_t position = 0;
  std::string text;  // "1 and 2"
};

// |a - b|; 0 for two NaNs or two infinities of one sign, infinite when one alone is not finite.
double Distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b);
}

class Elements {
 public:
  Elements(BundleDtype dtype, std::string bytes) : dtype_(dtype), bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  double value(int64_t i) const { return ElementAsDouble(dtype_, at(i)); }
  std::string text(int64_t i) const { return ElementText(dtype_, at(i)); }

 private:
  const char* at(int64_t i) const { return bytes_.data() + i * DtypeSize(dtype_); }

  const BundleDtype dtype_;
  const std::string bytes_;
};

Difference Compare(const Elements& a, const Elements& b, int64_t count, double tolerance) {
  Difference difference;
  for (int64_t i = 0; i < count; ++i) {
    const double left = a.value(i);
    const double right = b.value(i);
    const double distance = Distance(left, right);
    const double scale = std::max(std::abs(left), std::abs(right));
    if (distance == 0) continue;
    if (std::isinf(distance) || distance > tolerance * std::max(1.0, scale)) ++difference.count;
    const double relative = std::isinf(distance) ? distance : distance / scale;
    difference.largest_relative = std::max(difference.largest_relative, relative);
    if (distance > difference.largest) {
      difference.largest = distance;
      difference.position = i;
    }
  }
  difference.text =
      count == 0 ? ""
                 : absl::StrCat(a.text(difference.position), " and ", b.text(difference.position));
  return difference;
}

// The coordinates of an element: "[1, 2]".
std::string PositionText(const Shape& shape, int64_t element) {
  std::vector<int64_t> position(shape.rank());
  for (size_t d = shape.rank(); d-- > 0;) {
    position[d] = element % shape.dim(d);
    element /= shape.dim(d);
  }
  return absl::StrCat("[", absl::StrJoin(position, ", "), "]");
}

class Differ {
 public:
  Differ(TensorSource* a, TensorSource* b, double tolerance, std::ostream* out)
      : a_(a), b_(b), tolerance_(tolerance), out_(out) {}

  absl::StatusOr<bool> Run() {
    std::map<std::string, std::pair<std::optional<TensorInfo>, std::optional<TensorInfo>>> all;
    for (TensorInfo& tensor : a_->List()) all[tensor.name].first = tensor;
    for (TensorInfo& tensor : b_->List()) all[tensor.name].second = tensor;
    for (const auto& [name, tensors] : all) {
      if (!tensors.second.has_value()) {
        Report(name, absl::StrCat("only in the first, ", TypeAndShape(*tensors.first)));
      } else if (!tensors.first.has_value()) {
        Report(name, absl::StrCat("only in the second, ", TypeAndShape(*tensors.second)));
      } else {
        RETURN_IF_ERROR(CompareTensors(*tensors.first, *tensors.second));
      }
    }
    *out_ << (differing_ == 0 ? "equal: " : "different: ") << differing_ << " of " << all.size()
          << " tensors differ\n";
    return differing_ == 0;
  }

 private:
  void Report(absl::string_view name, absl::string_view what) {
    ++differing_;
    *out_ << absl::CHexEscape(name) << ": " << what << "\n";
  }

  absl::Status CompareTensors(const TensorInfo& a, const TensorInfo& b) {
    if (a.shape != b.shape) {
      Report(a.name, absl::StrCat("shapes differ, ", TypeAndShape(a), " and ", TypeAndShape(b)));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::string a_bytes, a_->Read(a.name));
    ASSIGN_OR_RETURN(std::string b_bytes, b_->Read(b.name));
    const Elements left(a.dtype, std::move(a_bytes));
    const Elements right(b.dtype, std::move(b_bytes));
    if (a.dtype == b.dtype && left.bytes() == right.bytes()) return absl::OkStatus();
    if (!IsNumeric(a.dtype) || !IsNumeric(b.dtype)) {
      Report(a.name, absl::StrCat("elements differ, ", TypeAndShape(a), " and ", TypeAndShape(b)));
      return absl::OkStatus();
    }
    ReportDifference(a, b, Compare(left, right, a.shape.num_elements(), tolerance_));
    return absl::OkStatus();
  }

  void ReportDifference(const TensorInfo& a, const TensorInfo& b, const Difference& difference) {
    std::vector<std::string> findings;
    if (a.dtype != b.dtype) {
      findings.push_back(
          absl::StrCat("types differ, ", DtypeName(a.dtype), " and ", DtypeName(b.dtype)));
    }
    if (difference.count > 0) {
      findings.push_back(absl::StrFormat(
          "%d of %d elements differ, by at most %.6g at %s (%s), relatively %.6g", difference.count,
          a.shape.num_elements(), difference.largest, PositionText(a.shape, difference.position),
          difference.text, difference.largest_relative));
    }
    if (!findings.empty()) Report(a.name, absl::StrJoin(findings, "; "));
  }

  TensorSource* const a_;
  TensorSource* const b_;
  const double tolerance_;
  std::ostream* const out_;
  int64_t differing_ = 0;
};

}  // namespace

absl::StatusOr<bool> DiffTensors(TensorSource* a, TensorSource* b, double tolerance,
                                 std::ostream* out) {
  return Differ(a, b, tolerance, out).Run();
}

}  // namespace keelson
