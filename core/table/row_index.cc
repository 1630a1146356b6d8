#include "core/table/row_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace keelson {
namespace {

// Of the places of a segment that may be used, in hundredths.
constexpr uint64_t kMaxLoad = 85;
// A segment that becomes smaller gets this load at most, so that it does not grow again at once.
constexpr uint64_t kLoadAfterShrinking = 60;
constexpr uint64_t kShrinkBelow = 25;
// A split segment's halves have this load at most.
constexpr uint64_t kLoadAfterSplit = 65;

// Groups of a segment, in groups; then powers of 2.
constexpr std::array<uint32_t, 16> kSizes = {1,  2,  3,  4,  6,  8,   12,  16,
                                             24, 32, 48, 64, 96, 128, 192, 256};

uint64_t EntriesAt(uint32_t num_groups, uint64_t load) {
  return uint64_t{num_groups} * RowIndex::kPlaces * load / 100;
}

// The least size in which `entries` entries are `load` at most.
uint32_t SizeFor(uint64_t entries, uint64_t load) {
  for (const uint32_t size : kSizes) {
    if (entries <= EntriesAt(size, load)) return size;
  }
  uint32_t size = kSizes.back();
  while (entries > EntriesAt(size, load)) size *= 2;
  return size;
}

uint32_t SizeAbove(uint32_t size) {
  const auto* const next = std::upper_bound(kSizes.begin(), kSizes.end(), size);
  return next == kSizes.end() ? 2 * size : *next;
}

constexpr uint16_t kMaxOverflow = std::numeric_limits<uint16_t>::max();

}  // namespace

RowIndex::~RowIndex() {
  for (const Segment& segment : segments_) FreeGroups(segment);
}

size_t RowIndex::bytes() const {
  return groups_ * sizeof(Group) + directory_.capacity() * sizeof(uint32_t) +
         segments_.capacity() * sizeof(Segment);
}

uint32_t RowIndex::Find(uint64_t id, uint64_t mixed) const {
  if (segments_.empty()) return RowSlab::kNoRow;
  const Segment& segment = SegmentOf(mixed);
  const uint8_t tag = TagOf(mixed);
  uint32_t group = GroupOf(mixed, segment);
  for (uint32_t i = 0; i < segment.num_groups; ++i) {
    const Group& searched = segment.groups[group];
    for (uint32_t matches = Matches(searched, tag); matches != 0; matches &= matches - 1) {
      const uint32_t number = searched.rows[std::countr_zero(matches)];
      if (slab_->Row(number)->id == id) return number;
    }
    if (searched.overflow == 0) break;
    if (++group == segment.num_groups) group = 0;
  }
  return RowSlab::kNoRow;
}

void RowIndex::Put(uint64_t mixed, uint32_t number, Segment* segment) {
  uint32_t group = GroupOf(mixed, *segment);
  while (true) {
    Group& filled = segment->groups[group];
    const uint32_t empty = Matches(filled, 0);
    if (empty != 0) {
      const int place = std::countr_zero(empty);
      filled.tags[place] = TagOf(mixed);
      filled.rows[place] = number;
      ++segment->entries;
      return;
    }
    if (filled.overflow < kMaxOverflow) ++filled.overflow;
    if (++group == segment->num_groups) group = 0;
  }
}

// Segments get about as many entries each as others: their number varies by its square root.
void RowIndex::Reserve(uint64_t entries) {
  if (!segments_.empty() || entries == 0) return;
  const auto most_of = [entries](uint32_t depth) {
    const auto mean = static_cast<double>(entries >> depth);
    return static_cast<uint64_t>(mean + 2 * std::sqrt(mean)) + 1;
  };
  uint32_t depth = 0;
  while (depth < kMaxDepth && most_of(depth) > EntriesAt(kMaxGroups, kMaxLoad)) ++depth;
  const uint32_t num_groups = SizeFor(most_of(depth), kMaxLoad);
  for (uint32_t i = 0; i < uint32_t{1} << depth; ++i) {
    Segment segment = {};
    if (!AllocateGroups(num_groups, &segment)) {
      for (const Segment& allocated : segments_) FreeGroups(allocated);
      segments_.clear();
      directory_.clear();
      return;
    }
    segment.depth = depth;
    segments_.push_back(segment);
    directory_.push_back(i);
  }
  depth_ = depth;
}

bool RowIndex::Insert(uint64_t mixed, uint32_t number) {
  if (!MakeRoom(mixed)) return false;
  Put(mixed, number, &SegmentOf(mixed));
  return true;
}

RowIndex::Group* RowIndex::FindEntry(uint64_t mixed, uint32_t number, uint32_t* place) const {
  const Segment& segment = SegmentOf(mixed);
  const uint8_t tag = TagOf(mixed);
  uint32_t group = GroupOf(mixed, segment);
  while (true) {
    Group& searched = segment.groups[group];
    for (uint32_t matches = Matches(searched, tag); matches != 0; matches &= matches - 1) {
      *place = static_cast<uint32_t>(std::countr_zero(matches));
      if (searched.rows[*place] == number) return &searched;
    }
    if (++group == segment.num_groups) group = 0;
  }
}

