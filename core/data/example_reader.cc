#include "core/data/example_reader.h"

#include <bit>
#include <cstring>

#include "absl/types/span.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

// Protocol Buffers' types of fields: https://protobuf.dev/programming-guides/encoding.
enum class WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Takes the fields off a message.
class WireReader {
 public:
  explicit WireReader(absl::string_view message) : rest_(message) {}

  // The next field, of which a type other than bytes has a number alone. False: there is none.
  bool Next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    ok_ = TakeVarint(&tag) && TakeValue(static_cast<WireType>(tag & 7));
    type_ = static_cast<WireType>(tag & 7);
    field_ = tag >> 3;
    ok_ = ok_ && field_ > 0;
    return ok_;
  }

  // Whether the field is that one.
  bool Is(uint64_t field, WireType type) const { return field_ == field && type_ == type; }
  absl::string_view bytes() const { return bytes_; }
  uint64_t number() const { return number_; }
  // False: what is left is no field.
  bool ok() const { return ok_; }
  const char* at() const { return rest_.data(); }

  // The rest of the message as numbers alone, one after the other.
  bool TakeVarint(uint64_t* value) {
    constexpr int kMostBits = 64;
    *value = 0;
    for (int shift = 0; shift < kMostBits; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  bool TakeValue(WireType type) {
    switch (type) {
      case WireType::kVarint:
        return TakeVarint(&number_);
      case WireType::kFixed64:
        return TakeFixed(sizeof(uint64_t));
      case WireType::kFixed32:
        return TakeFixed(sizeof(uint32_t));
      case WireType::kBytes: {
        uint64_t size = 0;
        if (!TakeVarint(&size) || size > rest_.size()) return false;
        bytes_ = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
    }
    return false;
  }

  bool TakeFixed(size_t size) {
    if (rest_.size() < size) return false;
    number_ = 0;
    std::memcpy(&number_, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }

  absl::string_view rest_;
  WireType type_ = WireType::kVarint;
  uint64_t field_ = 0;
  uint64_t number_ = 0;
  absl::string_view bytes_;
  bool ok_ = true;
};

// One entry of the map of features.
bool VisitEntry(absl::string_view entry,
                absl::FunctionRef<bool(absl::string_view, absl::string_view)> visit) {
  absl::string_view name, feature;
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.Is(1, WireType::kBytes)) name = reader.bytes();
    if (reader.Is(2, WireType::kBytes)) feature = reader.bytes();
  }
  return reader.ok() && visit(name, feature);
}

}  // namespace

bool ForEachFeature(absl::string_view example,
                    absl::FunctionRef<bool(absl::string_view, absl::string_view)> visit,
                    size_t* bad_byte) {
  const auto fail = [&](const char* at) {
    *bad_byte = at - example.data();
    return false;
  };
  WireReader fields(example);
  while (fields.Next()) {
    if (!fields.Is(1, WireType::kBytes)) continue;
    WireReader entries(fields.bytes());
    while (entries.Next()) {
      if (!entries.Is(1, WireType::kBytes)) continue;
      if (!VisitEntry(entries.bytes(), visit)) return fail(entries.bytes().data());
    }
    if (!entries.ok()) return fail(entries.at());
  }
  return fields.ok() || fail(fields.at());
}

bool ExampleReader::Read(absl::string_view example, size_t* bad_byte) {
  ranges_.assign(columns_.size(), Range());
  texts_.clear();
  numbers_.clear();
  integers_.clear();
  const auto read = [&](absl::string_view name, absl::string_view feature) {
    const auto found = columns_.find(name);
    return found == columns_.end() || ReadFeature(feature, &ranges_[found->second]);
  };
  if (!ForEachFeature(example, read, bad_byte)) return false;
  values_.clear();
  for (const Range& range : ranges_) {
    const size_t size = range.end - range.begin;
    switch (size == 0 ? ColumnValue::Kind::kMissing : range.kind) {
      case ColumnValue::Kind::kTexts:
        values_.push_back(ColumnValue::Texts(absl::MakeSpan(texts_).subspan(range.begin, size)));
        break;
      case ColumnValue::Kind::kIntegers:
        values_.push_back(
            ColumnValue::Integers(absl::MakeSpan(integers_).subspan(range.begin, size)));
        break;
      case ColumnValue::Kind::kNumbers:
        values_.push_back(
            ColumnValue::Numbers(absl::MakeSpan(numbers_).subspan(range.begin, size)));
        break;
      case ColumnValue::Kind::kText:
      case ColumnValue::Kind::kMissing:
        values_.emplace_back();
    }
  }
  return true;
}

bool ExampleReader::ReadFeature(absl::string_view feature, Range* range) {
  *range = Range();
  WireReader lists(feature);
  while (lists.Next()) {
    bool ok = true;
    if (lists.Is(1, WireType::kBytes)) ok = ReadTexts(lists.bytes(), range);
    if (lists.Is(2, WireType::kBytes)) ok = ReadNumbers(lists.bytes(), range);
    if (lists.Is(3, WireType::kBytes)) ok = ReadIntegers(lists.bytes(), range);
    if (!ok) return false;
  }
  return lists.ok();
}

// A list of the kind that the feature has already continues it; another one takes its place.
void ExampleReader::Begin(ColumnValue::Kind kind, size_t size, Range* range) {
  if (range->kind == kind) return;
  *range = {kind, size, size};
}

bool ExampleReader::ReadTexts(absl::string_view list, Range* range) {
  Begin(ColumnValue::Kind::kTexts, texts_.size(), range);
  WireReader values(list);
  while (values.Next()) {
    if (values.Is(1, WireType::kBytes)) texts_.push_back(values.bytes());
  }
  range->end = texts_.size();
  return values.ok();
}

bool ExampleReader::ReadNumbers(absl::string_view list, Range* range) {
  Begin(ColumnValue::Kind::kNumbers, numbers_.size(), range);
  WireReader values(list);
  while (values.Next()) {
    if (values.Is(1, WireType::kFixed32)) {
      numbers_.push_back(std::bit_cast<float>(static_cast<uint32_t>(values.number())));
    } else if (values.Is(1, WireType::kBytes)) {
      const size_t bytes = values.bytes().size(), before = numbers_.size();
      if (bytes % sizeof(float) != 0) return false;
      if (bytes == 0) continue;
      numbers_.resize(before + bytes / sizeof(float));
      std::memcpy(numbers_.data() + before, values.bytes().data(), bytes);
    }
  }
  range->end = numbers_.size();
  return values.ok();
}

bool ExampleReader::ReadIntegers(absl::string_view list, Range* range) {
  Begin(ColumnValue::Kind::kIntegers, integers_.size(), range);
  WireReader values(list);
  while (values.Next()) {
    if (values.Is(1, WireType::kVarint)) {
      integers_.push_back(static_cast<int64_t>(values.number()));
    } else if (values.Is(1, WireType::kBytes)) {
      WireReader packed(values.bytes());
      while (!packed.at_end()) {
        uint64_t value = 0;
        if (!packed.TakeVarint(&value)) return false;
        integers_.push_back(static_cast<int64_t>(value));
      }
    }
  }
  range->end = integers_.size();
  return values.ok();
}

}  // namespace keelson
