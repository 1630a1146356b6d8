// The tables by which kernels encode a WireLayout: made once, on the host, then copied to the
// device.
#ifndef KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TABLES_H_
#define KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TABLES_H_

#include <vector>

#include "core/device/cuda/kernels/kernels.h"
#include "core/wire/wire_layout.h"

namespace keelson::cuda {

struct WireTableContents {
  std::vector<WireTile> tiles;        // in the order of the elements; none of them spans blocks
  std::vector<WireTopKBlock> blocks;  // of kTopK only
};

// Empty for kFloat32, which is sent unchanged and needs no kernel.
WireTableContents MakeWireTables(const WireLayout& layout);

}  // namespace keelson::cuda

#endif  // KEELSON_CORE_DEVICE_CUDA_KERNELS_WIRE_TABLES_H_
