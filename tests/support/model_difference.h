// The comparison of what two jobs have come to.
#ifndef KEELSON_TESTS_SUPPORT_MODEL_DIFFERENCE_H_
#define KEELSON_TESTS_SUPPORT_MODEL_DIFFERENCE_H_

#include "keelson/v1/train_config.pb.h"

namespace keelson {

// The largest difference of any element of two final models, slots included.
struct ModelDifference {
  double absolute = 0;
  double relative = 0;  // to the greatest magnitude in the element's tensor
};
// Of the snapshots after the last steps of jobs that have ended. Fails the test where the tensors
// are not the same ones.
ModelDifference DifferenceOf(const v1::TrainConfig& found, const v1::TrainConfig& expected);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_MODEL_DIFFERENCE_H_
