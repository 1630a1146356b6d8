#include "cli/ckpt_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/distance.h"
#include "cli/element.h"
#include "cli/table_diff.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/tensor_files/table_tensors.h"
#include "core/tensor_files/tensor_names.h"

namespace keelson {
namespace {

struct Difference {
  int64_t count = 0;  // elements that differ
  long double largest = 0;
  long double largest_relative = 0;
  // The position of the largest difference.
  int64_t position = 0;
  std::string text;  // "1 and 2"
};

class Elements {
 public:
  Elements(BundleDtype dtype, std::string bytes) : dtype_(dtype), bytes_(std::move(bytes)) {}

  const std::string& bytes() const { return bytes_; }
  long double value(int64_t i) const { return ElementValue(dtype_, at(i)); }
  std::string text(int64_t i) const { return ElementText(dtype_, at(i)); }

 private:
  const char* at(int64_t i) const { return bytes_.data() + i * DtypeSize(dtype_); }

  const BundleDtype dtype_;
  const std::string bytes_;
};

Difference Compare(const Elements& a, const Elements& b, int64_t count, double tolerance) {
  Difference difference;
  for (int64_t i = 0; i < count; ++i) {
    const long double left = a.value(i);
    const long double right = b.value(i);
    const long double distance = Distance(left, right);
    const long double scale = std::max(std::abs(left), std::abs(right));
    if (distance == 0) continue;
    if (IsBeyond(tolerance, distance, left, right)) ++difference.count;
    const long double relative = std::isinf(distance) ? distance : distance / scale;
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

// The start of a string: model files hold serialized messages as strings.
std::string Quoted(const std::string& text) {
  constexpr size_t kShownBytes = 40;
  const bool cut = text.size() > kShownBytes;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kShownBytes)), cut ? "…" : "", "\"");
}

class Differ {
 public:
  Differ(TensorSource* a, TensorSource* b, double tolerance, std::ostream* out)
      : a_(a), b_(b), tolerance_(tolerance), out_(out) {}

  absl::StatusOr<bool> Run() {
    std::map<std::string, std::pair<std::optional<TensorInfo>, std::optional<TensorInfo>>> all;
    for (TensorInfo& tensor : a_->List()) all[tensor.name].first = tensor;
    for (TensorInfo& tensor : b_->List()) all[tensor.name].second = tensor;
    ASSIGN_OR_RETURN(const std::set<std::string> columns, CompareTables());
    for (const std::string& column : columns) all.erase(column);
    for (const auto& [name, tensors] : all) {
      if (IsRecord(name)) {
        RETURN_IF_ERROR(
            CompareRecords(name, tensors.first.has_value(), tensors.second.has_value()));
      } else if (!tensors.second.has_value()) {
        Report(name, absl::StrCat("only in the first, ", TypeAndShape(*tensors.first)));
      } else if (!tensors.first.has_value()) {
        Report(name, absl::StrCat("only in the second, ", TypeAndShape(*tensors.second)));
      } else {
        RETURN_IF_ERROR(CompareTensors(*tensors.first, *tensors.second));
      }
    }
    *out_ << (differing_ > 0 ? "different: "
              : unread_ > 0  ? "not all compared: "
                             : "equal: ")
          << differing_ - differing_tables_ << " of " << all.size() - records_ << " tensors differ";
    if (tables_ > 0) *out_ << ", " << differing_tables_ << " of " << tables_ << " tables do";
    if (unread_ > 0) *out_ << ", " << unread_ << " could not be compared";
    if (differing_records_ > 0) *out_ << "; " << differing_records_ << " records of state do";
    *out_ << "\n";
    return differing_ + unread_ == 0;
  }

 private:
  void Report(absl::string_view name, absl::string_view what) {
    ++differing_;
    *out_ << absl::CHexEscape(name) << ": " << what << "\n";
  }

  // Returns the names of the tables' tensors.
  absl::StatusOr<std::set<std::string>> CompareTables() {
    std::map<std::string, std::pair<TableIn, TableIn>> tables;
    std::set<std::string> columns;
    ASSIGN_OR_RETURN(const StoredTables* const in_a, a_->Tables());
    ASSIGN_OR_RETURN(const StoredTables* const in_b, b_->Tables());
    // A file of another format has the tensors alone.
    if (in_a == nullptr && in_b == nullptr) return columns;
    for (const StoredTables* const stored : {in_a, in_b}) {
      if (stored == nullptr) continue;
      for (const auto* const list : {&stored->tables(), &stored->ghosts()}) {
        for (const StoredTable& table : *list) {
          auto& found = tables[table.spec.name];
          (stored == in_a ? found.first : found.second) = {stored, &table};
          columns.merge(TableTensorNames(*stored, table));
        }
      }
    }
    for (const auto& [name, found] : tables) {
      ++tables_;
      ASSIGN_OR_RETURN(const std::string what, DifferenceOf(found.first, found.second));
      if (what.empty()) continue;
      ++differing_tables_;
      Report(absl::StrCat("table ", name), what);
    }
    return columns;
  }

