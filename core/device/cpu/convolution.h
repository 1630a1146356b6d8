// Convolutions by oneDNN, prepared once per geometry.
#ifndef KEELSON_CORE_DEVICE_CPU_CONVOLUTION_H_
#define KEELSON_CORE_DEVICE_CPU_CONVOLUTION_H_

#include <cstddef>
#include <list>
#include <memory>

#include "core/device/geometry.h"

namespace keelson {

// Operands are addresses of dense arrays in the Device's layouts. Not thread-safe. Throws
// dnnl::error when oneDNN fails.
class Convolution {
 public:
  // The number of geometries that stay prepared; beyond it the least recently used one is dropped.
  // A job has a few per convolution: its batch size, the evaluation's, and the last batch of each.
  static constexpr size_t kMaxPrepared = 64;

  Convolution();
  ~Convolution();

  void Forward(const ConvGeometry& geometry, const float* x, const float* filter, float* y);
  void BackwardData(const ConvGeometry& geometry, const float* dy, const float* filter, float* dx);
  void BackwardFilter(const ConvGeometry& geometry, const float* x, const float* dy,
                      float* dfilter);

 private:
  enum class Direction { kForward, kBackwardData, kBackwardFilter };
  struct Engine;
  class Prepared;
  struct Entry {
    ConvGeometry geometry;
    Direction direction;
    std::unique_ptr<Prepared> prepared;
  };

  Prepared* Prepare(const ConvGeometry& geometry, Direction direction);
  std::unique_ptr<Prepared> Build(const ConvGeometry& geometry, Direction direction) const;

  const std::unique_ptr<Engine> engine_;
  std::list<Entry> entries_;  // the last used first
};

}  // namespace keelson

#endif  // KEELSON_CORE_DEVICE_CPU_CONVOLUTION_H_
