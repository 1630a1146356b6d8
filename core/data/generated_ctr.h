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
#include "absl/types/span.h"
#include "core/data/dataset.h"
#include "core/data/record_random.h"
#include "core/model/spec/record_schema.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {

// What is drawn (v1::DataConfig::GeneratedCtr). Each of the features "field0", "field1", ... has
// `values` values, of which value r comes with a probability proportional to (r + 1)^-exponent
// (Zipf), independently of the other fields. A value has a weight and a vector of four numbers,
// normal with these deviations, the same for every seed. The logit of a record is the bias + the
// sum of the weights of its values + the inner products of the vectors of all pairs of them;
// "clicked" is 1 with the probability 1 / (1 + exp(-logit)). A value's id is HashValue
// (value_hash.h) of r as 8 bytes, little-endian, with the field's name as the salt; IdOfHash of it
// where embeddings have a number of rows.
struct CtrDistribution {
  size_t fields = 8;
  uint32_t values = 20'000;
  double exponent = 1.05;
  float weight_stddev = 0.6f;
  float vector_stddev = 0.25f;
  float bias = -2;
};
// Values of all fields together, which bounds the memory of a CtrTruth to 1.6 GB.
inline constexpr int64_t kMostCtrValues = int64_t{1} << 26;

// INVALID_ARGUMENT: a number outside its bounds.
absl::StatusOr<CtrDistribution> CtrDistributionOf(const v1::DataConfig::GeneratedCtr& config);

// Of 8,000,000 records of the default distribution, whose standard errors are 0.0002 or less: the
// share of clicks, the AUC and the cross-entropy in nats of the best model, and the AUC of the best
// sum of a number for each value (CtrTruth::AdditiveOf). ctr_bounds (bench/data) computes them for
// any distribution.
inline constexpr double kCtrClicks = 0.2086;
inline constexpr double kBestCtrAuc = 0.8519;
inline constexpr double kBestCtrLoss = 0.3624;
inline constexpr double kBestAdditiveCtrAuc = 0.8243;

// From what clicks are drawn. A record is its fields' values. Immutable.
class CtrTruth {
 public:
  explicit CtrTruth(const CtrDistribution& distribution);

  const CtrDistribution& distribution() const { return distribution_; }
  // The value at the place `uniform`, of all 32 bits, of the distribution.
  uint32_t ValueAt(uint32_t uniform) const;
  // The sum of the bias and the weights.
  float WeightsOf(absl::Span<const uint32_t> record) const;
  float LogitOf(absl::Span<const uint32_t> record) const;
  // The logit that is expected of each value with random values of the other fields, added up: as
  // near as a sum of one number for each value comes to the logit.
  float AdditiveOf(absl::Span<const uint32_t> record) const;
  // The value's hash, which is its id among all of 64 bits.
  uint64_t HashOf(size_t field, uint32_t value) const;

 private:
  static constexpr size_t kVectorNumbers = 4;
  using Vector = std::array<float, kVectorNumbers>;
  struct Value {
    float weight;
    Vector vector;
  };

  const Value& At(size_t field, uint32_t value) const {
    return values_[field * distribution_.values + value];
  }

  const CtrDistribution distribution_;
  std::vector<Value> values_;    // of all fields, field by field
  std::vector<uint32_t> below_;  // of each value, where its part of the distribution begins
  std::vector<uint64_t> salts_;  // of each field
  // Of each field the mean vector of its values, and their sum over the fields.
  std::vector<Vector> means_;
  Vector sum_of_means_ = {};
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

// INVALID_ARGUMENT: a feature that is not one of the `fields` fields, of the kind id; a label that
// is not "clicked", 0 or 1.
absl::StatusOr<CtrColumns> CtrColumnsOf(const RecordSchema& schema, size_t fields);

// Records [begin, end) of the stream.
std::unique_ptr<Dataset> NewGeneratedCtr(CtrColumns columns, std::shared_ptr<const CtrTruth> truth,
                                         uint64_t seed, DataSplit split, int64_t begin,
                                         int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_CTR_H_
