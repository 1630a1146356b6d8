// The records of a request to predict, in the JSON of TensorFlow Serving.
#ifndef KEELSON_CORE_SERVING_INSTANCES_H_
#define KEELSON_CORE_SERVING_INSTANCES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/file_system.h"
#include "core/data/columns/record_maker.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/model_spec.h"
#include "keelson/v1/train_config.pb.h"
#include "nlohmann/json.hpp"

namespace keelson {

// Immutable; any number of threads may use it together.
class InstanceReader {
 public:
  // `config` is final, and `model` its model. Reads vocabularies that are files. Errors of
  // RecordMaker.
  static absl::StatusOr<std::unique_ptr<const InstanceReader>> Create(const v1::TrainConfig& config,
                                                                      const ModelSpec& model,
                                                                      FileSystem* file_system);

  // What an instance has, for messages: the columns or the features.
  const std::string& form() const { return form_; }

  // Reads the list `body["instances"]`, or `body["inputs"]`, an object with a list of equal length
  // for each name. Of a model whose data are csv or tf_record an instance is an object with a value
  // for each column of the files (a text, a number, a list of one kind of them), made into features
  // as in training; a column that is absent or null is missing. Of other models it has a value for
  // each feature, as ReadExample takes it; of a model with one feature of numbers it may be those.
  // INVALID_ARGUMENT, one line that begins with the place ("instances[2].age"): neither list nor
  // object, no instance or more than kMostInstances, an unknown name, a value of another form.
  static constexpr size_t kMostInstances = 10'000;
  absl::StatusOr<Batch> Read(const nlohmann::json& body) const;

  // Whether an instance has a value for each column.
  bool has_columns() const { return maker_ != nullptr; }
  // Reads one instance that has columns; errors begin with `where` ("columns.age").
  absl::StatusOr<Batch> ReadOne(const std::string& where, const nlohmann::json& columns) const;

 private:
  InstanceReader(RecordSchema schema, std::unique_ptr<const RecordMaker> maker);

  absl::Status ReadColumns(const std::string& where, const nlohmann::json& instance, size_t row,
                           Batch* batch) const;

  const RecordSchema schema_;                       // without labels
  const std::unique_ptr<const RecordMaker> maker_;  // null: instances have features
  std::string form_;
  absl::flat_hash_map<std::string, size_t> columns_;  // of maker_
};

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_INSTANCES_H_
