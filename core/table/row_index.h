// Where the rows of a table lie: an open hash table of row numbers, whose ids are in the rows.
//
// Groups of one cache line have 12 places: a tag of 8 bits and a row number each, and the number of
// entries that found the group full and went on to the next one; a search ends at a group without
// such. (As in Folly's F14, so erasing leaves no marks behind that slow down later searches.)
// Groups form segments of at most kMaxGroups groups, chosen by the upper bits of the mixed id; a
// full segment becomes larger or two (extendible hashing: Fagin et al., ACM TODS 4(3), 1979), so
// that no insertion moves more than a segment's entries, however many rows there are.
#ifndef KEELSON_CORE_TABLE_ROW_INDEX_H_
#define KEELSON_CORE_TABLE_ROW_INDEX_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/table/row_id.h"
#include "core/table/row_memory.h"
#include "core/table/row_slab.h"

namespace keelson {

// Not thread-safe.
class RowIndex {
 public:
  static constexpr uint32_t kPlaces = 12;
  // A place is empty when its tag is 0.
  struct alignas(64) Group {
    uint8_t tags[kPlaces];
    uint16_t overflow;  // stays at 65535 once it is there
    uint16_t unused;
    uint32_t rows[kPlaces];
  };
  static_assert(sizeof(Group) == 64);

  // `memory` and `slab`, which has the rows, outlive the index. `salt` is the table's.
  RowIndex(RowMemory* memory, const RowSlab* slab, uint64_t salt)
      : memory_(memory), slab_(slab), salt_(salt) {}
  RowIndex(const RowIndex&) = delete;
  RowIndex& operator=(const RowIndex&) = delete;
  ~RowIndex();

  uint64_t Mix(uint64_t id) const { return MixId(id, salt_); }

  // The row's number; RowSlab::kNoRow: the id has none. `mixed` is Mix(id).
  uint32_t Find(uint64_t id, uint64_t mixed) const;

  // Has an empty index take so many entries without growing, but where chance gives a segment many
  // more than others. Without memory it stays as it is.
  void Reserve(uint64_t entries);

  // `number` is a live row with another id than all rows of the index. False: there is no memory,
  // and nothing is changed.
  bool Insert(uint64_t mixed, uint32_t number);
  // Both: the row `number` is in the index.
  void Erase(uint64_t mixed, uint32_t number);
  void Replace(uint64_t mixed, uint32_t number, uint32_t by);

  // Groups and what leads to them.
  size_t bytes() const;

  // The steps of a search, for callers that have several under way. FirstGroup is null while the
  // index is empty; Matches has a bit for each place whose row may be the one.
  const Group* FirstGroup(uint64_t mixed) const {
    if (segments_.empty()) return nullptr;
    const Segment& segment = SegmentOf(mixed);
    return segment.groups + GroupOf(mixed, segment);
  }
  static uint8_t TagOf(uint64_t mixed) {
    const auto tag = static_cast<uint8_t>(mixed >> 32);
    return tag == 0 ? 1 : tag;
  }
  static uint32_t Matches(const Group& group, uint8_t tag) {
#ifdef __SSE2__
    const __m128i tags = _mm_load_si128(reinterpret_cast<const __m128i*>(&group));
    const __m128i equal = _mm_cmpeq_epi8(tags, _mm_set1_epi8(static_cast<char>(tag)));
    return static_cast<uint32_t>(_mm_movemask_epi8(equal)) & ((1 << kPlaces) - 1);
#else
    uint32_t matches = 0;
    for (uint32_t i = 0; i < kPlaces; ++i) matches |= uint32_t{group.tags[i] == tag} << i;
    return matches;
#endif
  }

 private:
  // 16 KiB: a few microseconds to fill, at most 100 or so to read the ids of its rows.
  static constexpr uint32_t kMaxGroups = 256;
  static constexpr uint32_t kPartitionBits = 8;
  // Of the bits below the partition's and above the tag's and group's 40. Beyond 2^16 segments,
  // which is at 10^8 rows in a partition, the segments become larger.
  static constexpr uint32_t kMaxDepth = 16;

  struct Segment {
    Group* groups;
    uint32_t num_groups;
    uint32_t entries;
    uint32_t depth;  // it has the ids that agree in so many bits
  };

  struct Entry {
    uint64_t mixed;
    uint32_t number;
  };

  uint32_t SegmentNumber(uint64_t mixed) const {
    // By two shifts, for a shift by 64 is undefined.
    return directory_[(mixed << kPartitionBits >> 1) >> (63 - depth_)];
  }
  const Segment& SegmentOf(uint64_t mixed) const { return segments_[SegmentNumber(mixed)]; }
  Segment& SegmentOf(uint64_t mixed) { return segments_[SegmentNumber(mixed)]; }
  static uint32_t GroupOf(uint64_t mixed, const Segment& segment) {
    return static_cast<uint32_t>((mixed & 0xffffffff) * segment.num_groups >> 32);
  }
  static void Put(uint64_t mixed, uint32_t number, Segment* segment);
  // The group and place of an entry.
  Group* FindEntry(uint64_t mixed, uint32_t number, uint32_t* place) const;

  // False: there is no memory, and nothing is changed.
  bool AllocateGroups(uint32_t num_groups, Segment* segment);
  bool MakeRoom(uint64_t mixed);
  bool Resize(uint32_t num_groups, Segment* segment);
  bool Split(uint32_t segment);
  void DoubleDirectory();
  void FreeGroups(const Segment& segment);
  std::vector<Entry> EntriesOf(const Segment& segment) const;

  RowMemory* const memory_;
  const RowSlab* const slab_;
  const uint64_t salt_;
  uint32_t depth_ = 0;
  std::vector<uint32_t> directory_;  // 2^depth_ numbers of segments
  std::vector<Segment> segments_;
  size_t groups_ = 0;
};

}  // namespace keelson

#endif  // KEELSON_CORE_TABLE_ROW_INDEX_H_
