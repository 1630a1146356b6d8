// libFuzzer program for safetensors. Kinds of input: a file; a header, after a byte with the number
// of bytes of data.

#include "core/tensor_files/safetensors.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char { kFile, kHeader, kNumKinds };

std::string WithLength(absl::string_view header) {
  const uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof(length));
  return bytes.append(header.data(), header.size());
}

void TestFile(const std::string& content) {
  const auto file = SafetensorsFile::Open(InputFile("model.safetensors", content));
  if (!file.ok()) return;
  size_t bytes = 0;
  for (const TensorInfo& tensor : (*file)->List()) {
    const absl::StatusOr<std::string> values = (*file)->Read(tensor.name);
    Check(values.ok(), "tensors that are listed can be read");
    Check(static_cast<int64_t>(values->size()) ==
              tensor.shape.num_elements() * DtypeSize(tensor.dtype),
          "a tensor has the size that its shape says");
    bytes += values->size();
  }
  Check(bytes <= content.size(), "tensors are parts of the file");
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string header =
      R"({"__metadata__":{"step":"3"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";
  std::vector<std::string> seeds;
  AddSeeds(kFile, {WithLength(header) + std::string(9, 'x'), WithLength("{}")}, &seeds);
  AddSeeds(kHeader, {'\x09' + header, std::string("\0{\"a\":[[1e9]]}", 14)}, &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  if (kind % kNumKinds == kFile) return TestFile(std::string(input));
  if (input.empty()) return;
  TestFile(WithLength(input.substr(1)) + std::string(static_cast<uint8_t>(input[0]), 'x'));
}

}  // namespace keelson
