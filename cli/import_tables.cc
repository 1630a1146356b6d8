#include "cli/import_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/import_losses.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/checkpoint/table_columns.h"
#include "core/table/row_id.h"
#include "core/tensor/initializer_proto.h"
#include "core/tensor_files/table_tensors.h"

namespace keelson {
namespace {

constexpr char kDeepRecKeys[] = "-keys";
constexpr char kDeepRecValues[] = "-values";
constexpr char kDeepRecVersions[] = "-versions";

using TensorsByName = std::map<std::string, TensorInfo>;

TensorsByName ByName(TensorSource* source) {
  TensorsByName tensors;
  for (TensorInfo& tensor : source->List()) tensors.emplace(tensor.name, tensor);
  return tensors;
}

// The tensor, or one without a name.
TensorInfo Find(const TensorsByName& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? TensorInfo() : found->second;
}

// The tensors of a table's rows by its name in the source, if they are there.
struct Origin {
  TensorInfo keys, values, versions;
};
Origin FindOrigin(const TensorsByName& tensors, const std::string& name) {
  const Origin own = {
      Find(tensors, KeysTensorName(name)), Find(tensors, ValuesTensorName(name)), {}};
  if (!own.keys.name.empty() && !own.values.name.empty()) return own;
  const Origin deep_rec = {Find(tensors, name + kDeepRecKeys), Find(tensors, name + kDeepRecValues),
                           Find(tensors, name + kDeepRecVersions)};
  if (!deep_rec.keys.name.empty() && !deep_rec.values.name.empty()) return deep_rec;
  return {};
}

// The keys of the first part of a partitioned embedding variable of DeepRec; empty: there is none.
std::string FirstPartOf(const TensorsByName& tensors, const std::string& name) {
  const std::string first = absl::StrCat(name, "/part_0", kDeepRecKeys);
  return Find(tensors, first).name;
}

// What of the origin does not fit the table; empty: nothing.
std::string ProblemOf(const Origin& origin, const TableSpec& spec) {
  const auto differs = [&](const TensorInfo& tensor, absl::string_view expected) {
    return absl::StrCat(spec.name, " expected ", tensor.name, " ", expected, ", found ",
                        TypeAndShape(tensor));
  };
  if (origin.keys.dtype != BundleDtype::kInt64 || origin.keys.shape.rank() != 1) {
    return differs(origin.keys, "int64 [n]");
  }
  const int64_t rows = origin.keys.shape.rows();
  const Shape shape({rows, spec.dim});
  if (origin.values.shape != shape || !IsNumeric(origin.values.dtype)) {
    return differs(origin.values, absl::StrCat("float32 ", shape.ToString()));
  }
  const bool versions = !origin.versions.name.empty();
  if (versions && (origin.versions.dtype != BundleDtype::kInt64 ||
                   origin.versions.shape != origin.keys.shape)) {
    return differs(origin.versions, absl::StrCat("int64 ", origin.keys.shape.ToString()));
  }
  return "";
}

class TablePlanner {
 public:
  TablePlanner(TensorSource* source, const StoredTables* stored)
      : stored_(stored), tensors_(ByName(source)) {}

  // Takes the renames of tables.
  void TakeRenames(const std::vector<std::string>& renames) {
    for (const std::string& rename : renames) {
      const size_t equals = std::min(rename.find('='), rename.size());
      const std::string old = rename.substr(0, equals);
      const bool table = (stored_ != nullptr && stored_->Find(old) != nullptr) ||
                         !FindOrigin(tensors_, old).keys.name.empty() ||
                         !FirstPartOf(tensors_, old).empty();
      if (table && equals < rename.size()) {
        old_names_[rename.substr(equals + 1)] = old;
      } else {
        plan_.renames.push_back(rename);
      }
    }
  }

  // What is wrong; empty: nothing.
  std::string Add(const TableSpec& spec, uint64_t seed, bool may_be_missing) {
    const auto renamed = old_names_.find(spec.name);
    const std::string name = renamed == old_names_.end() ? spec.name : renamed->second;
    ImportedTable table;
    table.spec = spec;
    table.seed = seed;
    const StoredTable* const stored = stored_ == nullptr ? nullptr : stored_->Find(name);
    if (stored != nullptr) {
      if (stored->spec.dim != spec.dim) {
        return absl::StrCat(spec.name, " expected rows of dim ", spec.dim, ", found ",
                            stored->spec.dim);
      }
      table.stored = stored_;
      table.table = stored;
      plan_.tensors.merge(TableTensorNames(*stored_, *stored));
    } else {
      const Origin origin = FindOrigin(tensors_, name);
      const std::string part = FirstPartOf(tensors_, name);
      if (origin.keys.name.empty() && !part.empty()) {
        return absl::StrCat(spec.name, " expected one tensor of ids, found ", part,
                            " of a partitioned variable, whose parts are not put together");
      }
      if (origin.keys.name.empty()) {
        if (!may_be_missing) return absl::StrCat(spec.name, " is missing");
      } else {
        const std::string problem = ProblemOf(origin, spec);
        if (!problem.empty()) return problem;
        table.keys = origin.keys;
        table.values = origin.values;
        table.versions = origin.versions;
        plan_.tensors.insert({origin.keys.name, origin.values.name, origin.versions.name});
      }
    }
    plan_.tables.push_back(std::move(table));
    return "";
  }

