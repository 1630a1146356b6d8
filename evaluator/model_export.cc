#include "evaluator/model_export.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kExportFile[] = "export.json";
constexpr char kConfigFile[] = "train_config.textproto";
constexpr char kGlobalStep[] = "global_step";
constexpr absl::string_view kTemporary = ".tempstate";
constexpr int64_t kChunkElements = 1 << 18;
constexpr uint64_t kMaxExportFileBytes = uint64_t{1} << 20;

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot remove ", path));
}

std::optional<ModelExport> ParseExport(const std::string& text) {
  const OrderedJson object = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  const auto step = object.find("step");
  const auto time = object.find("time");
  const auto metrics = object.find("metrics");
  if (step == object.end() || !step->is_number_integer() || time == object.end() ||
      !time->is_number() || metrics == object.end() || !metrics->is_object()) {
    return std::nullopt;
  }
  ModelExport parsed;
  const auto snapshot = object.find("snapshot");
  if (snapshot != object.end() && snapshot->is_string()) {
    parsed.snapshot_id = ParseSnapshotId(snapshot->get<std::string>());
  }
  parsed.step = step->get<int64_t>();
  parsed.time = absl::FromUnixMicros(std::llround(time->get<double>() * 1e6));
  for (const auto& [name, value] : metrics->items()) {
    parsed.metrics[name] =
        value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  }
  return parsed;
}

std::string FormatExport(const EvaluationRecord& record, absl::Time time, absl::string_view kind,
                         const std::string& source) {
  OrderedJson object;
  object["step"] = record.step;
  object["time"] = static_cast<double>(absl::ToUnixMicros(time)) / 1e6;
  object["kind"] = kind;
  object["metrics"] = record.metrics;
  object["source"] = source;
  if (record.snapshot_id != 0) object["snapshot"] = FormatSnapshotId(record.snapshot_id);
  return absl::StrCat(object.dump(2, ' ', false, OrderedJson::error_handler_t::replace), "\n");
}

absl::Status CopyVariable(const BundleReader& reader, const VariableSpec& variable,
                          BundleDataWriter* writer) {
  RETURN_IF_ERROR(writer->BeginSlice(variable.name, variable.shape, 0, variable.shape.rows()));
  const int64_t count = variable.shape.num_elements();
  std::vector<float> chunk;
  for (int64_t first = 0; first < count; first += kChunkElements) {
    chunk.resize(std::min(kChunkElements, count - first));
    RETURN_IF_ERROR(reader.ReadElements(variable.name, first, absl::MakeSpan(chunk)));
    RETURN_IF_ERROR(writer->AppendValues(chunk));
  }
  return writer->EndSlice();
}

absl::Status WriteValues(FileSystem* file_system, const std::string& source,
                         const std::vector<VariableSpec>& variables, int64_t step,
                         const std::string& prefix) {
  ASSIGN_OR_RETURN(const auto reader, BundleReader::Open(source));
  ASSIGN_OR_RETURN(const auto writer,
                   BundleDataWriter::Create(file_system, DataPath(prefix, 0, 1), 0));
  for (const VariableSpec& variable : variables) {
    RETURN_IF_ERROR(CopyVariable(*reader, variable, writer.get()));
  }
  RETURN_IF_ERROR(writer->AddInt64(kGlobalStep, step));
  ASSIGN_OR_RETURN(std::vector<BundleIndexEntry> entries, writer->Finish());
  return WriteBundleIndex(file_system, prefix, 1, std::move(entries));
}

}  // namespace

ExportDirectory::ExportDirectory(FileSystem* file_system, std::string path, const Clock* clock)
    : file_system_(file_system), path_(std::move(path)), clock_(clock) {}

absl::StatusOr<std::map<int64_t, ModelExport>> ExportDirectory::List() const {
  std::map<int64_t, ModelExport> exports;
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(path_));
  if (!exists) return exports;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(path_));
  for (const std::string& name : names) {
    int64_t step;
    if (!absl::SimpleAtoi(name, &step)) continue;
    const absl::StatusOr<std::string> text =
        ReadBoundedFile(JoinPath(PathOf(step), kExportFile), kMaxExportFileBytes, file_system_);
    if (absl::IsNotFound(text.status())) continue;
    RETURN_IF_ERROR(text.status());
    std::optional<ModelExport> found = ParseExport(*text);
    if (found.has_value() && found->step == step) exports.emplace(step, *std::move(found));
  }
  return exports;
}

absl::Status ExportDirectory::RemoveHalfWritten() {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(path_));
  if (!exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(path_));
  ASSIGN_OR_RETURN(const auto complete, List());
  for (const std::string& name : names) {
    int64_t step;
    const bool lacks_parts = absl::SimpleAtoi(name, &step) && complete.count(step) == 0;
    if (!lacks_parts && !absl::StrContains(name, kTemporary)) continue;
    RETURN_IF_ERROR(RemoveTree(JoinPath(path_, name)));
  }
  return absl::OkStatus();
}

absl::Status ExportDirectory::Write(const SnapshotInfo& snapshot,
                                    const std::vector<VariableSpec>& variables,
                                    const v1::TrainConfig& config, const EvaluationRecord& record) {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(PathOf(record.step)));
  if (exists) return absl::OkStatus();
  const std::string temporary = TemporaryPath(record.step);
  absl::Status status = Fill(temporary, snapshot, variables, config, record);
  if (status.ok()) status = file_system_->Rename(temporary, PathOf(record.step));
  if (!status.ok()) {
    RemoveTree(temporary).IgnoreError();
    return status;
  }
  return file_system_->SyncDirectory(path_);
}

absl::Status ExportDirectory::Fill(const std::string& path, const SnapshotInfo& snapshot,
                                   const std::vector<VariableSpec>& variables,
                                   const v1::TrainConfig& config, const EvaluationRecord& record) {
  RETURN_IF_ERROR(file_system_->CreateDirectories(path));
  CheckpointDirectory directory(file_system_, path, clock_);
  RETURN_IF_ERROR(WriteValues(file_system_, snapshot.prefix, variables, snapshot.step,
                              directory.SnapshotPrefix(snapshot.step)));
  RETURN_IF_ERROR(directory.Commit(snapshot.step, RetentionPolicy()));
  std::string config_text;
  google::protobuf::TextFormat::PrintToString(config, &config_text);
  RETURN_IF_ERROR(WriteFileAtomically(JoinPath(path, kConfigFile), config_text, file_system_));
  const std::string text = FormatExport(record, clock_->Now(), BaseName(path_), snapshot.prefix);
  return WriteFileAtomically(JoinPath(path, kExportFile), text, file_system_);
}

absl::Status ExportDirectory::Remove(int64_t step) {
  ASSIGN_OR_RETURN(const bool exists, file_system_->Exists(PathOf(step)));
  if (!exists) return absl::OkStatus();
  // Removed in one step, so that no reader sees a part of it.
  const std::string temporary = TemporaryPath(step);
  RETURN_IF_ERROR(file_system_->Rename(PathOf(step), temporary));
  return RemoveTree(temporary);
}

std::string ExportDirectory::PathOf(int64_t step) const {
  return JoinPath(path_, absl::StrCat(step));
}

std::string ExportDirectory::TemporaryPath(int64_t step) const {
  return absl::StrCat(PathOf(step), kTemporary, RandomId());
}

}  // namespace keelson
