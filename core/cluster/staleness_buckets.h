// The buckets in which a worker counts its steps by their staleness, as WorkerFigures has them
// (figures.proto), /metrics and status.json.
#ifndef KEELSON_CORE_CLUSTER_STALENESS_BUCKETS_H_
#define KEELSON_CORE_CLUSTER_STALENESS_BUCKETS_H_

#include <array>
#include <cstdint>

namespace keelson {

// Largest staleness of each bucket; a last one has the steps beyond.
inline constexpr std::array<int64_t, 8> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 64};
using StalenessCounts = std::array<int64_t, kStalenessBounds.size() + 1>;

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_STALENESS_BUCKETS_H_
