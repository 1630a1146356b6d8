// The sum of the gradients that were pushed for one block in a synchronous round.
#ifndef KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_
#define KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/types/span.h"
#include "core/optim/optimizer.h"
#include "core/tensor/aligned_buffer.h"
#include "core/wire/wire_format.h"
#include "ps_server/units/gradient_reader.h"

namespace keelson {

// An attempt at a synchronous step. Ordered by attempt, then by round: attempts only rise over the
// life of a job, while a chief that restored older state may go back to an earlier round.
struct RoundId {
  int64_t round = -1;
  uint32_t attempt = 0;

  // "round 7, attempt 2".
  std::string ToString() const;

  friend bool operator==(const RoundId&, const RoundId&) = default;
  friend auto operator<=>(const RoundId& a, const RoundId& b) {
    return std::tie(a.attempt, a.round) <=> std::tie(b.attempt, b.round);
  }
};

// Not thread-safe.
class RoundSum {
 public:
  // An empty sum for a block of `elements` elements.
  RoundSum(const RoundId& id, int64_t elements)
      : id_(id), sum_(AlignedBuffer::Uninitialized(elements)) {}
  // What another sum had that was whole: its elements, and how many contributions with what sum of
  // weights.
  RoundSum(const RoundId& id, AlignedBuffer elements, double weights, uint32_t contributions)
      : id_(id),
        whole_(true),
        sum_(std::move(elements)),
        weights_(weights),
        contributions_(contributions) {}

  const RoundId& id() const { return id_; }
  uint32_t contributions() const { return contributions_; }
  // It has all contributions to its attempt.
  bool whole() const { return whole_; }
  double weights() const { return weights_; }
  // Returns the sum of weight times gradient for each element. Call after Add and AddKept.
  absl::Span<const float> elements() const {
    return {sum_.data(), static_cast<size_t>(sum_.size())};
  }

  // Adds weight * gradient, which CheckGradient has approved, and moves its cursor behind it. With
  // an `order`, from 1 on, it is added when those of all lower orders are, and copied until then,
  // so that the sum does not depend on the order of the calls; 0: at once.
  void Add(const WireGradient& gradient, float weight, uint32_t order = 0);
  // Adds, in their order, the gradients that wait for others. No Add follows.
  void AddKept();

  // The sum divided by the sum of the weights. Call after Add and as the last method; the elements
  // belong to this object.
  EncodedGradient TakeMean();

 private:
  // A gradient as it was received.
  struct Kept {
    std::string bytes;
    WireFormat format = WireFormat::kFloat32;
    float weight = 0;
  };

  void AddNow(const WireGradient& gradient, float weight);
  void Keep(const WireGradient& gradient, float weight, uint32_t order);
  void AddFirstKept();

  const RoundId id_;
  const bool whole_ = false;
  bool begun_ = false;  // `sum_` has elements
  AlignedBuffer sum_;
  double weights_ = 0;
  uint32_t contributions_ = 0;
  uint32_t next_order_ = 1;  // all lower ones are in the sum
  std::map<uint32_t, Kept> kept_;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_