void RowIndex::Replace(uint64_t mixed, uint32_t number, uint32_t by) {
  uint32_t place = 0;
  FindEntry(mixed, number, &place)->rows[place] = by;
}

void RowIndex::Erase(uint64_t mixed, uint32_t number) {
  uint32_t place = 0;
  const Group* const last = FindEntry(mixed, number, &place);
  Segment& segment = SegmentOf(mixed);
  uint32_t group = GroupOf(mixed, segment);
  while (segment.groups + group != last) {
    uint16_t& overflow = segment.groups[group].overflow;
    if (overflow < kMaxOverflow) --overflow;
    if (++group == segment.num_groups) group = 0;
  }
  segment.groups[group].tags[place] = 0;
  --segment.entries;
  if (segment.num_groups > 1 && segment.entries < EntriesAt(segment.num_groups, kShrinkBelow)) {
    // Without memory the segment stays as it is.
    const uint32_t size = SizeFor(segment.entries, kLoadAfterShrinking);
    if (size < segment.num_groups) Resize(size, &segment);
  }
}

bool RowIndex::AllocateGroups(uint32_t num_groups, Segment* segment) {
  const size_t bytes = num_groups * sizeof(Group);
  segment->groups = static_cast<Group*>(memory_->Allocate(bytes));
  if (segment->groups == nullptr) return false;
  std::memset(static_cast<void*>(segment->groups), 0, bytes);
  segment->num_groups = num_groups;
  segment->entries = 0;
  groups_ += num_groups;
  return true;
}

void RowIndex::FreeGroups(const Segment& segment) {
  groups_ -= segment.num_groups;
  memory_->Free(segment.groups, segment.num_groups * sizeof(Group));
}

bool RowIndex::MakeRoom(uint64_t mixed) {
  if (segments_.empty()) {
    Segment first = {};
    if (!AllocateGroups(1, &first)) return false;
    segments_.push_back(first);
    directory_.push_back(0);
    return true;
  }
  while (true) {
    const uint32_t number = SegmentNumber(mixed);
    Segment& segment = segments_[number];
    if (segment.entries < EntriesAt(segment.num_groups, kMaxLoad)) return true;
    const bool grown = segment.num_groups < kMaxGroups || segment.depth == kMaxDepth
                           ? Resize(SizeAbove(segment.num_groups), &segment)
                           : Split(number);
    // Without memory the last places are used, too.
    if (!grown) return segment.entries < EntriesAt(segment.num_groups, 100);
  }
}

bool RowIndex::Resize(uint32_t num_groups, Segment* segment) {
  Segment resized = *segment;
  if (!AllocateGroups(num_groups, &resized)) return false;
  for (const Entry& entry : EntriesOf(*segment)) Put(entry.mixed, entry.number, &resized);
  FreeGroups(*segment);
  *segment = resized;
  return true;
}

bool RowIndex::Split(uint32_t number) {
  const Segment old = segments_[number];
  const std::vector<Entry> entries = EntriesOf(old);
  const auto half_of = [&](const Entry& entry) {
    return static_cast<size_t>(entry.mixed << (kPartitionBits + old.depth) >> 63);
  };
  const auto ones = static_cast<uint64_t>(std::count_if(
      entries.begin(), entries.end(), [&](const Entry& entry) { return half_of(entry) == 1; }));
  std::array<Segment, 2> halves = {old, old};
  if (!AllocateGroups(SizeFor(entries.size() - ones, kLoadAfterSplit), &halves[0])) return false;
  if (!AllocateGroups(SizeFor(ones, kLoadAfterSplit), &halves[1])) {
    FreeGroups(halves[0]);
    return false;
  }
  for (const Entry& entry : entries) Put(entry.mixed, entry.number, &halves[half_of(entry)]);
  FreeGroups(old);
  for (Segment& half : halves) ++half.depth;
  if (old.depth == depth_) DoubleDirectory();
  // The upper half of the segment's places in the directory becomes the new segment's.
  const auto begin = std::find(directory_.begin(), directory_.end(), number);
  const ptrdiff_t places = ptrdiff_t{1} << (depth_ - old.depth);
  std::fill(begin + places / 2, begin + places, static_cast<uint32_t>(segments_.size()));
  segments_[number] = halves[0];
  segments_.push_back(halves[1]);
  return true;
}

void RowIndex::DoubleDirectory() {
  std::vector<uint32_t> doubled;
  doubled.reserve(2 * directory_.size());
  for (const uint32_t segment : directory_) doubled.insert(doubled.end(), 2, segment);
  directory_ = std::move(doubled);
  ++depth_;
}

std::vector<RowIndex::Entry> RowIndex::EntriesOf(const Segment& segment) const {
  std::vector<Entry> entries;
  entries.reserve(segment.entries);
  for (uint32_t group = 0; group < segment.num_groups; ++group) {
    for (uint32_t i = 0; i < kPlaces; ++i) {
      if (segment.groups[group].tags[i] != 0) entries.push_back({0, segment.groups[group].rows[i]});
    }
  }
  constexpr size_t kAhead = 24;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i + kAhead < entries.size()) __builtin_prefetch(slab_->Row(entries[i + kAhead].number));
    entries[i].mixed = Mix(slab_->Row(entries[i].number)->id);
  }
  return entries;
}

}  // namespace keelson
