// What a job leaves in its model directory, for tests.
#ifndef KEELSON_TESTS_SUPPORT_MODEL_DIRECTORY_H_
#define KEELSON_TESTS_SUPPORT_MODEL_DIRECTORY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "keelson/v1/event.pb.h"

namespace keelson {

// Each float32 tensor by name: its shape's text, then its values bit by bit. Equal maps are equal
// models.
using ModelValues = std::map<std::string, std::string>;
absl::StatusOr<ModelValues> ReadModelValues(const std::string& prefix);

// The step that the newest snapshot holds, all of whose checksums are verified. NOT_FOUND: there
// is no snapshot.
absl::StatusOr<int64_t> VerifiedLatestStep(const std::string& model_dir);

// The step of the marker; -1: the job is not done.
absl::StatusOr<int64_t> DoneStep(const std::string& model_dir);

// One evaluation of eval/metrics.jsonl.
struct EvaluationLine {
  int64_t step = 0;
  std::map<std::string, double> metrics;
};
absl::StatusOr<std::vector<EvaluationLine>> ReadEvaluations(const std::string& model_dir);

// All events of the event files in a directory, file after file in the order of their names.
absl::StatusOr<std::vector<v1::Event>> ReadEvents(const std::string& directory);

// Highest step for which the events have the tag; -1: none has.
int64_t LastStepOf(const std::vector<v1::Event>& events, const std::string& tag);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_MODEL_DIRECTORY_H_
