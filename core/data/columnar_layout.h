// How a columnar file lies on the disk: features and labels of records, ready to be copied into
// batches.
//
// All numbers are little-endian. A file is, in this order:
//   "KLSNCOLS" and 56 bytes 0;
//   the parts, each at a multiple of 64 bytes;
//   the directory, at such a multiple, too;
//   the trailer: where the directory begins, its bytes (both of 64 bits), its masked CRC-32C and
//   the version of the form (both of 32 bits), and "KLSNCOLS" again.
// Records that follow one another are a group; all but the last have kColumnarGroup. A group has a
// part for each array, whose elements are those of its n records:
//   numbers: n times the shape's float32;
//   an id: n of 64 bits;
//   a bag: n + 1 of 64 bits, the first ids of each record among the group's, and the end; then, as
//   parts of their own, the ids and, of a weighted bag, the float32 weights;
//   a label: n float32.
// The directory has numbers of 64 bits: the records; the number of features, and of each the name
// (its bytes and these), the kind, whether it is weighted, the rank and the dimensions, num_ids
// (FeatureSpec) and the greatest id; the number of labels, and of each the name, the bits of the
// least and of the greatest one as float32, and whether all are whole; then of each part, group by
// group, where it begins, its bytes, and their masked CRC-32C.
#ifndef KEELSON_CORE_DATA_COLUMNAR_LAYOUT_H_
#define KEELSON_CORE_DATA_COLUMNAR_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/spec/record_schema.h"

namespace keelson {

inline constexpr absl::string_view kColumnarMagic = "KLSNCOLS";
inline constexpr size_t kColumnarAlignment = 64;
inline constexpr size_t kColumnarTrailerBytes = 32;
// Few enough that what a group's arrays have is quickly checked, and many enough that the directory
// is small.
inline constexpr int64_t kColumnarGroup = 4096;

struct ColumnarFeature {
  FeatureSpec spec;
  uint64_t max_id = 0;  // 0 without an id
};

struct ColumnarLabel {
  std::string name;
  float min = 0;
  float max = 0;
  bool whole = true;  // all of them
};

struct ColumnarPart {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t crc = 0;  // masked
};

struct ColumnarLayout {
  int64_t num_records = 0;
  std::vector<ColumnarFeature> features;
  std::vector<ColumnarLabel> labels;
  // Of group g and array a: parts[g * num_arrays() + a].
  std::vector<ColumnarPart> parts;

  // Features in their order, each with 1 to 3 arrays, then labels.
  size_t num_arrays() const;
  // The first array of a feature, and of a label.
  size_t ArrayOfFeature(size_t feature) const;
  size_t ArrayOfLabel(size_t label) const;
  int64_t num_groups() const { return (num_records + kColumnarGroup - 1) / kColumnarGroup; }
  int64_t GroupRecords(int64_t group) const;
};

// How many arrays a feature has.
size_t ColumnarArrays(const FeatureSpec& feature);

std::string EncodeColumnarDirectory(const ColumnarLayout& layout);
// `begin`: where it lies in the file.
std::string EncodeColumnarTrailer(uint64_t begin, absl::string_view directory);

struct ColumnarTrailer {
  uint64_t begin = 0;  // of the directory
  uint64_t bytes = 0;
  uint32_t crc = 0;
};
// `bytes`: the file's last kColumnarTrailerBytes. DATA_LOSS, without the file's name: it is no such
// trailer, is of another version, or of a file of another size than `file_bytes`.
absl::StatusOr<ColumnarTrailer> DecodeColumnarTrailer(absl::string_view bytes, uint64_t file_bytes);
// `directory` are the bytes that the trailer names. DATA_LOSS, likewise: they do not fit their
// checksum, or are no directory whose parts lie before it.
absl::StatusOr<ColumnarLayout> DecodeColumnarDirectory(absl::string_view directory,
                                                       const ColumnarTrailer& trailer);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_COLUMNAR_LAYOUT_H_
