// Visits of users to items, with two labels whose best losses are known: a problem for two towers
// and several losses.
#ifndef KEELSON_CORE_DATA_GENERATED_VISITS_H_
#define KEELSON_CORE_DATA_GENERATED_VISITS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// "user" u and "item" v are uniform in [-1, 1), [kVisitNumbers] each. With the affinity
// a = u_0 v_0 + u_1 v_1 + u_2 v_2 + u_3 v_3, "clicked" is 1 with the probability
// 1 / (1 + exp(0.5 - 3 a)), and "spent" = 2 + u_0 + 1.5 a + noise, which is normal with a deviation
// of 0.5. The last four numbers of each say nothing.
inline constexpr int64_t kVisitNumbers = 8;
inline constexpr float kVisitNoise = 0.5f;
// The expected losses of the best model: the cross-entropy of "clicked" in nats (the mean entropy
// of 3,000,000 visits, whose standard error is 0.0001), and the mean squared error of "spent".
inline constexpr double kBestClickedLoss = 0.4560;
inline constexpr double kBestSpentLoss = 0.25;

// Which of the visits' columns a model takes, in its order.
struct VisitColumns {
  enum class Feature { kUser, kItem };
  enum class Label { kClicked, kSpent };

  std::vector<Feature> features;
  std::vector<Label> labels;
};

// INVALID_ARGUMENT: a feature that is neither "user" nor "item", or not [kVisitNumbers]; a label
// that is neither "clicked", 0 or 1, nor "spent", any number.
absl::StatusOr<VisitColumns> VisitColumnsOf(const RecordSchema& schema);

// Records [begin, end) of the stream.
std::unique_ptr<Dataset> NewGeneratedVisits(VisitColumns columns, uint64_t seed, DataSplit split,
                                            int64_t begin, int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_VISITS_H_
