// Small colour images whose class is the direction and width of their stripes, with wrong labels:
// their share bounds how good any classifier can be. Colours, brightness, phase and noise say
// nothing. A linear classifier learns next to nothing of them.
#ifndef KEELSON_CORE_DATA_GENERATED_TEXTURES_H_
#define KEELSON_CORE_DATA_GENERATED_TEXTURES_H_

#include <cstdint>
#include <memory>

#include "core/data/dataset.h"
#include "core/data/record_random.h"

namespace keelson {

inline constexpr int kTextureSide = 32;     // pixels
inline constexpr int kTextureChannels = 3;  // red, green, blue
inline constexpr int kTextureClasses = 10;
// Each label is replaced with this probability by one of the ten, all equally likely.
inline constexpr double kRandomTextureLabels = 0.1;
// The expected accuracy, and the expected cross-entropy in nats, of a model that sees each class
// and knows of the wrong labels: 0.91, and -0.91 ln 0.91 - 9 * 0.01 ln 0.01.
inline constexpr double kBestTextureAccuracy = 0.91;
inline constexpr double kBestTextureLoss = 0.500288;

// Records [begin, end) of the stream, each drawn when it is first read and kept (3 KiB). One
// feature [kTextureSide, kTextureSide, kTextureChannels] and one label.
std::unique_ptr<Dataset> NewGeneratedTextures(uint64_t seed, DataSplit split, int64_t begin,
                                              int64_t end);

}  // namespace keelson

#endif  // KEELSON_CORE_DATA_GENERATED_TEXTURES_H_
