#include "tests/support/model_directory.h"

#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/summary/tf_record.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

absl::Status NotAnEvaluation(absl::string_view line) {
  return absl::DataLossError(absl::StrCat("not an evaluation: ", line));
}

absl::StatusOr<EvaluationLine> ParseEvaluation(absl::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("step")) return NotAnEvaluation(line);
  EvaluationLine evaluation;
  evaluation.step = json["step"].get<int64_t>();
  for (const auto& [key, value] : json.items()) {
    if (value.is_number()) evaluation.metrics[key] = value.get<double>();
  }
  return evaluation;
}

absl::Status AppendEvents(const std::string& path, std::vector<v1::Event>* events) {
  ASSIGN_OR_RETURN(const std::vector<std::string> records, ReadTfRecords(path));
  for (const std::string& record : records) {
    if (!events->emplace_back().ParseFromString(record)) {
      return absl::DataLossError(absl::StrCat(path, ": a record is not an event"));
    }
  }
  return absl::OkStatus();
}

bool HasTag(const v1::Event& event, const std::string& tag) {
  const auto& values = event.summary().value();
  return std::any_of(values.begin(), values.end(),
                     [&](const v1::Summary::Value& value) { return value.tag() == tag; });
}

}  // namespace
absl::StatusOr<ModelValues> ReadModelValues(const std::string& prefix) {
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader, BundleReader::Open(prefix));
  ModelValues values;
  for (const TensorInfo& info : reader->List()) {
    if (info.dtype != BundleDtype::kFloat32) continue;
    ASSIGN_OR_RETURN(const Tensor tensor, reader->ReadTensor(info.name));
    const std::string bytes(reinterpret_cast<const char*>(tensor.data()),
                            tensor.size() * sizeof(float));
    values[info.name] = absl::StrCat(info.shape.ToString(), bytes);
  }
  return values;
}

absl::StatusOr<int64_t> VerifiedLatestStep(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const std::vector<SnapshotInfo> snapshots,
                   CheckpointDirectory(FileSystem::Real(), model_dir, Clock::Real()).List());
  if (snapshots.empty()) return absl::NotFoundError(absl::StrCat("no snapshot in ", model_dir));
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader,
                   BundleReader::Open(snapshots.back().prefix));
  RETURN_IF_ERROR(reader->VerifyAll());
  return reader->ReadInt64("global_step");
}

absl::StatusOr<int64_t> DoneStep(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const std::optional<DoneMarker> marker, ReadDoneMarker(model_dir));
  return marker.has_value() ? marker->step : -1;
}

absl::StatusOr<std::vector<EvaluationLine>> ReadEvaluations(const std::string& model_dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(model_dir, "eval/metrics.jsonl")));
  std::vector<EvaluationLine> evaluations;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(EvaluationLine evaluation, ParseEvaluation(line));
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

absl::StatusOr<std::vector<v1::Event>> ReadEvents(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<v1::Event> events;
  for (const std::string& name : names) {
    if (!absl::StrContains(name, "tfevents")) continue;
    RETURN_IF_ERROR(AppendEvents(JoinPath(directory, name), &events));
  }
  return events;
}

int64_t LastStepOf(const std::vector<v1::Event>& events, const std::string& tag) {
  int64_t last = -1;
  for (const v1::Event& event : events) {
    if (HasTag(event, tag)) last = std::max(last, event.step());
  }
  return last;
}

}  // namespace keelson
