// libFuzzer program for the gradients in the payload of a push. An input starts with five bytes:
// the format, how the payload (all that follows) is cut into fragments, the block's elements (two
// bytes), whether gradients must be finite.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/wire/value_codec.h"
#include "ps_server/units/gradient_reader.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

constexpr size_t kOptionBytes = 5;
// More than are read at a time in any format.
constexpr int64_t kMaxElements = 10000;

struct Options {
  WireFormat format;
  size_t step;
  int64_t elements;
  bool reject_non_finite;
};

Options OptionsOf(const uint8_t* bytes) {
  return {.format = static_cast<WireFormat>(bytes[0] % kNumWireFormats),
          .step = bytes[1],
          .elements = 1 + (bytes[2] | bytes[3] << 8) % kMaxElements,
          .reject_non_finite = bytes[4] % 2 == 1};
}

void DecodePiece(const EncodedGradient& piece, absl::Span<float> to) {
  if (piece.format == WireFormat::kInt8) return DecodeInt8Group(piece.scale, piece.data, to);
  DecodeElements(piece.format, piece.data, to);
}

struct Result {
  absl::Status status;
  std::vector<float> elements;
  size_t left = 0;
};

Result Read(const ByteRope& payload, const Options& options) {
  ByteCursor checked(payload);
  Result result;
  result.status =
      CheckGradient({options.format, &checked}, options.elements, options.reject_non_finite);
  if (!result.status.ok()) return result;
  result.left = checked.remaining();

  ByteCursor skipped(payload);
  SkipGradient({options.format, &skipped}, options.elements);
  Check(skipped.remaining() == result.left, "skipping moves as far as checking");

  ByteCursor cursor(payload);
  ReadGradient({options.format, &cursor}, options.elements,
               [&result](int64_t first, int64_t count, const EncodedGradient& piece) {
                 Check(count > 0 && first == static_cast<int64_t>(result.elements.size()),
                       "pieces come in order and without gaps");
                 result.elements.resize(first + count);
                 DecodePiece(piece, absl::MakeSpan(result.elements).subspan(first));
               });
  Check(cursor.remaining() == result.left, "reading moves as far as checking");
  Check(result.elements.size() == static_cast<size_t>(options.elements), "all elements are read");
  return result;
}

void TestReader(absl::string_view payload, const Options& options) {
  const Result whole = Read(Cut(payload, 0), options);
  const Result cut = Read(Cut(payload, options.step), options);
  Check(cut.status == whole.status, "errors do not depend on the fragments");
  Check(cut.left == whole.left, "nor does the gradient's size");
  if (!whole.status.ok()) return;
  Check(std::memcmp(cut.elements.data(), whole.elements.data(),
                    whole.elements.size() * sizeof(float)) == 0,
        "nor do the elements");
  if (options.reject_non_finite) {
    Check(std::all_of(whole.elements.begin(), whole.elements.end(),
                      [](float element) { return std::isfinite(element); }),
          "what was accepted is finite");
  }
}

std::string Seed(WireFormat format, int64_t elements, const std::string& payload) {
  const int64_t number = elements - 1;
  const std::string options = {static_cast<char>(format), '\7', static_cast<char>(number & 0xFF),
                               static_cast<char>(number >> 8), '\1'};
  return options + payload;
}

std::vector<std::string> Seeds() {
  constexpr int64_t kElements = 1100;
  std::vector<float> gradient(kElements), residual(kElements);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = 0.01f * static_cast<float>(i);
  std::vector<std::string> seeds;
  for (const auto format : {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    std::string payload(EncodedBytes(format, kElements), '\0');
    EncodeElements(format, gradient, reinterpret_cast<uint8_t*>(payload.data()));
    seeds.push_back(Seed(format, kElements, payload));
  }
  std::string int8(EncodedBytes(WireFormat::kInt8, kElements), '\0');
  EncodeInt8(gradient, absl::MakeSpan(residual), reinterpret_cast<uint8_t*>(int8.data()));
  seeds.push_back(Seed(WireFormat::kInt8, kElements, int8));
  std::string top_k;
  EncodeTopK(gradient, 9, absl::MakeSpan(residual), &top_k);
  seeds.push_back(Seed(WireFormat::kTopK, kElements, top_k));
  return seeds;
}

}  // namespace
}  // namespace keelson

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  keelson::WriteSeeds(*argc, *argv, keelson::Seeds());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < keelson::kOptionBytes) return 0;
  const absl::string_view payload(reinterpret_cast<const char*>(data) + keelson::kOptionBytes,
                                  size - keelson::kOptionBytes);
  keelson::TestReader(payload, keelson::OptionsOf(data));
  return 0;
}
