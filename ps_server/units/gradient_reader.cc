// A message that lies in memory which its sender has mapped too (core/rpc/memory_call.h) may be
// another one when it is read than it was when it was checked. Then the gradient is a wrong one,
// but nothing outside of the block is touched, and reading comes to an end.
#include "ps_server/units/gradient_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/tensor/aligned_buffer.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

// The number of elements of a top-k gradient that are made dense at a time.
constexpr int64_t kDenseElements = 4096;
// The largest magnitude of an int8 element before its scale.
constexpr float kInt8Magnitude = 128;

absl::Status TooShort(size_t expected, size_t left) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", expected, " bytes, found ", left, " left"));
}

absl::Status NotFinite() {
  return absl::InvalidArgumentError("expected finite elements, found one that is not");
}

// Reads float32 and uint32 words that may lie across the border of two fragments.
template <typename Word>
class WordReader {
 public:
  // Reads `words` words from a copy of `cursor` on.
  WordReader(const ByteCursor& cursor, size_t words) : cursor_(cursor), left_(words) {}

  bool done() const { return left_ == 0; }
  Word Peek() {
    if (next_ == filled_) Fill();
    return words_[next_];
  }
  Word Take() {
    const Word word = Peek();
    ++next_;
    --left_;
    return word;
  }

 private:
  void Fill() {
    filled_ = std::min(words_.size(), left_);
    next_ = 0;
    cursor_.Read(words_.data(), filled_ * sizeof(Word));
  }

  ByteCursor cursor_;
  size_t left_;  // not yet taken
  std::array<Word, 256> words_ = {};
  size_t next_ = 0;
  size_t filled_ = 0;
};

void ReadElementwise(WireFormat format, int64_t elements, ByteCursor* cursor,
                     GradientVisitor visit) {
  const size_t width = ElementBytes(format);
  std::array<uint8_t, sizeof(float)> carry;
  int64_t first = 0;
  while (first < elements) {
    const auto piece = cursor->Next((elements - first) * width);
    if (piece.empty()) return;
    const auto whole = static_cast<int64_t>(piece.size() / width);
    if (whole > 0) visit(first, whole, EncodedGradient(format, piece.data()));
    first += whole;
    const size_t cut = piece.size() % width;
    if (cut == 0) continue;
    std::memcpy(carry.data(), piece.data() + piece.size() - cut, cut);
    cursor->Read(carry.data() + cut, width - cut);
    visit(first, 1, EncodedGradient(format, carry.data()));
    ++first;
  }
}

void ReadInt8(int64_t elements, ByteCursor* cursor, GradientVisitor visit) {
  for (int64_t group = 0; group < elements; group += kInt8GroupElements) {
    float scale;
    cursor->Read(&scale, sizeof(scale));
    const int64_t end = std::min(elements, group + kInt8GroupElements);
    for (int64_t first = group; first < end;) {
      const auto piece = cursor->Next(end - first);
      if (piece.empty()) return;
      const auto count = static_cast<int64_t>(piece.size());
      visit(first, count, EncodedGradient(WireFormat::kInt8, piece.data(), scale));
      first += count;
    }
  }
}

void ReadTopK(int64_t elements, ByteCursor* cursor, GradientVisitor visit) {
  uint32_t count;
  cursor->Read(&count, sizeof(count));
  WordReader<uint32_t> positions(*cursor, count);
  cursor->Skip(count * sizeof(uint32_t));
  WordReader<float> values(*cursor, count);
  cursor->Skip(count * sizeof(float));
  alignas(AlignedBuffer::kAlignment) std::array<float, kDenseElements> dense;
  for (int64_t first = 0; first < elements; first += kDenseElements) {
    const int64_t size = std::min(kDenseElements, elements - first);
    std::fill_n(dense.begin(), size, 0.0f);
    while (!positions.done() && positions.Peek() < first + size) {
      const int64_t position = positions.Take();
      const float value = values.Take();
      if (position >= first) dense[position - first] = value;
    }
    visit(first, size, EncodedGradient(dense.data()));
  }
}

bool IsFinite(const EncodedGradient& piece, int64_t count) {
  if (piece.format == WireFormat::kInt8) return std::isfinite(piece.scale * kInt8Magnitude);
  return AllFinite(piece.format, piece.data, count);
}

absl::Status CheckFinite(const WireGradient& gradient, int64_t elements) {
  bool finite = true;
  ReadGradient(gradient, elements, [&](int64_t, int64_t count, const EncodedGradient& piece) {
    finite = finite && IsFinite(piece, count);
  });
  return finite ? absl::OkStatus() : NotFinite();
}

absl::Status CheckPositions(const ByteCursor& cursor, uint32_t count, int64_t elements) {
  WordReader<uint32_t> positions(cursor, count);
  int64_t previous = -1;
  while (!positions.done()) {
    const int64_t position = positions.Take();
    if (position <= previous) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ascending positions, found ", position, " after ", previous));
    }
    if (position >= elements) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected positions below ", elements, ", found ", position));
    }
    previous = position;
  }
  return absl::OkStatus();
}

absl::Status CheckTopK(ByteCursor* cursor, int64_t elements, bool reject_non_finite) {
  const size_t left = cursor->remaining();
  uint32_t count;
  if (!cursor->Read(&count, sizeof(count))) return TooShort(sizeof(count), left);
  if (count > elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", elements, " kept elements, found ", count));
  }
  if (left < TopKBytes(count)) return TooShort(TopKBytes(count), left);
  RETURN_IF_ERROR(CheckPositions(*cursor, count, elements));
  cursor->Skip(count * sizeof(uint32_t));
  const WireGradient values = {WireFormat::kFloat32, cursor};
  if (reject_non_finite) return CheckFinite(values, count);
  SkipGradient(values, count);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGradient(const WireGradient& gradient, int64_t elements, bool reject_non_finite) {
  if (gradient.format == WireFormat::kTopK) {
    return CheckTopK(gradient.cursor, elements, reject_non_finite);
  }
  const size_t expected = EncodedBytes(gradient.format, elements);
  if (gradient.cursor->remaining() < expected) {
    return TooShort(expected, gradient.cursor->remaining());
  }
  if (reject_non_finite) return CheckFinite(gradient, elements);
  SkipGradient(gradient, elements);
  return absl::OkStatus();
}

void ReadGradient(const WireGradient& gradient, int64_t elements, GradientVisitor visit) {
  switch (gradient.format) {
    case WireFormat::kFloat32:
    case WireFormat::kFloat16:
    case WireFormat::kBfloat16:
      return ReadElementwise(gradient.format, elements, gradient.cursor, visit);
    case WireFormat::kInt8:
      return ReadInt8(elements, gradient.cursor, visit);
    case WireFormat::kTopK:
      return ReadTopK(elements, gradient.cursor, visit);
  }
}

void SkipGradient(const WireGradient& gradient, int64_t elements) {
  if (gradient.format != WireFormat::kTopK) {
    gradient.cursor->Skip(EncodedBytes(gradient.format, elements));
    return;
  }
  uint32_t count;
  gradient.cursor->Read(&count, sizeof(count));
  gradient.cursor->Skip(TopKBytes(count) - sizeof(count));
}

}  // namespace keelson
