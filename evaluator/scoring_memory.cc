#include "evaluator/scoring_memory.h"

#include <cstring>
#include <string>

#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/script/variable_directory.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<ScoringMemory>> ScoringMemory::Create(
    absl::Span<const VariableSpec> variables, const ScriptScoring& scoring, int64_t inputs) {
  std::unique_ptr<ScoringMemory> memory(new ScoringMemory());
  std::vector<ArrayPlaces> places(variables.size());
  size_t at = memory->directory_bytes_ = VariableDirectoryBytes(variables);
  for (size_t v = 0; v < variables.size(); ++v) {
    memory->values_at_.push_back(places[v].values = AlignedArray(at));
    const auto bytes = static_cast<size_t>(variables[v].bytes());
    memory->elements_.push_back(bytes / sizeof(float));
    at = places[v].values + bytes;
  }
  const auto batch_size = static_cast<size_t>(scoring.batch_size);
  memory->outputs_ = static_cast<size_t>(scoring.outputs);
  memory->inputs_ = static_cast<size_t>(inputs);
  memory->scores_at_ = AlignedArray(at);
  memory->labels_at_ =
      AlignedArray(memory->scores_at_ + sizeof(float) * batch_size * memory->outputs_);
  memory->inputs_at_ = AlignedArray(memory->labels_at_ + sizeof(float) * batch_size);
  const size_t bytes = AlignedArray(memory->inputs_at_ + sizeof(float) * memory->inputs_);
  ASSIGN_OR_RETURN(memory->memory_, SealedMemory::Create(bytes, SealedMemory::Touch::kLater));
  const std::string directory = VariableDirectory(variables, places);
  std::memcpy(memory->memory_->data(), directory.data(), directory.size());
  return memory;
}

ScriptMessage ScoringMemory::Description(absl::Span<const TableSpec> tables) const {
  ScriptMessageWriter writer(ScriptMessageKind::kEvaluation);
  writer.Number(kScriptProtocol)
      .Number(uint64_t{memory_->bytes()})
      .Number(uint64_t{directory_bytes_})
      .Number(uint64_t{scores_at_})
      .Number(uint64_t{labels_at_})
      .Number(uint64_t{tables.size()});
  for (const TableSpec& table : tables) writer.Number(table.dim);
  writer.Text(absl::StrJoin(
      tables, "\n", [](std::string* out, const TableSpec& table) { out->append(table.name); }));
  return writer.message();
}

absl::Span<float> ScoringMemory::values(size_t v) const {
  return {Floats(values_at_[v]), elements_[v]};
}

absl::Span<const float> ScoringMemory::scores(int64_t records) const {
  return {Floats(scores_at_), static_cast<size_t>(records) * outputs_};
}

absl::Span<const float> ScoringMemory::labels(int64_t records) const {
  return {Floats(labels_at_), static_cast<size_t>(records)};
}

}  // namespace keelson
