// Sets of record positions, kept as the ranges in which they were added.
#ifndef KEELSON_CHIEF_COORDINATION_RECORD_SET_H_
#define KEELSON_CHIEF_COORDINATION_RECORD_SET_H_

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace keelson {

// Positions [begin, end) in the shuffled order of one epoch; begin <= end.
struct RecordRange {
  int64_t epoch = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend auto operator<=>(const RecordRange&, const RecordRange&) = default;
};

// Disjoint ranges in order of epoch and position. Adjacent ranges are not merged: two batches that
// were added come out as two. Not thread-safe.
class RecordSet {
 public:
  bool empty() const { return ends_.empty(); }
  // The number of records in the set.
  int64_t size() const;

  // False: a part of the range is in the set already, and nothing is added. Adding an empty range
  // does nothing.
  bool Add(const RecordRange& range);
  // Removes the part of `range` that is in the set; the rest of a range that this cuts stays.
  void Remove(const RecordRange& range);
  // The set holds some of the range.
  bool Intersects(const RecordRange& range) const;
  // The set holds all of the range.
  bool Covers(const RecordRange& range) const;
  // The first range; the set is not empty.
  RecordRange First() const;
  // Takes it out.
  RecordRange TakeFirst();
  std::vector<RecordRange> ranges() const;

 private:
  using Start = std::pair<int64_t, int64_t>;  // epoch, begin
  using Ends = std::map<Start, int64_t>;

  // The first range that ends behind the beginning of `range`.
  Ends::const_iterator FirstBehind(const RecordRange& range) const;

  Ends ends_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_RECORD_SET_H_
