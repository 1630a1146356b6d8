#include "cli/ckpt_import.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/directory_change.h"
#include "cli/import_losses.h"
#include "cli/import_plan.h"
#include "cli/import_tables.h"
#include "cli/table_text.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/element_conversion.h"
#include "core/checkpoint/shard_state.h"
#include "core/config/config_flags.h"
#include "core/config/initial_values.h"
#include "core/model/spec/model_variables.h"
#include "core/table/row_id.h"
#include "core/tensor/table_spec.h"
#include "core/tensor_files/name_list.h"
#include "core/tensor_files/tensor_source.h"
#include "core/warm_start/warm_start.h"

namespace keelson {
namespace {

constexpr int64_t kChunkElements = 1 << 18;

absl::Status CheckOptions(const ImportOptions& options) {
  if (options.step < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--step: expected >= 0, found ", options.step));
  }
  if (options.initialize_missing && options.config_path.empty()) {
    return absl::InvalidArgumentError(
        "--initialize_missing: expected --config, which says what the model's variables are");
  }
  return absl::OkStatus();
}

absl::Status CheckDirectory(const CheckpointDirectory& directory, const ImportOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots, directory.ListNamed());
  ASSIGN_OR_RETURN(const std::optional<DoneMarker> done, directory.ReadDoneMarker());
  ASSIGN_OR_RETURN(const bool exists, directory.file_system()->Exists(
                                          IndexPath(directory.SnapshotPrefix(options.step))));
  if (exists) {
    return absl::AlreadyExistsError(absl::StrCat(directory.SnapshotPrefix(options.step),
                                                 ": exists already; --step chooses another one"));
  }
  if (options.force) return absl::OkStatus();
  if (!snapshots.empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.model_dir, ": expected no snapshots, found ", snapshots.size(),
                     "; --force adds one as the newest"));
  }
  if (done.has_value()) {
    return absl::AlreadyExistsError(absl::StrCat(
        options.model_dir, ": holds a job that is done; --force starts from here once more"));
  }
  return absl::OkStatus();
}

// The model that a configuration describes.
struct ImportedModel {
  v1::TrainConfig config;
  std::vector<VariableSpec> variables;
  std::vector<TableSpec> tables;
};

absl::StatusOr<ImportedModel> ReadModel(const std::string& config_path) {
  ImportedModel model;
  ASSIGN_OR_RETURN(model.config, ResolveTrainConfig(config_path, {}));
  ASSIGN_OR_RETURN(const ModelVariables spec, InferVariables(model.config.model()));
  const v1::InitialValuesConfig& initial = model.config.initial_values();
  ASSIGN_OR_RETURN(model.variables, WithInitialValues(initial, spec.variables, spec.tables));
  ASSIGN_OR_RETURN(model.tables, TablesWithInitialValues(initial, spec.variables, spec.tables));
  return model;
}

