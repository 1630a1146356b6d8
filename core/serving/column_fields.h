// What a form asks for to make a record of it: a value for each column of a job's files.
#ifndef KEELSON_CORE_SERVING_COLUMN_FIELDS_H_
#define KEELSON_CORE_SERVING_COLUMN_FIELDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

struct ColumnField {
  // What the column is read as; of several, a number before a whole number, and that before a text.
  enum class Kind { kNumber, kInteger, kText };

  std::string name;
  Kind kind = Kind::kText;
  bool list = false;                // any number of values
  std::string separator;            // between the values, where a list is one text
  std::string weight_separator;     // between a value and its weight, where it may have one
  std::vector<std::string> values;  // those that a vocabulary in the configuration has
};

// Returns the field of each column that InstanceReader takes, in its order; none where the model's
// records are not made of columns. `config` is final, and `model` its model. Reads no file. Errors
// are those of PlanRecords.
absl::StatusOr<std::vector<ColumnField>> ColumnFieldsOf(const v1::TrainConfig& config,
                                                        const ModelSpec& model);

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_COLUMN_FIELDS_H_
