// Predictions as lines of a file: CSV, or JSON objects.
#ifndef KEELSON_CLI_PREDICTION_TEXT_H_
#define KEELSON_CLI_PREDICTION_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"

namespace keelson {

struct PredictionTextOptions {
  bool json = false;
  bool features = false;  // JSON lines have each record's features
  bool labels = true;     // batches have labels
};

// Immutable.
class PredictionText {
 public:
  // `model` outlives this.
  PredictionText(const ModelSpec* model, PredictionTextOptions options);

  // The line that names the columns; "" of JSON.
  std::string Header() const;
  // Appends a line for each record of a batch, whose records are numbered on from `first_record`.
  // `outputs` are StoredModel's: [n, outputs].
  void Append(int64_t first_record, const Batch& batch, absl::Span<const float> outputs,
              std::string* text) const;

 private:
  void AppendCsv(int64_t record, const Batch& batch, int64_t row, absl::Span<const float> outputs,
                 std::string* text) const;
  void AppendJson(int64_t record, const Batch& batch, int64_t row, absl::Span<const float> outputs,
                  std::string* text) const;

  const ModelSpec& model_;
  const PredictionTextOptions options_;
  // "probability", "score", or of classes "probability_0", ...
  std::vector<std::string> outputs_;
};

}  // namespace keelson

#endif  // KEELSON_CLI_PREDICTION_TEXT_H_