// The table that a text is.
absl::StatusOr<std::string> TableOfText(const ImportOptions& options, const ImportedModel* model) {
  if (!options.table.empty()) return options.table;
  std::vector<std::string> names;
  if (model != nullptr) {
    for (const TableSpec& table : model->tables) {
      if (table.dim == 1) names.push_back(table.name);
    }
  }
  if (names.size() == 1) return names[0];
  return absl::InvalidArgumentError(
      absl::StrCat("--table: expected the name of a table of dim 1 of the model of --config",
                   names.empty() ? "" : ", one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<std::unique_ptr<TensorSource>> OpenSource(const ImportOptions& options,
                                                         const ImportedModel* model) {
  if (!IsTableText(options.source)) {
    if (options.table.empty()) return OpenTensorSource(options.source, options.foreign);
    return absl::InvalidArgumentError("--table: expected with a SOURCE that is a text alone");
  }
  ASSIGN_OR_RETURN(const std::string table, TableOfText(options, model));
  return OpenTableText(options.source, table);
}

struct Plan {
  ImportPlan tensors;
  TableImportPlan tables;
  // By the position in `tensors`: the values of variables that the source lacks. Null: it lacks
  // none.
  std::unique_ptr<WarmStart> initial;
};

bool IsMissing(const ImportedVariable& variable) { return variable.source.name.empty(); }

// Null: there is no configuration.
absl::StatusOr<Plan> MakePlan(const ImportOptions& options, const ImportedModel* model,
                              TensorSource* source) {
  Plan plan;
  if (model == nullptr) {
    ASSIGN_OR_RETURN(plan.tables, PlanTablesOfSource(source, options.renames));
    ASSIGN_OR_RETURN(plan.tensors, PlanImport(source, plan.tables.renames,
                                              /*may_be_nothing=*/!plan.tables.tables.empty()));
  } else {
    const v1::TrainConfig& config = model->config;
    ASSIGN_OR_RETURN(plan.tables, PlanTables(model->tables, config.train().seed(),
                                             options.initialize_missing, source, options.renames));
    ASSIGN_OR_RETURN(plan.tensors, PlanImportOf(model->variables, options.initialize_missing,
                                                source, plan.tables.renames));
    const auto& planned = plan.tensors.variables;
    if (std::any_of(planned.begin(), planned.end(), IsMissing)) {
      ASSIGN_OR_RETURN(plan.initial, WarmStart::Open(config.initial_values(), model->variables,
                                                     config.train().seed()));
    }
  }
  std::vector<std::string>& left_out = plan.tensors.left_out;
  left_out.erase(
      std::remove_if(left_out.begin(), left_out.end(),
                     [&](const std::string& name) { return plan.tables.tensors.count(name) > 0; }),
      left_out.end());
  return plan;
}

// Calls `fill` for consecutive pieces of a variable, and writes them.
template <typename Fill>
absl::Status WriteVariable(const VariableSpec& spec, Fill fill, BundleDataWriter* writer) {
  RETURN_IF_ERROR(writer->BeginSlice(spec.name, spec.shape, 0, spec.shape.rows()));
  const int64_t count = spec.shape.num_elements();
  std::vector<float> chunk;
  for (int64_t first = 0; first < count; first += kChunkElements) {
    chunk.resize(std::min(kChunkElements, count - first));
    RETURN_IF_ERROR(fill(first, absl::MakeSpan(chunk)));
    RETURN_IF_ERROR(writer->AppendValues(chunk));
  }
  return writer->EndSlice();
}

absl::Status WriteInitial(const WarmStart& initial, size_t position, const VariableSpec& spec,
                          BundleDataWriter* writer) {
  return WriteVariable(
      spec,
      [&](int64_t first, absl::Span<float> values) {
        return initial.Read(position, first, values);
      },
      writer);
}

absl::Status WriteImported(const ImportedVariable& variable, TensorSource* source,
                           BundleDataWriter* writer, std::vector<std::string>* warnings) {
  const VariableSpec& spec = variable.spec;
  const TensorInfo& tensor = variable.source;
  ASSIGN_OR_RETURN(const std::string bytes, source->Read(tensor.name));
  ImportLosses losses;
  const auto converted = [&](int64_t first, absl::Span<float> values) {
    const char* from = bytes.data() + first * DtypeSize(tensor.dtype);
    ConvertToFloat(tensor.dtype, from, values);
    CountLosses(tensor.dtype, from, values, &losses);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WriteVariable(spec, converted, writer));
  AddWarnings(spec.name, spec.shape.num_elements(), losses, warnings);
  return absl::OkStatus();
}

// As one server would, which had all rows.
absl::Status WriteTables(int64_t step, const Plan& plan, TensorSource* source,
                         BundleDataWriter* writer, std::vector<std::string>* warnings) {
  if (plan.tables.tables.empty()) return absl::OkStatus();
  v1::ShardState state;
  state.set_format(kGhostlessShardStateFormat);
  state.set_steps_done(step);
  state.set_num_row_partitions(kRowPartitions);
  for (const ImportedVariable& variable : plan.tensors.variables) {
    state.add_variables(variable.spec.name);
  }
  for (const ImportedTable& table : plan.tables.tables) {
    RETURN_IF_ERROR(WriteImportedTable(table, step, source, writer, &state, warnings));
  }
  const std::string name = ShardStateName(0, 1);
  ASSIGN_OR_RETURN(const std::string bytes, SerializeState(state, name));
  return writer->AddString(name, bytes);
}

absl::Status WriteSnapshot(const std::string& prefix, int64_t step, const Plan& plan,
                           TensorSource* source, std::vector<std::string>* warnings) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer,
                   BundleDataWriter::Create(FileSystem::Real(), DataPath(prefix, 0, 1), 0));
  for (size_t i = 0; i < plan.tensors.variables.size(); ++i) {
    const ImportedVariable& variable = plan.tensors.variables[i];
    RETURN_IF_ERROR(IsMissing(variable)
                        ? WriteInitial(*plan.initial, i, variable.spec, writer.get())
                        : WriteImported(variable, source, writer.get(), warnings));
  }
  RETURN_IF_ERROR(WriteTables(step, plan, source, writer.get(), warnings));
  RETURN_IF_ERROR(writer->AddInt64("global_step", step));
  ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> entries, writer->Finish());
  return WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries));
}

