#include "cli/ckpt_import.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/directory_change.h"
#include "cli/element.h"
#include "cli/import_plan.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/base/stop_signal.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/element_conversion.h"
#include "core/config/config_flags.h"
#include "core/config/initial_values.h"
#include "core/model/spec/model_spec.h"
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

struct Plan {
  ImportPlan tensors;
  // By the position in `tensors`: the values of variables that the source lacks. Null: it lacks
  // none.
  std::unique_ptr<WarmStart> initial;
};

bool IsMissing(const ImportedVariable& variable) { return variable.source.name.empty(); }

absl::StatusOr<Plan> MakePlan(const ImportOptions& options, TensorSource* source) {
  Plan plan;
  if (options.config_path.empty()) {
    ASSIGN_OR_RETURN(plan.tensors, PlanImport(source, options.renames));
    return plan;
  }
  ASSIGN_OR_RETURN(const v1::TrainConfig config, ResolveTrainConfig(options.config_path, {}));
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config.model()));
  ASSIGN_OR_RETURN(const std::vector<VariableSpec> variables,
                   WithInitialValues(config.initial_values(), model.variables, model.tables));
  ASSIGN_OR_RETURN(plan.tensors,
                   PlanImportOf(variables, options.initialize_missing, source, options.renames));
  const auto& planned = plan.tensors.variables;
  if (std::any_of(planned.begin(), planned.end(), IsMissing)) {
    ASSIGN_OR_RETURN(plan.initial,
                     WarmStart::Open(config.initial_values(), variables, config.train().seed()));
  }
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

// Elements of a tensor that are worth a warning, counted.
struct Losses {
  int64_t not_finite = 0;
  int64_t became_infinite = 0;
  int64_t rounded_integers = 0;
};

// `bytes` were converted to `values`.
void CountLosses(BundleDtype dtype, const char* bytes, absl::Span<const float> values,
                 Losses* losses) {
  const bool floating = dtype == BundleDtype::kFloat64 || dtype == BundleDtype::kFloat32 ||
                        dtype == BundleDtype::kFloat16 || dtype == BundleDtype::kBfloat16;
  for (size_t i = 0; i < values.size(); ++i) {
    if (floating && std::isfinite(values[i])) continue;
    const long double exact = ElementValue(dtype, bytes + i * DtypeSize(dtype));
    if (!floating) {
      if (exact != static_cast<long double>(values[i])) ++losses->rounded_integers;
    } else if (std::isfinite(exact)) {
      ++losses->became_infinite;
    } else {
      ++losses->not_finite;
    }
  }
}

void AddWarnings(const ImportedVariable& variable, const Losses& losses,
                 std::vector<std::string>* warnings) {
  const auto add = [&](int64_t count, absl::string_view what) {
    if (count == 0) return;
    warnings->push_back(absl::StrCat(variable.spec.name, ": ", count, " of ",
                                     variable.spec.shape.num_elements(), " elements ", what));
  };
  add(losses.not_finite, "are not finite");
  add(losses.became_infinite, "are too large for float32 and become infinite");
  add(losses.rounded_integers, "are integers that float32 rounds");
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
  Losses losses;
  const auto converted = [&](int64_t first, absl::Span<float> values) {
    const char* from = bytes.data() + first * DtypeSize(tensor.dtype);
    ConvertToFloat(tensor.dtype, from, values);
    CountLosses(tensor.dtype, from, values, &losses);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(WriteVariable(spec, converted, writer));
  AddWarnings(variable, losses, warnings);
  return absl::OkStatus();
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

void Report(const std::string& prefix, const ImportPlan& plan, std::ostream* out) {
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
  *out << "imported: " << SomeOf(imported) << "\n";
  if (!initialized.empty()) *out << "initial values: " << SomeOf(initialized) << "\n";
  if (!converted.empty()) *out << "converted to float32: " << SomeOf(converted) << "\n";
  if (!plan.left_out.empty()) *out << "left out: " << SomeOf(plan.left_out) << "\n";
}

}  // namespace

absl::Status ImportTensors(const ImportOptions& options, std::ostream* out) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorSource> source,
                   OpenTensorSource(options.source, options.foreign));
  ASSIGN_OR_RETURN(const Plan plan, MakePlan(options, source.get()));
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
  Report(prefix, plan.tensors, out);
  for (const std::string& warning : warnings) *out << "warning: " << warning << "\n";
  return absl::OkStatus();
}

}  // namespace keelson