  absl::StatusOr<std::string> DifferenceOf(const TableIn& a, const TableIn& b) const {
    if (a.table != nullptr && b.table != nullptr) return DiffTables(a, b, tolerance_);
    const StoredTable& table = a.table != nullptr ? *a.table : *b.table;
    return absl::StrCat("only in the ", a.table != nullptr ? "first" : "second", ", ",
                        table.AllRows(), " rows of dim ", table.spec.dim);
  }

  absl::Status CompareTensors(const TensorInfo& a, const TensorInfo& b) {
    if (a.shape != b.shape) {
      Report(a.name, absl::StrCat("shapes differ, ", TypeAndShape(a), " and ", TypeAndShape(b)));
      return absl::OkStatus();
    }
    const bool numbers = IsNumeric(a.dtype) && IsNumeric(b.dtype);
    if (a.dtype != b.dtype && !numbers) {
      Report(a.name,
             absl::StrCat("types differ, ", DtypeName(a.dtype), " and ", DtypeName(b.dtype)));
      return absl::OkStatus();
    }
    if (a.dtype == BundleDtype::kString) return CompareStrings(a);
    absl::StatusOr<std::string> a_bytes = a_->Read(a.name);
    absl::StatusOr<std::string> b_bytes = b_->Read(b.name);
    for (const absl::Status& status : {a_bytes.status(), b_bytes.status()}) {
      if (absl::IsUnimplemented(status)) return SayNotCompared(a.name, status);
      RETURN_IF_ERROR(status);
    }
    const Elements left(a.dtype, *std::move(a_bytes));
    const Elements right(b.dtype, *std::move(b_bytes));
    if (a.dtype == b.dtype && left.bytes() == right.bytes()) return absl::OkStatus();
    if (numbers) {
      ReportDifference(a, b, Compare(left, right, a.shape.num_elements(), tolerance_));
    } else {
      Report(a.name, absl::StrCat("elements differ, both ", TypeAndShape(a)));
    }
    return absl::OkStatus();
  }

  // What a job or TensorFlow notes beside the tensors. Formats for tensors alone have none of it.
  absl::Status CompareRecords(const std::string& name, bool in_a, bool in_b) {
    ++records_;
    if (in_a && in_b) {
      ASSIGN_OR_RETURN(const std::vector<std::string> a, a_->ReadStrings(name));
      ASSIGN_OR_RETURN(const std::vector<std::string> b, b_->ReadStrings(name));
      if (a == b) return absl::OkStatus();
    }
    ++differing_records_;
    return absl::OkStatus();
  }

  absl::Status CompareStrings(const TensorInfo& tensor) {
    ASSIGN_OR_RETURN(const std::vector<std::string> a, a_->ReadStrings(tensor.name));
    ASSIGN_OR_RETURN(const std::vector<std::string> b, b_->ReadStrings(tensor.name));
    int64_t count = 0;
    size_t first = 0;
    for (size_t i = a.size(); i-- > 0;) {
      if (a[i] == b[i]) continue;
      ++count;
      first = i;
    }
    if (count == 0) return absl::OkStatus();
    Report(tensor.name, absl::StrCat(count, " of ", a.size(), " strings differ, the first at ",
                                     PositionText(tensor.shape, static_cast<int64_t>(first)), " (",
                                     Quoted(a[first]), " and ", Quoted(b[first]), ")"));
    return absl::OkStatus();
  }

  absl::Status SayNotCompared(absl::string_view name, const absl::Status& why) {
    ++unread_;
    *out_ << absl::CHexEscape(name) << ": not compared: " << why.message() << "\n";
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
  int64_t unread_ = 0;  // tensors that could not be compared
  size_t records_ = 0;
  int64_t tables_ = 0;
  int64_t differing_tables_ = 0;
  int64_t differing_records_ = 0;
};

}  // namespace

absl::StatusOr<bool> DiffTensors(TensorSource* a, TensorSource* b, double tolerance,
                                 std::ostream* out) {
  return Differ(a, b, tolerance, out).Run();
}

}  // namespace keelson
