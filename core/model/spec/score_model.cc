#include "core/model/spec/score_model.h"

#include <string>
#include <utility>

#include "core/model/spec/record_schema.h"

namespace keelson {

ModelSpec ScoreModel(LossKind kind, int64_t outputs) {
  LossSpec loss;
  loss.kind = kind;
  loss.outputs = outputs;
  loss.label = 0;
  loss.label_name = std::string(kLabel);
  ModelSpec model;
  model.records.labels.push_back({loss.label_name, loss.num_classes()});
  model.losses.push_back(std::move(loss));
  return model;
}

}  // namespace keelson
