#include "cli/table_diff.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "cli/distance.h"
#include "cli/element.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

constexpr size_t kShownIds = 5;

std::string FloatText(float value) {
  return ElementText(BundleDtype::kFloat32, reinterpret_cast<const char*>(&value));
}

// Ids of rows, counted, of which the first are shown.
class IdList {
 public:
  void Add(uint64_t id) {
    if (++count_ <= kShownIds) shown_.push_back(id);
  }
  int64_t count() const { return static_cast<int64_t>(count_); }
  // "(ids 1, 2, …)".
  std::string Text() const {
    return absl::StrCat(count_ == 1 ? "(id " : "(ids ", absl::StrJoin(shown_, ", "),
                        count_ > kShownIds ? ", …)" : ")");
  }

 private:
  size_t count_ = 0;
  std::vector<uint64_t> shown_;
};

std::map<std::string, TableSlot> SlotsByName(const TableIn& in) {
  std::map<std::string, TableSlot> slots;
  for (TableSlot& slot : in.stored->SlotsOf(*in.table)) slots.emplace(slot.name, slot);
  return slots;
}

class TableDiffer {
 public:
  TableDiffer(const TableIn& a, const TableIn& b, double tolerance)
      : a_(a), b_(b), tolerance_(tolerance) {}

  absl::StatusOr<std::string> Run() {
    if (a_.table->spec.dim != b_.table->spec.dim) {
      return absl::StrCat("dims differ, ", a_.table->spec.dim, " and ", b_.table->spec.dim);
    }
    if (a_.table->seed != b_.table->seed ||
        !(a_.table->spec.initializer == b_.table->spec.initializer)) {
      findings_.push_back("initial values differ, by their seeds or initializers");
    }
    ChooseSlots();
    for (const TableIn& in : {a_, b_}) {
      std::vector<std::string> missing;
      RETURN_IF_ERROR(in.stored->CheckColumns(*in.table, slots_, &missing));
    }
    TableColumns a, b;
    for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
      RETURN_IF_ERROR(a_.stored->Read(*a_.table, slots_, partition, &a));
      RETURN_IF_ERROR(b_.stored->Read(*b_.table, slots_, partition, &b));
      Compare(a, b);
    }
    return Text();
  }

 private:
  // Those of both, of the same size.
  void ChooseSlots() {
    const std::map<std::string, TableSlot> a = SlotsByName(a_);
    std::map<std::string, TableSlot> b = SlotsByName(b_);
    for (const auto& [name, slot] : a) {
      const auto found = b.extract(name);
      if (found.empty()) {
        findings_.push_back(absl::StrCat("slot ", name, " only in the first"));
      } else if (found.mapped().floats != slot.floats) {
        findings_.push_back(absl::StrCat("slot ", name, " has ", slot.floats, " and ",
                                         found.mapped().floats, " numbers in a row"));
      } else {
        slots_.push_back(slot);
      }
    }
    for (const auto& [name, slot] : b) {
      findings_.push_back(absl::StrCat("slot ", name, " only in the second"));
    }
  }

  // Both ascend by ids.
  void Compare(const TableColumns& a, const TableColumns& b) {
    size_t i = 0, j = 0;
    while (i < a.ids.size() || j < b.ids.size()) {
      if (j == b.ids.size() || (i < a.ids.size() && a.ids[i] < b.ids[j])) {
        only_a_.Add(a.ids[i++]);
      } else if (i == a.ids.size() || b.ids[j] < a.ids[i]) {
        only_b_.Add(b.ids[j++]);
      } else {
        CompareRows(a, i++, b, j++);
      }
    }
  }

  void CompareRows(const TableColumns& a, size_t i, const TableColumns& b, size_t j) {
    ++common_;
    const uint64_t id = a.ids[i];
    bool differs = a.last_steps[i] != b.last_steps[j] || a.updates[i] != b.updates[j];
    const auto dim = static_cast<size_t>(a_.table->spec.dim);
    differs |= CompareFloats("values", id, absl::MakeConstSpan(a.values).subspan(i * dim, dim),
                             absl::MakeConstSpan(b.values).subspan(j * dim, dim));
    for (size_t s = 0; s < slots_.size(); ++s) {
      const auto floats = static_cast<size_t>(slots_[s].floats);
      differs |= CompareFloats(slots_[s].name, id,
                               absl::MakeConstSpan(a.slots[s]).subspan(i * floats, floats),
                               absl::MakeConstSpan(b.slots[s]).subspan(j * floats, floats));
    }
    if (differs) different_.Add(id);
  }

  bool CompareFloats(absl::string_view column, uint64_t id, absl::Span<const float> a,
                     absl::Span<const float> b) {
    bool differs = false;
    for (size_t e = 0; e < a.size(); ++e) {
      const long double distance = Distance(a[e], b[e]);
      if (distance == 0) continue;
      differs |= IsBeyond(tolerance_, distance, a[e], b[e]);
      if (distance <= largest_) continue;
      largest_ = distance;
      largest_at_ =
          absl::StrCat(column, " of id ", id, " (", FloatText(a[e]), " and ", FloatText(b[e]), ")");
    }
    return differs;
  }

  std::string Text() {
    const auto add_only = [&](const IdList& ids, absl::string_view where) {
      if (ids.count() == 0) return;
      findings_.push_back(absl::StrCat(ids.count(), ids.count() == 1 ? " row" : " rows",
                                       " only in the ", where, " ", ids.Text()));
    };
    add_only(only_a_, "first");
    add_only(only_b_, "second");
    if (different_.count() > 0) {
      findings_.push_back(absl::StrCat(different_.count(), " of ", common_, " rows in both differ ",
                                       different_.Text()));
      findings_.back() += largest_ == 0
                              ? ", in their steps or updates alone"
                              : absl::StrFormat(", by at most %.6g in %s", largest_, largest_at_);
    }
    return absl::StrJoin(findings_, "; ");
  }

  const TableIn a_;
  const TableIn b_;
  const double tolerance_;
  std::vector<TableSlot> slots_;
  std::vector<std::string> findings_;
  IdList only_a_, only_b_, different_;
  int64_t common_ = 0;
  long double largest_ = 0;
  std::string largest_at_;
};

}  // namespace

absl::StatusOr<std::string> DiffTables(const TableIn& a, const TableIn& b, double tolerance) {
  return TableDiffer(a, b, tolerance).Run();
}

}  // namespace keelson
