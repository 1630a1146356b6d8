#include "core/data/columnar_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored as they lie there");

constexpr uint32_t kColumnarVersion = 1;
constexpr uint64_t kMostDirectoryElements = uint64_t{1} << 40;  // of a record's numbers

absl::Status WrongBytes(absl::string_view expected, absl::string_view found) {
  return absl::DataLossError(absl::StrCat("expected ", expected, ", found ", found));
}

template <typename Number>
void AppendRaw(Number number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendText(absl::string_view text, std::string* bytes) {
  AppendRaw<uint64_t>(text.size(), bytes);
  bytes->append(text.data(), text.size());
}

// Takes values off the front; once they do not suffice all are empty and ok() is false.
class DirectoryReader {
 public:
  explicit DirectoryReader(absl::string_view bytes) : rest_(bytes) {}

  uint64_t Next() {
    uint64_t number = 0;
    if (rest_.size() < sizeof(number)) {
      ok_ = false;
      return 0;
    }
    std::memcpy(&number, rest_.data(), sizeof(number));
    rest_.remove_prefix(sizeof(number));
    return number;
  }
  // A number that is no greater than `most`.
  uint64_t Next(uint64_t most) {
    const uint64_t number = Next();
    ok_ = ok_ && number <= most;
    return ok_ ? number : 0;
  }
  std::string NextText() {
    const uint64_t size = Next();
    if (size > rest_.size()) {
      ok_ = false;
      return "";
    }
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  // How many things follow that have `bytes` bytes or more each.
  uint64_t NextCount(uint64_t bytes) {
    const uint64_t count = Next();
    ok_ = ok_ && count <= rest_.size() / bytes;
    return ok_ ? count : 0;
  }

  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  absl::string_view rest_;
  bool ok_ = true;
};

Shape ReadShape(DirectoryReader* reader, bool* sound) {
  std::vector<int64_t> dims(reader->NextCount(sizeof(uint64_t)));
  uint64_t elements = 1;
  for (int64_t& dim : dims) {
    dim = static_cast<int64_t>(reader->Next(kMostDirectoryElements / elements));
    if (dim == 0) *sound = false;
    elements *= static_cast<uint64_t>(std::max<int64_t>(dim, 1));
  }
  return Shape(std::move(dims));
}

ColumnarFeature ReadFeature(DirectoryReader* reader, bool* sound) {
  constexpr auto kLastKind = static_cast<uint64_t>(FeatureKind::kBag);
  ColumnarFeature feature;
  feature.spec.name = reader->NextText();
  feature.spec.kind = static_cast<FeatureKind>(reader->Next(kLastKind));
  feature.spec.weighted = reader->Next(1) == 1;
  feature.spec.shape = ReadShape(reader, sound);
  feature.spec.num_ids = static_cast<int64_t>(reader->Next(~uint64_t{0} >> 1));
  feature.max_id = reader->Next();
  const bool numbers = feature.spec.kind == FeatureKind::kNumbers;
  const bool bag = feature.spec.kind == FeatureKind::kBag;
  if (feature.spec.weighted && !bag) *sound = false;
  if (!numbers && feature.spec.shape.rank() > 0) *sound = false;
  return feature;
}

ColumnarLabel ReadLabel(DirectoryReader* reader) {
  ColumnarLabel label;
  label.name = reader->NextText();
  label.min = std::bit_cast<float>(static_cast<uint32_t>(reader->Next(~uint32_t{0})));
  label.max = std::bit_cast<float>(static_cast<uint32_t>(reader->Next(~uint32_t{0})));
  label.whole = reader->Next(1) == 1;
  return label;
}

// Of a bag after its offsets: the ids, of which the offsets say how many there are, and weights.
bool BagPartsFit(const ColumnarPart* parts, bool weighted) {
  return parts[0].bytes % sizeof(uint64_t) == 0 &&
         (!weighted || parts[1].bytes == parts[0].bytes / 2);
}

// Whether the parts of a group have as many bytes as its n records need.
bool PartsFit(const ColumnarLayout& layout, const ColumnarPart* parts, uint64_t n) {
  for (const ColumnarFeature& feature : layout.features) {
    uint64_t bytes = n * sizeof(uint64_t);
    if (feature.spec.kind == FeatureKind::kNumbers) {
      bytes = n * static_cast<uint64_t>(feature.spec.shape.num_elements()) * sizeof(float);
    } else if (feature.spec.kind == FeatureKind::kBag) {
      bytes = (n + 1) * sizeof(uint64_t);
      if (!BagPartsFit(parts + 1, feature.spec.weighted)) return false;
    }
    if (parts->bytes != bytes) return false;
    parts += ColumnarArrays(feature.spec);
  }
  return std::all_of(parts, parts + layout.labels.size(),
                     [n](const ColumnarPart& part) { return part.bytes == n * sizeof(float); });
}

bool ReadParts(DirectoryReader* reader, uint64_t begin_of_directory, ColumnarLayout* layout) {
  constexpr uint64_t kPartBytes = 3 * sizeof(uint64_t);
  const size_t arrays = layout->num_arrays();
  const auto groups = static_cast<uint64_t>(layout->num_groups());
  if (arrays == 0 || reader->left() % (arrays * kPartBytes) != 0) return false;
  if (reader->left() / (arrays * kPartBytes) != groups) return false;
  layout->parts.resize(arrays * groups);
  for (ColumnarPart& part : layout->parts) {
    part.offset = reader->Next(begin_of_directory);
    part.bytes = reader->Next(begin_of_directory - part.offset);
    part.crc = static_cast<uint32_t>(reader->Next(~uint32_t{0}));
    if (part.offset % kColumnarAlignment != 0) return false;
  }
  if (!reader->ok()) return false;
  for (uint64_t g = 0; g < groups; ++g) {
    const auto records = static_cast<uint64_t>(layout->GroupRecords(static_cast<int64_t>(g)));
    if (!PartsFit(*layout, layout->parts.data() + g * arrays, records)) return false;
  }
  return true;
}

}  // namespace

size_t ColumnarArrays(const FeatureSpec& feature) {
  if (feature.kind != FeatureKind::kBag) return 1;
  return feature.weighted ? 3 : 2;
}

size_t ColumnarLayout::num_arrays() const { return ArrayOfLabel(labels.size()); }

size_t ColumnarLayout::ArrayOfFeature(size_t feature) const {
  size_t array = 0;
  for (size_t i = 0; i < feature; ++i) array += ColumnarArrays(features[i].spec);
  return array;
}

size_t ColumnarLayout::ArrayOfLabel(size_t label) const {
  return ArrayOfFeature(features.size()) + label;
}

int64_t ColumnarLayout::GroupRecords(int64_t group) const {
  return std::min(kColumnarGroup, num_records - group * kColumnarGroup);
}

std::string EncodeColumnarDirectory(const ColumnarLayout& layout) {
  std::string bytes;
  const auto append = [&bytes](uint64_t number) { AppendRaw(number, &bytes); };
  append(static_cast<uint64_t>(layout.num_records));
  append(layout.features.size());
  for (const ColumnarFeature& feature : layout.features) {
    AppendText(feature.spec.name, &bytes);
    append(static_cast<uint64_t>(feature.spec.kind));
    append(feature.spec.weighted ? 1 : 0);
    append(feature.spec.shape.rank());
    for (const int64_t dim : feature.spec.shape.dims()) append(static_cast<uint64_t>(dim));
    append(static_cast<uint64_t>(feature.spec.num_ids));
    append(feature.max_id);
  }
  append(layout.labels.size());
  for (const ColumnarLabel& label : layout.labels) {
    AppendText(label.name, &bytes);
    append(std::bit_cast<uint32_t>(label.min));
    append(std::bit_cast<uint32_t>(label.max));
    append(label.whole ? 1 : 0);
  }
  for (const ColumnarPart& part : layout.parts) {
    append(part.offset);
    append(part.bytes);
    append(part.crc);
  }
  return bytes;
}

std::string EncodeColumnarTrailer(uint64_t begin, absl::string_view directory) {
  std::string bytes;
  AppendRaw(begin, &bytes);
  AppendRaw<uint64_t>(directory.size(), &bytes);
  AppendRaw(MaskCrc32c(Crc32c(directory)), &bytes);
  AppendRaw(kColumnarVersion, &bytes);
  bytes.append(kColumnarMagic.data(), kColumnarMagic.size());
  return bytes;
}

absl::StatusOr<ColumnarTrailer> DecodeColumnarTrailer(absl::string_view bytes,
                                                      uint64_t file_bytes) {
  if (bytes.size() != kColumnarTrailerBytes ||
      bytes.substr(kColumnarTrailerBytes - kColumnarMagic.size()) != kColumnarMagic) {
    return WrongBytes("the end of a columnar file", "other bytes; was it copied as a whole?");
  }
  ColumnarTrailer trailer;
  uint32_t version = 0;
  std::memcpy(&trailer.begin, bytes.data(), sizeof(trailer.begin));
  std::memcpy(&trailer.bytes, bytes.data() + 8, sizeof(trailer.bytes));
  std::memcpy(&trailer.crc, bytes.data() + 16, sizeof(trailer.crc));
  std::memcpy(&version, bytes.data() + 20, sizeof(version));
  if (version != kColumnarVersion) {
    return WrongBytes(absl::StrCat("version ", kColumnarVersion, " of the form"),
                      absl::StrCat(version, "; convert the records again"));
  }
  const uint64_t most = file_bytes - kColumnarTrailerBytes;
  if (trailer.begin > most || trailer.bytes != most - trailer.begin) {
    return WrongBytes(absl::StrCat("a directory of ", trailer.bytes, " bytes at byte ",
                                   trailer.begin, " before the end"),
                      absl::StrCat("a file of ", file_bytes, " bytes"));
  }
  return trailer;
}

absl::StatusOr<ColumnarLayout> DecodeColumnarDirectory(absl::string_view directory,
                                                       const ColumnarTrailer& trailer) {
  if (MaskCrc32c(Crc32c(directory)) != trailer.crc) {
    return WrongBytes("a directory that fits its checksum", "another one");
  }
  constexpr uint64_t kLeastFeature = 6 * sizeof(uint64_t), kLeastLabel = 4 * sizeof(uint64_t);
  DirectoryReader reader(directory);
  ColumnarLayout layout;
  bool sound = true;
  layout.num_records = static_cast<int64_t>(reader.Next(uint64_t{1} << 48));
  layout.features.resize(reader.NextCount(kLeastFeature));
  for (ColumnarFeature& feature : layout.features) feature = ReadFeature(&reader, &sound);
  layout.labels.resize(reader.NextCount(kLeastLabel));
  for (ColumnarLabel& label : layout.labels) label = ReadLabel(&reader);
  if (!sound || !reader.ok() || !ReadParts(&reader, trailer.begin, &layout)) {
    return WrongBytes("the directory of a columnar file", "other bytes");
  }
  return layout;
}

}  // namespace keelson
