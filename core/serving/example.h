// One record of a model, as it stands in a request.
#ifndef KEELSON_CORE_SERVING_EXAMPLE_H_
#define KEELSON_CORE_SERVING_EXAMPLE_H_

#include "absl/status/statusor.h"
#include "core/model/spec/batch.h"
#include "core/model/spec/record_schema.h"
#include "nlohmann/json.hpp"

namespace keelson {

// Reads `body["features"]`: an object with a value for each feature by its name, or, where the
// model takes one feature alone, which is numbers, those numbers themselves. Of the kind
//   numbers: as many as its shape has elements, rows first;
//   id: one id, a number or a text, for not all who write JSON have numbers of 64 bits;
//   bag: a list of ids, or {"ids": [...], "weights": [...]}; each id without a weight has 1.
// The batch has one record, and labels that say nothing.
//
// INVALID_ARGUMENT, one line that begins with the place ("features.seen.ids[2]"): a feature that is
// missing or unknown, another form, not the number of values, more than 65536 ids, an id that no
// embedding has a row for, weights of a bag that has none or as many as there are no ids, or a
// number that is not finite as a float.
absl::StatusOr<Batch> ReadExample(const RecordSchema& records, const nlohmann::json& body);

}  // namespace keelson

#endif  // KEELSON_CORE_SERVING_EXAMPLE_H_
