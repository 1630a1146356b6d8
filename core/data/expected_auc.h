// The area under the ROC curve of scores whose labels are not drawn yet.
#ifndef KEELSON_CORE_DATA_EXPECTED_AUC_H_
#define KEELSON_CORE_DATA_EXPECTED_AUC_H_

#include <utility>
#include <vector>

namespace keelson {

// The AUC that scores are expected to have where the labels are 1 with these probabilities: pairs
// (score, probability). The order of equal scores is that of their probabilities.
double ExpectedAuc(std::vector<std::pair<float, double>> scored);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_EXPECTED_AUC_H_
