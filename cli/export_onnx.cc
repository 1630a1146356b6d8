#include "cli/export_onnx.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cli/output_file.h"
#include "cli/snapshot_config.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/stored_tables.h"
#include "core/checkpoint/table_columns.h"
#include "core/model/spec/model_spec.h"
#include "core/onnx/onnx_model.h"
#include "core/stored_model/snapshot_rows.h"
#include "core/table/row_id.h"
#include "core/tensor_files/snapshot_name.h"

namespace keelson {
namespace {

absl::StatusOr<std::vector<Tensor>> ReadVariables(const ModelSpec& model,
                                                  const BundleReader& bundle) {
  std::vector<Tensor> variables;
  for (const VariableSpec& variable : model.variables) {
    ASSIGN_OR_RETURN(variables.emplace_back(), bundle.ReadTensor(variable.name));
    const Shape& found = variables.back().shape();
    if (found == variable.shape) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(bundle.prefix(), ": variable '", variable.name, "': the model expects ",
                     variable.shape.ToString(), ", found ", found.ToString()));
  }
  return variables;
}

// What is expected of a row that is drawn.
float MeanOf(const Initializer& initializer) {
  return initializer.kind == Initializer::Kind::kUniform ? (initializer.a + initializer.b) / 2
                                                         : initializer.a;
}

// The ids that have a row, in row order.
absl::StatusOr<std::vector<uint64_t>> ReadIds(const StoredTables& stored,
                                              const StoredTable& table) {
  std::vector<std::string> missing;
  RETURN_IF_ERROR(stored.CheckColumns(table, {}, &missing));
  std::vector<uint64_t> ids;
  TableColumns columns;
  for (uint32_t partition = 0; partition < kRowPartitions; ++partition) {
    RETURN_IF_ERROR(stored.Read(table, {}, partition, &columns));
    ids.insert(ids.end(), columns.ids.begin(), columns.ids.end());
  }
  return ids;
}

absl::StatusOr<OnnxTable> ReadTable(size_t number, SnapshotRows* rows) {
  const TableSpec& spec = rows->tables()[number];
  OnnxTable table;
  const StoredTable* const found = rows->stored().Find(spec.name);
  if (found != nullptr) {
    ASSIGN_OR_RETURN(table.ids, ReadIds(rows->stored(), *found));
  }
  const auto dim = static_cast<size_t>(spec.dim);
  table.rows.resize(table.ids.size() * dim);
  constexpr size_t kAtATime = 65536;
  for (size_t begin = 0; begin < table.ids.size(); begin += kAtATime) {
    const auto ids = absl::MakeConstSpan(table.ids).subspan(begin, kAtATime);
    RETURN_IF_ERROR(rows->ReadRows(
        number, ids, absl::MakeSpan(table.rows).subspan(begin * dim, ids.size() * dim)));
  }
  table.absent.assign(dim, MeanOf(spec.absent()));
  return table;
}

// Says what is not as it is here.
void PrintTable(const TableSpec& spec, const OnnxTable& table, std::ostream* out) {
  const Initializer absent = spec.absent();
  *out << "table " << spec.name << ": " << table.ids.size() << " rows";
  if (absent.kind != Initializer::Kind::kConstant) {
    *out << "; other ids have " << MeanOf(absent)
         << ", the mean of the initial values that they have here";
  }
  *out << "\n";
}

absl::StatusOr<std::vector<OnnxTable>> ReadTables(const v1::TrainConfig& config,
                                                  const ModelSpec& model, const std::string& prefix,
                                                  std::ostream* out) {
  std::vector<OnnxTable> tables;
  if (model.tables.empty()) return tables;
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotRows> rows,
                   SnapshotRows::Open(config, model, prefix, FileSystem::Real()));
  for (size_t t = 0; t < model.tables.size(); ++t) {
    ASSIGN_OR_RETURN(tables.emplace_back(), ReadTable(t, rows.get()));
    PrintTable(rows->tables()[t], tables.back(), out);
  }
  return tables;
}

}  // namespace

absl::Status ExportOnnx(const OnnxOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOutput(options.out, options.force));
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(options.snapshot, options.foreign));
  ASSIGN_OR_RETURN(const v1::TrainConfig config, ReadConfigOf(prefix, options.config_path));
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config.model()));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> bundle, BundleReader::Open(prefix));
  OnnxValues values;
  ASSIGN_OR_RETURN(values.variables, ReadVariables(model, *bundle));
  ASSIGN_OR_RETURN(values.tables, ReadTables(config, model, prefix, out));
  ASSIGN_OR_RETURN(onnx::Model exported, MakeOnnxModel(model, values));
  exported.set_doc_string(absl::StrCat("Exported from ", BaseName(prefix)));
  const std::string bytes = exported.SerializeAsString();
  RETURN_IF_ERROR(WriteFileAtomically(options.out, bytes));
  *out << "wrote " << options.out << ": " << exported.graph().node_size() << " nodes, "
       << bytes.size() << " bytes, of " << prefix << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
