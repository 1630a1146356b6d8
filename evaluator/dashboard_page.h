// How the evaluations of a job look, for people and for programs.
#ifndef KEELSON_EVALUATOR_DASHBOARD_PAGE_H_
#define KEELSON_EVALUATOR_DASHBOARD_PAGE_H_

#include <cstdint>
#include <map>
#include <string>

#include "evaluator/metrics_log.h"

namespace keelson {

// By step.
using Evaluations = std::map<int64_t, EvaluationRecord>;

// A page of HTML that needs nothing else and loads itself anew every few seconds: a table of the
// newest 500 evaluations, the newest first, and the best value of each metric, marked in the table:
// the lowest loss, the highest of the others.
std::string EvaluationsAsHtml(const std::string& model_dir, const Evaluations& evaluations);

// {"model_dir":"/model","evaluations":[…]}: all of them in order of their steps, each as in
// metrics.jsonl.
std::string EvaluationsAsJson(const std::string& model_dir, const Evaluations& evaluations);

}  // namespace keelson

#endif  // KEELSON_EVALUATOR_DASHBOARD_PAGE_H_
