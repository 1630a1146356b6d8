// Lines of libffm files: "LABEL FIELD:INDEX:VALUE FIELD:INDEX:VALUE …".
#ifndef KEELSON_CORE_DATA_LIBFFM_FORMAT_H_
#define KEELSON_CORE_DATA_LIBFFM_FORMAT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/data/record_format.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// Blanks and tabs separate; "#" begins a comment. The triples stand in any order. Those of field k
// are the feature "fieldk":
//   - a weighted bag: ids are the indices, the values are the weights;
//   - a bag: the values are 1;
//   - an id: the index of the only triple, whose value is 1;
//   - numbers [n]: the values of n triples, in their order, or n zeros where there is none.
// Triples of fields that the model has no feature for are checked, and left out. The label is
// libsvm's (libsvm_format.h). Format: https://github.com/ycjuan/libffm.
//
// INVALID_ARGUMENT, naming the field: the model takes other features or labels; label values that
// are not one for each class.
absl::StatusOr<std::unique_ptr<const RecordFormat>> NewLibffmFormat(
    const v1::DataConfig::Libffm& config, const RecordSchema& schema);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_LIBFFM_FORMAT_H_