absl::Status WriteAndCommit(const ImportOptions& options, const Plan& plan, TensorSource* source,
                            CheckpointDirectory* directory, std::vector<std::string>* warnings) {
  RetentionPolicy keep_all;
  keep_all.keep_max = 0;
  RETURN_IF_ERROR(
      WriteSnapshot(directory->SnapshotPrefix(options.step), options.step, plan, source, warnings));
  if (options.strict && !warnings->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--strict: ", absl::StrJoin(*warnings, "; ")));
  }
  RETURN_IF_ERROR(directory->Commit(options.step, keep_all));
  return options.force ? directory->RemoveDoneMarker() : absl::OkStatus();
}

void Report(const std::string& prefix, const ImportPlan& plan,
            const std::vector<ImportedTable>& tables, std::ostream* out) {
  std::vector<std::string> imported;
  std::vector<std::string> initialized;
  std::vector<std::string> converted;
  for (const ImportedVariable& variable : plan.variables) {
    const TensorInfo& tensor = variable.source;
    (tensor.name.empty() ? initialized : imported).push_back(variable.spec.name);
    if (!tensor.name.empty() && tensor.dtype != BundleDtype::kFloat32) {
      converted.push_back(absl::StrCat(variable.spec.name, " from ", DtypeName(tensor.dtype)));
    }
  }
  *out << "wrote " << prefix << "\n";
  std::vector<std::string> with_rows;
  for (const ImportedTable& table : tables) {
    (table.empty() ? initialized : with_rows).push_back(table.spec.name);
  }
  if (!imported.empty()) *out << "imported: " << SomeOf(imported) << "\n";
  if (!with_rows.empty()) *out << "imported tables: " << SomeOf(with_rows) << "\n";
  if (!initialized.empty()) *out << "initial values: " << SomeOf(initialized) << "\n";
  if (!converted.empty()) *out << "converted to float32: " << SomeOf(converted) << "\n";
  if (!plan.left_out.empty()) *out << "left out: " << SomeOf(plan.left_out) << "\n";
}

}  // namespace

absl::Status ImportTensors(const ImportOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOptions(options));
  std::optional<ImportedModel> read;
  if (!options.config_path.empty()) {
    ASSIGN_OR_RETURN(read, ReadModel(options.config_path));
  }
  const ImportedModel* const model = read.has_value() ? &*read : nullptr;
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> source, OpenSource(options, model));
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(options, model, source.get()));
  CheckpointDirectory directory(FileSystem::Real(), options.model_dir, Clock::Real());
  StopSignal stop;
  ASSIGN_OR_RETURN(const auto owner, OwnForChange(options.model_dir, "keelson_ckpt import", &stop));
  RETURN_IF_ERROR(CheckDirectory(directory, options));
  RETURN_IF_ERROR(CreateDirectories(options.model_dir));
  const std::string prefix = directory.SnapshotPrefix(options.step);
  std::vector<std::string> warnings;
  const absl::Status status = WriteAndCommit(options, plan, source.get(), &directory, &warnings);
  if (!status.ok()) {
    RemoveFile(IndexPath(prefix)).IgnoreError();
    RemoveFile(DataPath(prefix, 0, 1)).IgnoreError();
    return status;
  }
  Report(prefix, plan.tensors, plan.tables.tables, out);
  for (const std::string& warning : warnings) *out << "warning: " << warning << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
