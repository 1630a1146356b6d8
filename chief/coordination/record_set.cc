#include "chief/coordination/record_set.h"

#include <algorithm>
#include <iterator>

namespace keelson {

int64_t RecordSet::size() const {
  int64_t size = 0;
  for (const auto& [start, end] : ends_) size += end - start.second;
  return size;
}

RecordSet::Ends::const_iterator RecordSet::FirstBehind(const RecordRange& range) const {
  auto it = ends_.upper_bound({range.epoch, range.begin});
  if (it == ends_.begin()) return it;
  const auto before = std::prev(it);
  const bool reaches_in = before->first.first == range.epoch && before->second > range.begin;
  return reaches_in ? before : it;
}

bool RecordSet::Intersects(const RecordRange& range) const {
  const auto it = FirstBehind(range);
  return range.size() > 0 && it != ends_.end() && it->first < Start(range.epoch, range.end);
}

bool RecordSet::Covers(const RecordRange& range) const {
  int64_t covered = range.begin;
  for (auto it = FirstBehind(range); covered < range.end; ++it) {
    if (it == ends_.end() || it->first > Start(range.epoch, covered)) return false;
    covered = it->second;
  }
  return true;
}

bool RecordSet::Add(const RecordRange& range) {
  if (range.size() == 0) return true;
  if (Intersects(range)) return false;
  ends_[{range.epoch, range.begin}] = range.end;
  return true;
}

void RecordSet::Remove(const RecordRange& range) {
  while (Intersects(range)) {
    const auto it = FirstBehind(range);
    const RecordRange cut = {it->first.first, it->first.second, it->second};
    ends_.erase(it);
    Add({cut.epoch, cut.begin, std::max(cut.begin, range.begin)});
    Add({cut.epoch, std::min(cut.end, range.end), cut.end});
  }
}

RecordRange RecordSet::First() const {
  const auto it = ends_.begin();
  return {it->first.first, it->first.second, it->second};
}

RecordRange RecordSet::TakeFirst() {
  const RecordRange first = First();
  ends_.erase(ends_.begin());
  return first;
}

std::vector<RecordRange> RecordSet::ranges() const {
  std::vector<RecordRange> ranges;
  for (const auto& [start, end] : ends_) ranges.push_back({start.first, start.second, end});
  return ranges;
}

}  // namespace keelson
