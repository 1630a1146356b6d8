#include "core/table/id_list.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/base/varint.h"
#include "core/table/row_id.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian");

// The difference from the id before within the partition; the first id as it is. For ids that do
// not ascend it is a number of 64 bits, too.
template <typename Visit>
void VisitDeltas(absl::Span<const uint32_t> counts, absl::Span<const uint64_t> ids, Visit visit) {
  const uint64_t* id = ids.data();
  for (const uint32_t count : counts) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < count; ++i, ++id) {
      visit(*id - before);
      before = *id;
    }
  }
}

absl::Status Malformed(absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("ids: expected ", expected, ", found ", found));
}

absl::Status MalformedIn(uint32_t partition, absl::string_view expected, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("ids of partition ", partition, ": expected ", expected, ", found ", found));
}

// Takes a number in as few bytes as it needs off the front.
bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  const size_t before = bytes->size();
  return ConsumeVarint(bytes, value) && before - bytes->size() == VarintBytes(*value);
}

absl::Status TakeCounts(const RowSection& section, absl::string_view* bytes,
                        std::vector<uint32_t>* counts) {
  counts->clear();
  uint64_t sum = 0;
  for (uint32_t p = 0; p < section.num_partitions; ++p) {
    uint64_t count;
    if (!TakeVarint(bytes, &count)) {
      return MalformedIn(section.first_partition + p, "their count as a varint", "none");
    }
    if (count > section.num_ids - sum) {
      return MalformedIn(section.first_partition + p,
                         absl::StrCat("at most ", section.num_ids - sum, " of num_ids left"),
                         absl::StrCat("a count of ", count));
    }
    sum += count;
    counts->push_back(static_cast<uint32_t>(count));
  }
  if (sum == section.num_ids) return absl::OkStatus();
  return Malformed(absl::StrCat("counts that add up to num_ids, ", section.num_ids),
                   absl::StrCat("a sum of ", sum));
}

template <typename Id>
absl::Status CopyRaw(absl::string_view bytes, absl::Span<uint64_t> ids) {
  if (bytes.size() != ids.size() * sizeof(Id)) {
    return Malformed(absl::StrCat(ids.size() * sizeof(Id), " bytes after the counts"),
                     absl::StrCat(bytes.size()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    Id id;
    std::memcpy(&id, bytes.data() + i * sizeof(Id), sizeof(Id));
    ids[i] = id;
  }
  return absl::OkStatus();
}

absl::Status TakeDeltas(const RowSection& section, absl::string_view bytes, IdList* list) {
  uint64_t* id = list->ids.data();
  for (size_t p = 0; p < list->counts.size(); ++p) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < list->counts[p]; ++i, ++id) {
      uint64_t delta;
      const auto partition = static_cast<uint32_t>(section.first_partition + p);
      if (!TakeVarint(&bytes, &delta)) return MalformedIn(partition, "a varint", "none");
      *id = before + delta;
      if (*id < before) return MalformedIn(partition, "differences below 2^64", "more");
      before = *id;
    }
  }
  if (bytes.empty()) return absl::OkStatus();
  return Malformed("no bytes after the last one", absl::StrCat(bytes.size()));
}

absl::Status TakeIds(const RowSection& section, absl::string_view bytes, IdList* list) {
  // Each id has a byte at least, so that what is allocated is bounded by what has arrived.
  if (section.num_ids > bytes.size()) {
    return Malformed(absl::StrCat("at least ", section.num_ids, " bytes after the counts"),
                     absl::StrCat(bytes.size()));
  }
  list->ids.resize(section.num_ids);
  switch (section.id_coding) {
    case IdCoding::kRaw64:
      return CopyRaw<uint64_t>(bytes, absl::MakeSpan(list->ids));
    case IdCoding::kRaw32:
      return CopyRaw<uint32_t>(bytes, absl::MakeSpan(list->ids));
    case IdCoding::kDelta:
      break;
  }
  return TakeDeltas(section, bytes, list);
}

absl::Status CheckPartition(uint32_t partition, uint64_t salt, absl::Span<const uint64_t> ids) {
  bool ascending = true, own = true;
  for (size_t i = 0; i < ids.size(); ++i) {
    ascending &= i == 0 || ids[i - 1] < ids[i];
    own &= RowPartitionOf(MixId(ids[i], salt)) == partition;
  }
  if (ascending && own) return absl::OkStatus();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0 && ids[i - 1] >= ids[i]) {
      return MalformedIn(partition, "ascending ones", absl::StrCat(ids[i], " after ", ids[i - 1]));
    }
    const uint32_t other = RowPartitionOf(MixId(ids[i], salt));
    if (other != partition) {
      return MalformedIn(partition, "its own", absl::StrCat(ids[i], ", which is of ", other));
    }
  }
  return absl::OkStatus();
}

}  // namespace

IdListForm SmallestForm(absl::Span<const uint32_t> counts, absl::Span<const uint64_t> ids) {
  size_t count_bytes = 0, delta_bytes = 0;
  uint64_t bits = 0;
  for (const uint32_t count : counts) count_bytes += VarintBytes(count);
  for (const uint64_t id : ids) bits |= id;
  VisitDeltas(counts, ids, [&](uint64_t delta) { delta_bytes += VarintBytes(delta); });
  IdListForm form{IdCoding::kRaw64, ids.size() * sizeof(uint64_t)};
  if (bits >> 32 == 0) form = {IdCoding::kRaw32, ids.size() * sizeof(uint32_t)};
  if (delta_bytes < form.bytes) form = {IdCoding::kDelta, delta_bytes};
  form.bytes += count_bytes;
  return form;
}

void EncodeIdList(const IdListForm& form, absl::Span<const uint32_t> counts,
                  absl::Span<const uint64_t> ids, uint8_t* to) {
  for (const uint32_t count : counts) to = PutVarint(count, to);
  switch (form.coding) {
    case IdCoding::kRaw64:
      if (!ids.empty()) std::memcpy(to, ids.data(), ids.size() * sizeof(uint64_t));
      return;
    case IdCoding::kRaw32:
      for (const uint64_t id : ids) {
        const auto narrow = static_cast<uint32_t>(id);
        std::memcpy(to, &narrow, sizeof(narrow));
        to += sizeof(narrow);
      }
      return;
    case IdCoding::kDelta:
      VisitDeltas(counts, ids, [&](uint64_t delta) { to = PutVarint(delta, to); });
  }
}

absl::Status DecodeIdList(const RowSection& section, uint64_t salt, absl::string_view bytes,
                          IdList* list) {
  RETURN_IF_ERROR(TakeCounts(section, &bytes, &list->counts));
  RETURN_IF_ERROR(TakeIds(section, bytes, list));
  absl::Span<const uint64_t> left = list->ids;
  for (uint32_t p = 0; p < section.num_partitions; ++p) {
    const uint32_t count = list->counts[p];
    RETURN_IF_ERROR(CheckPartition(section.first_partition + p, salt, left.first(count)));
    left.remove_prefix(count);
  }
  return absl::OkStatus();
}

}  // namespace keelson
