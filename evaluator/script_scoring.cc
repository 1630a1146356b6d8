#include "evaluator/script_scoring.h"

#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

// Bounds of what a script may ask for.
constexpr uint64_t kMostOutputs = 1 << 20;
constexpr uint64_t kMostRecords = uint64_t{1} << 53;
constexpr uint64_t kMostScores = uint64_t{1} << 28;
constexpr uint64_t kProbabilities = 1;  // a flag of kScoring

absl::StatusOr<LossKind> KindOf(uint64_t number) {
  constexpr LossKind kKinds[] = {LossKind::kSoftmaxCrossEntropy, LossKind::kSigmoidCrossEntropy,
                                 LossKind::kMeanSquaredError};
  if (number < std::size(kKinds)) return kKinds[number];
  return UnexpectedOfScript("kind of scores", "0 to 2", number);
}

absl::Status CheckCounts(LossKind kind, uint64_t outputs, uint64_t records, uint64_t batch_size) {
  const bool classes = kind == LossKind::kSoftmaxCrossEntropy;
  if (classes && (outputs < 2 || outputs > kMostOutputs)) {
    return UnexpectedOfScript("classes", absl::StrCat("2 to ", kMostOutputs), outputs);
  }
  if (!classes && outputs != 1) return UnexpectedOfScript("scores of a record", "1", outputs);
  if (records == 0 || records > kMostRecords) {
    return UnexpectedOfScript("records", "1 or more", records);
  }
  if (batch_size == 0 || batch_size > kMostScores / outputs) {
    return UnexpectedOfScript("records of a batch", absl::StrCat("1 to ", kMostScores / outputs),
                              batch_size);
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const ScriptScoring& scoring) {
  const auto wanted =
      static_cast<size_t>(scoring.kind == LossKind::kSigmoidCrossEntropy ? 2 : scoring.outputs);
  const size_t found = scoring.class_names.size();
  if (found == 0 || found == wanted) return absl::OkStatus();
  return UnexpectedOfScript("names of classes", absl::StrCat("none or ", wanted), found);
}

}  // namespace

const char* ScriptScoring::kind_name() const {
  if (kind == LossKind::kSigmoidCrossEntropy) return "binary";
  return IsRegression(kind) ? "regression" : "classification";
}

int64_t ScriptScoring::RecordsOf(int64_t most_batches) const {
  const int64_t batches = (records + batch_size - 1) / batch_size;
  return most_batches == 0 || most_batches >= batches ? records : most_batches * batch_size;
}

absl::StatusOr<ScriptScoring> ReadScriptScoring(const ScriptMessage& message) {
  ScriptMessageReader reader(message);
  ScriptScoring scoring;
  ASSIGN_OR_RETURN(scoring.kind, KindOf(reader.Number()));
  const uint64_t outputs = reader.Number();
  const uint64_t records = reader.Number();
  const uint64_t batch_size = reader.Number();
  scoring.probabilities = (reader.Number() & kProbabilities) != 0;
  const absl::string_view names = reader.Text();
  if (message.kind != ScriptMessageKind::kScoring || !reader.AtEnd()) {
    return NotInEvaluation(message);
  }
  RETURN_IF_ERROR(CheckCounts(scoring.kind, outputs, records, batch_size));
  scoring.outputs = static_cast<int64_t>(outputs);
  scoring.records = static_cast<int64_t>(records);
  scoring.batch_size = static_cast<int64_t>(batch_size);
  if (!names.empty()) scoring.class_names = absl::StrSplit(names, '\n');
  RETURN_IF_ERROR(CheckNames(scoring));
  return scoring;
}

absl::Status UnexpectedOfScript(absl::string_view what, absl::string_view expected,
                                uint64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("the script's ", what, ": expected ", expected, ", found ", found));
}

absl::Status NotInEvaluation(const ScriptMessage& message) {
  return absl::InvalidArgumentError(
      absl::StrCat("the script's message: expected one of an evaluation, protocol ",
                   kScriptProtocol, ", that fits here, found kind ",
                   static_cast<uint32_t>(message.kind), " with ", message.body.size(), " bytes"));
}

}  // namespace keelson
