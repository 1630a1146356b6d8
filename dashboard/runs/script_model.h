// The model of a script that evaluates in this process, as far as it predicts: what "Try it" on the
// page asks for, and the answers.
#ifndef KEELSON_DASHBOARD_RUNS_SCRIPT_MODEL_H_
#define KEELSON_DASHBOARD_RUNS_SCRIPT_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace keelson {

struct ScriptColumn {
  std::string name;
  std::string kind;  // "number", "integer" or "text"
};

// What a prediction takes: numbers of one shape, or a value for each column.
struct ScriptForm {
  std::string kind;                  // "classification", "binary" or "regression"
  std::vector<std::string> classes;  // their names; empty: it has none
  std::vector<int64_t> input_shape;  // empty: it takes columns
  std::vector<ScriptColumn> columns;
};

struct ScriptInput {
  std::vector<float> numbers;  // as many as input_shape has elements
  std::string columns;         // or a JSON object with a value or null for each column
};

struct ScriptPrediction {
  int64_t step = 0;  // of the snapshot
  // A classification has the probabilities, a binary one has that of 1, and others have the value.
  std::vector<float> outputs;
  double seconds = 0;
};

// Thread-safe.
class ScriptModel {
 public:
  virtual ~ScriptModel() = default;

  // nullopt: no script is there that predicts.
  virtual std::optional<ScriptForm> form() const = 0;
  // Takes its time, up to a bound. NOT_FOUND: no script, or no snapshot. UNAVAILABLE: the script
  // has failed at it (it says how in one line), or is at something else. DEADLINE_EXCEEDED: it has
  // not answered.
  virtual absl::StatusOr<ScriptPrediction> Predict(const ScriptInput& input) = 0;
};

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_RUNS_SCRIPT_MODEL_H_