  TableImportPlan Take() { return std::move(plan_); }

 private:
  const StoredTables* const stored_;
  const TensorsByName tensors_;
  std::map<std::string, std::string> old_names_;  // by new ones
  TableImportPlan plan_;
};

// Rows in memory, in row order.
class LoadedRows {
 public:
  // From tensors.
  static absl::StatusOr<std::unique_ptr<LoadedRows>> Load(const ImportedTable& table, int64_t step,
                                                          TensorSource* source,
                                                          std::vector<std::string>* warnings) {
    auto rows = std::make_unique<LoadedRows>(table, step);
    ASSIGN_OR_RETURN(const std::string ids, source->Read(table.keys.name));
    rows->ids_.resize(ids.size() / sizeof(uint64_t));
    if (!ids.empty()) std::memcpy(rows->ids_.data(), ids.data(), ids.size());
    RETURN_IF_ERROR(rows->Order(table));
    ASSIGN_OR_RETURN(const std::string bytes, source->Read(table.values.name));
    rows->values_.resize(rows->ids_.size() * rows->dim_);
    ConvertToFloat(table.values.dtype, bytes.data(), absl::MakeSpan(rows->values_));
    ImportLosses losses;
    CountLosses(table.values.dtype, bytes.data(), rows->values_, &losses);
    AddWarnings(table.spec.name, table.values.shape.num_elements(), losses, warnings);
    if (!table.versions.name.empty()) {
      ASSIGN_OR_RETURN(const std::string versions, source->Read(table.versions.name));
      rows->versions_.resize(rows->ids_.size());
      if (!versions.empty()) {
        std::memcpy(rows->versions_.data(), versions.data(), versions.size());
      }
    }
    return rows;
  }
  // From a snapshot's table, whose partitions are others.
  static absl::StatusOr<std::unique_ptr<LoadedRows>> LoadStored(const ImportedTable& table,
                                                                int64_t step) {
    auto rows = std::make_unique<LoadedRows>(table, step);
    TableColumns columns;
    for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
      RETURN_IF_ERROR(table.stored->Read(*table.table, {}, partition, &columns));
      rows->ids_.insert(rows->ids_.end(), columns.ids.begin(), columns.ids.end());
      rows->values_.insert(rows->values_.end(), columns.values.begin(), columns.values.end());
    }
    RETURN_IF_ERROR(rows->Order(table));
    return rows;
  }
  LoadedRows(const ImportedTable& table, int64_t step)
      : dim_(static_cast<size_t>(table.spec.dim)), last_(std::max<int64_t>(step - 1, 0)) {}

  void Read(uint32_t partition, TableColumns* columns) const {
    columns->Clear(0);
    for (size_t i = begins_[partition]; i < begins_[partition + 1]; ++i) {
      const size_t row = order_[i];
      columns->ids.push_back(ids_[row]);
      const auto begin = values_.begin() + static_cast<int64_t>(row * dim_);
      columns->values.insert(columns->values.end(), begin, begin + static_cast<int64_t>(dim_));
      const int64_t version = versions_.empty() ? last_ : versions_[row];
      columns->last_steps.push_back(static_cast<uint32_t>(std::clamp(version, int64_t{0}, last_)));
      columns->updates.push_back(0);
    }
  }

 private:
  absl::Status Order(const ImportedTable& table) {
    const uint64_t salt = TableSalt(table.spec.name);
    order_.resize(ids_.size());
    for (size_t i = 0; i < ids_.size(); ++i) order_[i] = i;
    const auto place = [&](size_t row) {
      return std::pair(RowPartitionOf(MixId(ids_[row], salt)), ids_[row]);
    };
    std::sort(order_.begin(), order_.end(),
              [&](size_t a, size_t b) { return place(a) < place(b); });
    for (size_t i = 0; i < order_.size(); ++i) {
      if (i > 0 && ids_[order_[i]] == ids_[order_[i - 1]]) {
        return absl::InvalidArgumentError(absl::StrCat("tensor '", table.keys.name,
                                                       "': expected distinct ids, found ",
                                                       ids_[order_[i]], " twice"));
      }
      ++begins_[place(order_[i]).first + 1];
    }
    for (size_t p = 0; p < kRowPartitions; ++p) begins_[p + 1] += begins_[p];
    return absl::OkStatus();
  }

