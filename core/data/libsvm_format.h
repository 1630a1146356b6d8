// Lines of libsvm files: "LABEL INDEX:VALUE INDEX:VALUE …".
#ifndef KEELSON_CORE_DATA_LIBSVM_FORMAT_H_
#define KEELSON_CORE_DATA_LIBSVM_FORMAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/data/record_format.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Blanks and tabs separate; "#" begins a comment. Indices ascend strictly, as svm-train and
// scikit-learn have it too, and are the ids of the feature "features":
//   - a weighted bag: the values are the weights;
//   - a bag: the values are 1;
//   - numbers [n]: the value of index i from 1 to n is element i - 1, the others are 0.
// Values are finite. The label "label" is a number, or a class: the position of the number among
// `label_values`, or without any the number itself; of two classes -1 is class 0.
// Format: README of LIBSVM, https://www.csie.ntu.edu.tw/~cjlin/libsvm.
//
// INVALID_ARGUMENT, naming the field: the model takes other features or labels; label values that
// are not one for each class.
absl::StatusOr<std::unique_ptr<const RecordFormat>> NewLibsvmFormat(
    const v1::DataConfig::Libsvm& config, const RecordSchema& schema);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_LIBSVM_FORMAT_H_
