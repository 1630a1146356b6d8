// libFuzzer program for .npz and .npy. Kinds of input: an archive; a member of one, which is stored
// or compressed; a header of a .npy file.

#include "core/tensor_files/npy_header.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/npz_testing.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kStored, kCompressed, kHeader, kNumKinds };

// deflate makes at most this many bytes out of one.
constexpr size_t kMaxDeflateRatio = 1032;

void TestFile(const std::string& content) {
  const auto file = NpzFile::Open(InputFile("model.npz", content));
  if (!file.ok()) return;
  for (const TensorInfo& tensor : (*file)->List()) {
    const absl::StatusOr<std::string> values = (*file)->Read(tensor.name);
    if (!values.ok()) continue;
    Check(static_cast<int64_t>(values->size()) ==
              tensor.shape.num_elements() * DtypeSize(tensor.dtype),
          "an array has the size that its shape says");
    Check(values->size() <= kMaxDeflateRatio * content.size(), "arrays come out of the file");
  }
}

void TestHeader(absl::string_view bytes) {
  const absl::StatusOr<size_t> size = NpyHeaderSize(bytes.substr(0, kNpyPrefixBytes));
  if (!size.ok() || *size > bytes.size()) return;
  const absl::StatusOr<NpyHeader> header = DecodeNpyHeader(bytes.substr(0, *size));
  if (!header.ok()) return;
  const std::string encoded = EncodeNpyHeader(*header);
  const absl::StatusOr<NpyHeader> again = DecodeNpyHeader(encoded);
  Check(again.ok() && again->dtype == header->dtype && again->shape == header->shape &&
            again->fortran_order == header->fortran_order,
        "a header that is written again says the same");
}

}  // namespace

std::vector<std::string> Seeds() {
  NpyHeader header{BundleDtype::kFloat32, Shape({2, 3}), true};
  const std::string bytes = EncodeNpyHeader(header);
  const std::string member = bytes + std::string(24, 'x');
  std::vector<std::string> seeds;
  AddSeeds(kFile, {ZipArchive("w.npy", member, false), ZipArchive("w.npy", member, true)}, &seeds);
  AddSeeds(kStored, {member}, &seeds);
  AddSeeds(kCompressed, {member}, &seeds);
  AddSeeds(kHeader, {bytes}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  switch (kind % kNumKinds) {
    case kFile:
      return TestFile(std::string(input));
    case kStored:
      return TestFile(ZipArchive("w.npy", input, false));
    case kCompressed:
      return TestFile(ZipArchive("w.npy", input, true));
    default:
      return TestHeader(input);
  }
}

}  // namespace keelson