  const size_t dim_;
  const int64_t last_;  // the step before the snapshot's
  std::vector<uint64_t> ids_;
  std::vector<float> values_;
  std::vector<int64_t> versions_;  // empty: none
  std::vector<size_t> order_;
  std::array<size_t, kRowPartitions + 1> begins_ = {};
};

using PartitionReader = absl::FunctionRef<absl::Status(uint32_t partition, TableColumns* columns)>;

absl::Status WriteRows(const ImportedTable& table, PartitionReader read, BundleDataWriter* writer,
                       v1::ShardState* state) {
  v1::ShardState::Table* const out = state->add_tables();
  out->set_name(table.spec.name);
  out->set_dim(table.spec.dim);
  *out->mutable_initializer() = InitializerToProto(table.spec.initializer);
  out->set_seed(table.seed);
  TableRowRange range;
  TableColumns columns;
  for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
    RETURN_IF_ERROR(read(partition, &columns));
    out->add_rows(columns.rows());
    range.total += columns.rows();
  }
  out->set_total_rows(range.total);
  for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
    // Empty tensors are written once.
    if (range.total == 0 && partition > 0) break;
    RETURN_IF_ERROR(read(partition, &columns));
    RETURN_IF_ERROR(WriteTableColumns(table.spec.name, table.spec.dim, {}, columns, range, writer,
                                      [] { return absl::OkStatus(); }));
    range.first += columns.rows();
  }
  return absl::OkStatus();
}

absl::Status WriteLoaded(const ImportedTable& table, const LoadedRows& rows,
                         BundleDataWriter* writer, v1::ShardState* state) {
  const auto read = [&](uint32_t partition, TableColumns* columns) {
    rows.Read(partition, columns);
    return absl::OkStatus();
  };
  return WriteRows(table, read, writer, state);
}

}  // namespace

absl::StatusOr<TableImportPlan> PlanTables(const std::vector<TableSpec>& model, uint64_t seed,
                                           bool initialize_missing, TensorSource* source,
                                           const std::vector<std::string>& renames) {
  ASSIGN_OR_RETURN(const StoredTables* const stored, source->Tables());
  TablePlanner planner(source, stored);
  planner.TakeRenames(renames);
  std::vector<std::string> problems;
  for (const TableSpec& spec : model) {
    std::string problem = planner.Add(spec, seed, initialize_missing);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  if (problems.empty()) return planner.Take();
  return absl::InvalidArgumentError(
      absl::StrCat("the source does not fit the model's tables: ", absl::StrJoin(problems, "; "),
                   "; --map old=new renames one"));
}

absl::StatusOr<TableImportPlan> PlanTablesOfSource(TensorSource* source,
                                                   const std::vector<std::string>& renames) {
  ASSIGN_OR_RETURN(const StoredTables* const stored, source->Tables());
  TablePlanner planner(source, stored);
  if (stored != nullptr) {
    for (const StoredTable& table : stored->tables()) {
      planner.Add(table.spec, table.seed, /*may_be_missing=*/false);
    }
    TableImportPlan plan = planner.Take();
    plan.renames = renames;
    return plan;
  }
  const TensorsByName tensors = ByName(source);
  for (const auto& [name, tensor] : tensors) {
    absl::string_view table = name;
    if (!absl::ConsumeSuffix(&table, kDeepRecKeys) && !absl::ConsumeSuffix(&table, "/keys")) {
      continue;
    }
    const Origin origin = FindOrigin(tensors, std::string(table));
    if (origin.keys.name != name || tensor.dtype != BundleDtype::kInt64 ||
        tensor.shape.rank() != 1) {
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors '", name, "' and '", origin.values.name,
                     "' are an embedding table's: --config says what it starts new rows with"));
  }
  TableImportPlan plan;
  plan.renames = renames;
  return plan;
}

absl::Status WriteImportedTable(const ImportedTable& table, int64_t step, TensorSource* source,
                                BundleDataWriter* writer, v1::ShardState* state,
                                std::vector<std::string>* warnings) {
  if (table.stored != nullptr) {
    std::vector<std::string> missing;
    RETURN_IF_ERROR(table.stored->CheckColumns(*table.table, {}, &missing));
    if (table.table->spec.name != table.spec.name) {
      ASSIGN_OR_RETURN(const auto rows, LoadedRows::LoadStored(table, step));
      return WriteLoaded(table, *rows, writer, state);
    }
    const auto last = static_cast<uint32_t>(std::max<int64_t>(step - 1, 0));
    const auto read = [&](uint32_t partition, TableColumns* columns) -> absl::Status {
      RETURN_IF_ERROR(table.stored->Read(*table.table, {}, partition, columns));
      std::fill(columns->last_steps.begin(), columns->last_steps.end(), last);
      std::fill(columns->updates.begin(), columns->updates.end(), 0);
      return absl::OkStatus();
    };
    return WriteRows(table, read, writer, state);
  }
  if (table.empty()) {
    const auto none = [](uint32_t, TableColumns* columns) {
      columns->Clear(0);
      return absl::OkStatus();
    };
    return WriteRows(table, none, writer, state);
  }
  ASSIGN_OR_RETURN(const auto rows, LoadedRows::Load(table, step, source, warnings));
  return WriteLoaded(table, *rows, writer, state);
}

}  // namespace keelson
