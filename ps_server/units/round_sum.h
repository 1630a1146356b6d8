// What the pushes of a synchronous round have added up for one block.
#ifndef KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_
#define KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "core/optim/optimizer.h"
#include "core/tensor/aligned_buffer.h"
#include "ps_server/units/gradient_reader.h"

namespace keelson {

// One synchronous step, and a try at it. Later attempts are greater, and later rounds of an
// attempt: attempts rise over the whole life of a job, while a chief with old books may go back to
// a round.
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
  // Nothing yet, of a block of `elements` elements.
  RoundSum(const RoundId& id, int64_t elements) : id_(id), sum_(elements) {}

  const RoundId& id() const { return id_; }
  uint32_t contributions() const { return contributions_; }

  // Adds weight * gradient, of which CheckGradient has approved, and moves its cursor behind it.
  void Add(const WireGradient& gradient, float weight);

  // The sum divided by the sum of the weights. Only after Add, and the last call; the elements
  // belong to this.
  EncodedGradient TakeMean();

 private:
  const RoundId id_;
  AlignedBuffer sum_;
  double weights_ = 0;
  uint32_t contributions_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ROUND_SUM_H_
