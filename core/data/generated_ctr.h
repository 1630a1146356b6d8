// Advertisements that are clicked or not, with ids as they are in click logs, and a best score that
// is known: a problem for embedding tables.
#ifndef KEELSON_CORE_DATA_GENERATED_CTR_H_
#define KEELSON_CORE_DATA_GENERATED_CTR_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

// Each of the features "field0" to "field7" has kCtrValues values, of which value r comes with a
// probability proportional to (r + 1)^-1.05 (Zipf), independently of the other fields. A value has
// a weight, normal with a deviation of 0.6, and a vector of four numbers, normal with one of 0.25,
// the same for every seed. The logit of a record is -2 + the sum of the weights of its eight values
// + the inner products of the vectors of all pairs of them; "clicked" is 1 with the probability
// 1 / (1 + exp(-logit)). A value's id is HashValue (value_hash.h) of r as 8 bytes, little-endian,
// with the field's name as the salt; IdOfHash of it where embeddings have a number of rows.
inline constexpr size_t kCtrFields = 8;
inline constexpr uint32_t kCtrValues = 20'000;
// Of 8,000,000 records, whose standard errors are 0.0002 or less: the share of clicks, the AUC and
// the cross-entropy in nats of the best model, and the AUC of the best one without the products.
inline constexpr double kCtrClicks = 0.2086;
inline constexpr double kBestCtrAuc = 0.8519;
inline constexpr double kBestCtrLoss = 0.3624;
inline constexpr double kBestCtrAucOfWeights = 0.8217;

// The values of a record's fields.
using CtrValues = std::array<uint32_t, kCtrFields>;

// From what clicks are drawn. Immutable.
class CtrTruth {
 public:
  CtrTruth();

  // The value at the place `uniform`, of all 32 bits, of the distribution.
  uint32_t ValueAt(uint32_t uniform) const;
  // The sum of the constant and the weights.
  float WeightsOf(const CtrValues& values) const;
  float LogitOf(const CtrValues& values) const;
  // The value's hash, which is its id among all of 64 bits.
  static uint64_t HashOf(size_t field, uint32_t value);

 private:
  static constexpr size_t kVectorNumbers = 4;
  struct Value {
    float weight;
    std::array<float, kVectorNumbers> vector;
  };

  const Value& At(size_t field, uint32_t value) const {
    return values_[field * kCtrValues + value];
  }

  std::vector<Value> values_;    // of all fields, field by field
  std::vector<uint32_t> below_;  // of each value, where its part of the distribution begins
};

// Which of the records' columns a model takes.
struct CtrColumns {
  struct Feature {
    size_t field = 0;
    int64_t num_ids = 0;
  };

  std::vector<Feature> features;  // in the model's order
  bool clicked = false;
};

// INVALID_ARGUMENT: a feature that is not one of the fields, of the kind id; a label that is not
// "clicked", 0 or 1.
absl::StatusOr<CtrColumns> CtrColumnsOf(const RecordSchema& schema);

// Records [begin, end) of the stream.
std::unique_ptr<Dataset> NewGeneratedCtr(CtrColumns columns, std::shared_ptr<const CtrTruth> truth,
                                         uint64_t seed, DataSplit split, int64_t begin,
                                         int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_CTR_H_
