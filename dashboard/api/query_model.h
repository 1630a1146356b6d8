// What a request for the items nearest to a query has of a run's model of two towers.
#ifndef KEELSON_DASHBOARD_API_QUERY_MODEL_H_
#define KEELSON_DASHBOARD_API_QUERY_MODEL_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/metrics.h"
#include "core/model/spec/record_schema.h"
#include "dashboard/runs/run_model.h"

namespace keelson {

struct QueryModel {
  RetrievalSpec retrieval;
  // By feature of the run's model: its query depends on it.
  std::vector<bool> query;
  // The run's model, with those of its features alone that a request has: the query's, and those
  // that name items that are not wanted.
  RunModel model;
  // The positions of these features in the run's model, in order.
  std::vector<size_t> positions;
};

// NOT_FOUND: no metric of retrieval says what the model's items are.
absl::StatusOr<QueryModel> QueryModelOf(const RunModel& model);

// A record of all features of the run's model, `records`, with those of `example`, which is one of
// QueryModel::model. The others have the id 0, no ids, or zeros.
Batch WholeExample(const RecordSchema& records, const QueryModel& queries, Batch example);

}  // namespace keelson

#endif  // KEELSON_DASHBOARD_API_QUERY_MODEL_H_
