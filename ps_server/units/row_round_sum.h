// The sum of the gradients that were pushed for one partition of the tables' rows in a synchronous
// round.
#ifndef KEELSON_PS_SERVER_UNITS_ROW_ROUND_SUM_H_
#define KEELSON_PS_SERVER_UNITS_ROW_ROUND_SUM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ps_server/units/round_sum.h"

namespace keelson {

// A row that a push does not have is a gradient of zeros, so the mean of a row divides by the
// weights of all pushes. Not thread-safe.
class RowRoundSum {
 public:
  // An empty sum for tables of these numbers of elements per row.
  RowRoundSum(const RoundId& id, absl::Span<const size_t> dims);

  const RoundId& id() const { return id_; }
  uint32_t contributions() const { return contributions_; }

  // Begins the part of one more push. `weight` > 0. With an `order`, from 1 on, what it has is
  // added when that of all lower orders is, and copied until then, as RoundSum does.
  void BeginPush(float weight, uint32_t order = 0);
  // The push has no more rows here.
  void EndPush();
  // Adds weight * gradients of rows of the push that began last; `gradients` is [ids, dim].
  void Add(size_t table, absl::Span<const uint64_t> ids, absl::Span<const float> gradients);

  // Calls `visit` with the rows of one table, ids ascending, and their means [ids, dim], in parts
  // of at most `most` rows. Call after all Adds, and once for a table.
  using MeanVisitor =
      absl::FunctionRef<void(absl::Span<const uint64_t> ids, absl::Span<const float> means)>;
  void VisitMeans(size_t table, size_t most, MeanVisitor visit);

 private:
  // Rows of a push that waits for others.
  struct KeptRows {
    size_t table = 0;
    std::vector<uint64_t> ids;
    std::vector<float> gradients;  // [ids, dim]
  };
  struct KeptPush {
    float weight = 0;
    std::vector<KeptRows> rows;
  };
  struct Rows {
    size_t dim = 0;
    absl::flat_hash_map<uint64_t, size_t> position;  // by id
    std::vector<float> sums;                         // [positions, dim]
  };

  void AddNow(size_t table, float weight, absl::Span<const uint64_t> ids,
              absl::Span<const float> gradients);
  void AddFirstKept();

  const RoundId id_;
  std::vector<Rows> tables_;
  float weight_ = 0;         // of the newest push
  uint32_t order_ = 0;       // of the newest push
  uint32_t next_order_ = 1;  // all lower ones are in the sums
  std::map<uint32_t, KeptPush> kept_;
  KeptPush* newest_kept_ = nullptr;  // null: the newest push is added at once
  double weights_ = 0;
  uint32_t contributions_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_PS_SERVER_UNITS_ROW_ROUND_SUM_H_
