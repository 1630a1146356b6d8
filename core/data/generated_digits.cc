#include "core/data/generated_digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/data/digit_strokes.h"
#include "core/data/image_dataset.h"
#include "core/data/record_random.h"

namespace keelson {
namespace {

constexpr float kSide = kDigitSide;

using Random = RecordRandom;

Random RandomOf(uint64_t seed, DataSplit split, int64_t record) {
  return Random("generated digits", seed, split, record);
}

int DrawLabel(Random* random) { return random->Below(kDigitClasses); }

// The unit square of the strokes onto the image: slant, size, rotation, place, and a wave that
// bends straight lines.
class Distortion {
 public:
  explicit Distortion(Random* random) {
    const float angle = random->Around(0.36f);
    const float shear = random->Around(0.45f);
    const float height = random->Uniform(13.5f, 21.5f);
    const float width = height * random->Uniform(0.5f, 0.85f);
    const float c = std::cos(angle), s = std::sin(angle);
    xx_ = c * width;
    xy_ = (c * shear - s) * height;
    yx_ = s * width;
    yy_ = (s * shear + c) * height;
    // Larger digits have less room to move.
    const float room = 1.5f + (21.5f - height) * 0.4f;
    x0_ = kSide / 2 + random->Around(room);
    y0_ = kSide / 2 + random->Around(room);
    for (Wave& wave : waves_) {
      wave = {random->Uniform(0.15f, 0.4f), random->Uniform(0, 2 * kPi), random->Around(1.1f)};
    }
  }

  Point Apply(Point p) const {
    const float u = p.x - 0.5f, v = p.y - 0.5f;
    const float x = x0_ + xx_ * u + xy_ * v, y = y0_ + yx_ * u + yy_ * v;
    return {x + waves_[0].At(y), y + waves_[1].At(x)};
  }

 private:
  struct Wave {
    float frequency, phase, amplitude;
    float At(float position) const { return amplitude * std::sin(frequency * position + phase); }
  };

  float xx_, xy_, yx_, yy_, x0_, y0_;
  std::array<Wave, 2> waves_;
};

// Squared distance from `p` to the segment from `a` to `b`.
float SquaredDistance(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float px = p.x - a.x, py = p.y - a.y;
  const float length2 = dx * dx + dy * dy;
  const float t = length2 > 0 ? std::clamp((px * dx + py * dy) / length2, 0.0f, 1.0f) : 0.0f;
  const float ex = px - t * dx, ey = py - t * dy;
  return ex * ex + ey * ey;
}

int FirstPixel(float a, float b, float reach) {
  return std::clamp(static_cast<int>(std::floor(std::min(a, b) - reach)), 0, kDigitSide);
}
int EndPixel(float a, float b, float reach) {
  return std::clamp(static_cast<int>(std::ceil(std::max(a, b) + reach)) + 1, 0, kDigitSide);
}

class Canvas {
 public:
  // A line with soft edges; where lines cross, the brighter counts.
  void Line(Point a, Point b, float width, float ink) {
    const float reach = width / 2 + 0.5f;
    const int x_end = EndPixel(a.x, b.x, reach), y_end = EndPixel(a.y, b.y, reach);
    for (int y = FirstPixel(a.y, b.y, reach); y < y_end; ++y) {
      for (int x = FirstPixel(a.x, b.x, reach); x < x_end; ++x) {
        const Point centre = {static_cast<float>(x), static_cast<float>(y)};
        const float distance2 = SquaredDistance(centre, a, b);
        if (distance2 >= reach * reach) continue;
        const float cover = std::min(1.0f, reach - std::sqrt(distance2));
        float& pixel = pixels_[y * kDigitSide + x];
        pixel = std::max(pixel, ink * cover);
      }
    }
  }

  void AddNoise(float amplitude, Random* random) {
    for (float& pixel : pixels_) pixel += random->Uniform(-amplitude, amplitude);
  }

  void Store(absl::Span<uint8_t> out) const {
    for (size_t i = 0; i < pixels_.size(); ++i) {
      out[i] = static_cast<uint8_t>(std::clamp(pixels_[i], 0.0f, 1.0f) * 255.0f + 0.5f);
    }
  }

 private:
  std::array<float, kDigitPixels> pixels_ = {};
};

Stroke Jitter(Stroke stroke, float amount, Random* random) {
  for (Point& p : stroke) {
    p.x += random->Around(amount);
    p.y += random->Around(amount);
  }
  return stroke;
}

void DrawStrokes(const DigitStyle& style, Random* random, Canvas* canvas) {
  constexpr int kStepsPerSpan = 5;
  const Distortion distortion(random);
  const float width = random->Uniform(1.3f, 3.2f);
  const float ink = random->Uniform(0.55f, 1.0f);
  for (const Stroke& stroke : style.strokes) {
    Stroke path = Smooth(Jitter(stroke, 0.07f, random), kStepsPerSpan);
    for (Point& p : path) p = distortion.Apply(p);
    for (size_t i = 1; i < path.size(); ++i) canvas->Line(path[i - 1], path[i], width, ink);
  }
}

// Specks and scratches, shorter and mostly fainter than a digit's strokes.
void DrawStrayMarks(Random* random, Canvas* canvas) {
  constexpr std::array<int, 6> kMarks = {0, 0, 0, 1, 1, 2};
  const int marks = kMarks[random->Below(kMarks.size())];
  for (int i = 0; i < marks; ++i) {
    const Point start = {random->Uniform(0, kSide), random->Uniform(0, kSide)};
    const float angle = random->Uniform(0, 2 * kPi), length = random->Uniform(0, 5);
    const Point end = {start.x + length * std::cos(angle), start.y + length * std::sin(angle)};
    const float width = random->Uniform(0.8f, 1.6f), ink = random->Uniform(0.3f, 0.8f);
    canvas->Line(start, end, width, ink);
  }
}

class GeneratedDigits : public DrawnImages {
 public:
  GeneratedDigits(uint64_t seed, DataSplit split, int64_t begin, int64_t end,
                  const Shape& example_shape)
      : DrawnImages(example_shape, end - begin), seed_(seed), split_(split), begin_(begin) {}

 private:
  void Draw(int64_t record, absl::Span<uint8_t> pixels) const override {
    DrawDigit(seed_, split_, begin_ + record, pixels);
  }
  int Label(int64_t record) const override { return DigitLabel(seed_, split_, begin_ + record); }

  const uint64_t seed_;
  const DataSplit split_;
  const int64_t begin_;
};

}  // namespace

int DigitLabel(uint64_t seed, DataSplit split, int64_t record) {
  Random random = RandomOf(seed, split, record);
  return DrawLabel(&random);
}

void DrawDigit(uint64_t seed, DataSplit split, int64_t record, absl::Span<uint8_t> pixels) {
  Random random = RandomOf(seed, split, record);
  const std::vector<DigitStyle>& styles = DigitStyles(DrawLabel(&random));
  Canvas canvas;
  DrawStrokes(styles[random.Below(static_cast<int>(styles.size()))], &random, &canvas);
  DrawStrayMarks(&random, &canvas);
  canvas.AddNoise(random.Uniform(0, 0.18f), &random);
  canvas.Store(pixels);
}

std::unique_ptr<Dataset> NewGeneratedDigits(uint64_t seed, DataSplit split, int64_t begin,
                                            int64_t end, const Shape& example_shape) {
  return std::make_unique<GeneratedDigits>(seed, split, begin, end, example_shape);
}

}  // namespace keelson
