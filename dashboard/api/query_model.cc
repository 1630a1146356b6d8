#include "dashboard/api/query_model.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/model/spec/layer_relations.h"

namespace keelson {
namespace {

// Leaves those features whose positions are `kept`.
void KeepFeatures(const std::vector<size_t>& kept, RunModel* model) {
  std::vector<FeatureSpec> features;
  for (const size_t position : kept) features.push_back(model->spec.records.features[position]);
  auto* const columns = model->config.mutable_data()->mutable_features();
  const auto is_gone = [&](const auto& entry) {
    return std::none_of(features.begin(), features.end(),
                        [&](const FeatureSpec& feature) { return feature.name == entry.name(); });
  };
  columns->erase(std::remove_if(columns->begin(), columns->end(), is_gone), columns->end());
  model->spec.records.features = std::move(features);
}

}  // namespace

absl::StatusOr<QueryModel> QueryModelOf(const RunModel& model) {
  const auto metrics = InferMetrics(model.config.evaluation(), model.spec);
  if (!metrics.ok()) return absl::NotFoundError(metrics.status().message());
  const auto metric = std::find_if(metrics->begin(), metrics->end(),
                                   [](const MetricSpec& each) { return each.is_retrieval(); });
  if (metric == metrics->end()) {
    return absl::NotFoundError(
        "no metric of retrieval in evaluation.metrics says what the model's items are");
  }
  QueryModel queries;
  queries.retrieval = metric->retrieval;
  queries.query = FeaturesOf(model.spec, model.spec.main_loss().inputs.front());
  std::vector<bool> asked = queries.query;
  for (const size_t feature : queries.retrieval.exclude_features) asked[feature] = true;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]) queries.positions.push_back(i);
  }
  queries.model = model;
  KeepFeatures(queries.positions, &queries.model);
  return queries;
}

Batch WholeExample(const RecordSchema& records, const QueryModel& queries, Batch example) {
  Batch whole;
  Resize(1, records, &whole);
  for (FeatureValues& values : whole.features) {
    std::fill_n(values.numbers.data(), values.numbers.size(), 0.0f);
    std::fill(values.ids.begin(), values.ids.end(), uint64_t{0});
  }
  for (size_t i = 0; i < queries.positions.size(); ++i) {
    whole.features[queries.positions[i]] = std::move(example.features[i]);
  }
  whole.labels.clear();
  return whole;
}

}  // namespace keelson
