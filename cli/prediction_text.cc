#include "cli/prediction_text.h"

#include <array>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

using Json = nlohmann::ordered_json;

// The shortest text that reads as the same number.
void AppendFloat(float value, std::string* text) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text->append(digits.data(), end);
}

// JSON has no numbers that are not finite.
Json NumberJson(float value) {
  if (!std::isfinite(value)) return nullptr;
  return value;
}

std::vector<std::string> OutputNames(const LossSpec& loss) {
  switch (loss.kind) {
    case LossKind::kSigmoidCrossEntropy:
      return {"probability"};
    case LossKind::kMeanSquaredError:
    case LossKind::kHuber:
    case LossKind::kInBatchSoftmax:
      return {"score"};
    case LossKind::kSoftmaxCrossEntropy:
      break;
  }
  std::vector<std::string> names;
  for (int64_t k = 0; k < loss.outputs; ++k) names.push_back(absl::StrCat("probability_", k));
  return names;
}

Json NumbersJson(const FeatureSpec& spec, const FeatureValues& values, int64_t row) {
  Json numbers = Json::array();
  const int64_t size = spec.shape.num_elements();
  for (int64_t k = 0; k < size; ++k) {
    numbers.push_back(NumberJson(values.numbers.data()[row * size + k]));
  }
  return numbers;
}

// The form that POST /api/predict and ONNX' inputs have, too: ids as whole numbers.
Json FeatureJson(const FeatureSpec& spec, const FeatureValues& values, int64_t row) {
  if (spec.kind == FeatureKind::kNumbers) return NumbersJson(spec, values, row);
  if (spec.kind == FeatureKind::kId) return values.ids[row];
  Json ids = Json::array(), weights = Json::array();
  for (int64_t k = values.offsets[row]; k < values.offsets[row + 1]; ++k) {
    ids.push_back(values.ids[k]);
    if (spec.weighted) weights.push_back(NumberJson(values.weights[k]));
  }
  if (!spec.weighted) return ids;
  return {{"ids", std::move(ids)}, {"weights", std::move(weights)}};
}

}  // namespace

PredictionText::PredictionText(const ModelSpec* model, PredictionTextOptions options)
    : model_(*model), options_(options), outputs_(OutputNames(model_.main_loss())) {}

std::string PredictionText::Header() const {
  if (options_.json) return "";
  std::string header = "record";
  if (options_.labels) {
    for (const LabelSpec& label : model_.records.labels) absl::StrAppend(&header, ",", label.name);
  }
  for (const std::string& output : outputs_) absl::StrAppend(&header, ",", output);
  return header + "\n";
}

void PredictionText::Append(int64_t first_record, const Batch& batch,
                            absl::Span<const float> outputs, std::string* text) const {
  const size_t width = outputs_.size();
  for (int64_t row = 0; row < batch.size(); ++row) {
    const absl::Span<const float> of_row = outputs.subspan(row * width, width);
    if (options_.json) {
      AppendJson(first_record + row, batch, row, of_row, text);
    } else {
      AppendCsv(first_record + row, batch, row, of_row, text);
    }
  }
}

void PredictionText::AppendCsv(int64_t record, const Batch& batch, int64_t row,
                               absl::Span<const float> outputs, std::string* text) const {
  absl::StrAppend(text, record);
  for (const Tensor& label : batch.labels) {
    text->push_back(',');
    AppendFloat(label.data()[row], text);
  }
  for (const float output : outputs) {
    text->push_back(',');
    AppendFloat(output, text);
  }
  text->push_back('\n');
}

void PredictionText::AppendJson(int64_t record, const Batch& batch, int64_t row,
                                absl::Span<const float> outputs, std::string* text) const {
  Json line = {{"record", record}};
  for (size_t k = 0; k < batch.labels.size(); ++k) {
    line[model_.records.labels[k].name] = NumberJson(batch.labels[k].data()[row]);
  }
  if (outputs.size() == 1) {
    line[outputs_.front()] = NumberJson(outputs.front());
  } else {
    Json all = Json::array();
    for (const float output : outputs) all.push_back(NumberJson(output));
    line["probabilities"] = std::move(all);
  }
  if (options_.features) {
    Json& features = line["features"] = Json::object();
    for (size_t k = 0; k < batch.features.size(); ++k) {
      const FeatureSpec& spec = model_.records.features[k];
      features[spec.name] = FeatureJson(spec, batch.features[k], row);
    }
  }
  absl::StrAppend(text, line.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

}  // namespace keelson
