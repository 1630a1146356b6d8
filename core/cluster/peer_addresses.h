// Where the processes of a job are whose launcher says only where the first one is.
//
// | host of rank 0, which leads           | host of rank r               | its port         |
// |---------------------------------------|------------------------------|------------------|
// | localhost, 127.x.y.z, [::1]           | the same                     | the leader's + r |
// | NAME-master-0[.DOMAIN], a PyTorchJob  | NAME-worker-(r - 1)[.DOMAIN] | the leader's     |
// | NAME-worker-0[.DOMAIN], without Master| NAME-worker-r[.DOMAIN]       | the leader's     |
// | NAME-node-0-0[.DOMAIN], a TrainJob    | NAME-node-0-r[.DOMAIN]       | the leader's     |
//
// The address of any other host says nothing about those of its peers.
#ifndef KEELSON_CORE_CLUSTER_PEER_ADDRESSES_H_
#define KEELSON_CORE_CLUSTER_PEER_ADDRESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/cluster/address.h"

namespace keelson {

// How the first label of the leader's host ends where an operator has named it.
inline constexpr absl::string_view kPyTorchMaster = "-master-0";
inline constexpr absl::string_view kPyTorchWorker = "-worker-0";
inline constexpr absl::string_view kTrainJobNode = "-node-0-0";

// "mnist-worker-0" of "mnist-worker-0.mnist.svc".
absl::string_view FirstLabel(absl::string_view host);

// The addresses of ranks 0..processes-1, "host:port"; of a single process the leader's. Empty: they
// do not follow from the leader's. Of the names of the table those count that are in `names`.
//
// `source` names where the leader's address stands, for the message: "MASTER_PORT".
// INVALID_ARGUMENT: a port would be above 65535.
absl::StatusOr<std::vector<std::string>> AddressesByRank(absl::string_view source,
                                                         const Address& leader, int processes,
                                                         absl::Span<const absl::string_view> names);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_PEER_ADDRESSES_H_
