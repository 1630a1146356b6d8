#include "core/data/generated_textures.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/data/image_dataset.h"

namespace keelson {
namespace {

constexpr int kDirections = 5;

using Colour = std::array<float, kTextureChannels>;

RecordRandom TextureRandom(uint64_t seed, DataSplit split, int64_t record) {
  return RecordRandom("generated textures", seed, split, record);
}

// The stripes' class, and the label.
struct Classes {
  int drawn = 0;
  int label = 0;
};

Classes DrawClasses(RecordRandom* random) {
  Classes classes;
  classes.drawn = random->Below(kTextureClasses);
  const bool replaced = random->Uniform(0, 1) < static_cast<float>(kRandomTextureLabels);
  const int other = random->Below(kTextureClasses);
  classes.label = replaced ? other : classes.drawn;
  return classes;
}

Colour DrawColour(RecordRandom* random) {
  Colour colour;
  for (float& channel : colour) channel = random->Uniform(0, 1);
  return colour;
}

void DrawTexture(uint64_t seed, DataSplit split, int64_t record, uint8_t* pixels) {
  RecordRandom random = TextureRandom(seed, split, record);
  const int drawn = DrawClasses(&random).drawn;
  // The directions are 36 degrees apart, and drawn up to 9 degrees off.
  const float direction =
      (static_cast<float>(drawn % kDirections) + random.Around(0.25f)) * kPi / kDirections;
  const float width = drawn < kDirections ? 8 : 4;  // pixels from stripe to stripe
  const float cycles = 2 * kPi / (width * random.Uniform(0.9f, 1.1f));
  const float along_x = cycles * std::cos(direction), along_y = cycles * std::sin(direction);
  const float phase = random.Uniform(0, 2 * kPi);
  const Colour low = DrawColour(&random), high = DrawColour(&random);
  const float contrast = random.Uniform(0.5f, 1);
  for (int y = 0; y < kTextureSide; ++y) {
    for (int x = 0; x < kTextureSide; ++x) {
      const float angle = along_x * static_cast<float>(x) + along_y * static_cast<float>(y) + phase;
      const float share = 0.5f + 0.5f * contrast * std::sin(angle);
      for (int c = 0; c < kTextureChannels; ++c) {
        const float value = low[c] + (high[c] - low[c]) * share + random.Around(0.15f);
        *pixels++ = static_cast<uint8_t>(std::lround(255 * std::clamp(value, 0.0f, 1.0f)));
      }
    }
  }
}

class GeneratedTextures : public DrawnImages {
 public:
  GeneratedTextures(uint64_t seed, DataSplit split, int64_t begin, int64_t end)
      : DrawnImages(Shape({kTextureSide, kTextureSide, kTextureChannels}), end - begin),
        seed_(seed),
        split_(split),
        begin_(begin) {}

 private:
  void Draw(int64_t record, absl::Span<uint8_t> pixels) const override {
    DrawTexture(seed_, split_, begin_ + record, pixels.data());
  }
  int Label(int64_t record) const override {
    RecordRandom random = TextureRandom(seed_, split_, begin_ + record);
    return DrawClasses(&random).label;
  }

  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
};

}  // namespace

std::unique_ptr<Dataset> NewGeneratedTextures(uint64_t seed, DataSplit split, int64_t begin,
                                              int64_t end) {
  return std::make_unique<GeneratedTextures>(seed, split, begin, end);
}

}  // namespace keelson
