// Who a process is where a launcher numbers the processes that train: PyTorchJob and torchrun
// (RANK), an elastic PyTorchJob and Kubeflow Trainer v2 (PET_…), mpirun. No such launcher lists the
// tasks: it says how many there are, and most say where the first one is.
//
// | variables                                  | rank 0   | rank r         | leader's address |
// |--------------------------------------------|----------|----------------|------------------|
// | RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT | chief-0  | worker-(r - 1) | MASTER_…         |
// | PET_NODE_RANK, PET_NNODES, PET_MASTER_…    | worker-0 | worker-r       | PET_MASTER_…     |
// | PET_RDZV_ENDPOINT, PET_NNODES              | worker-0 | worker-r       | the endpoint     |
// | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE | chief-0  | worker-(r - 1) | MASTER_… if set  |
// | PMI_RANK, PMI_SIZE                         | chief-0  | worker-(r - 1) | MASTER_… if set  |
//
// Rank 0 leads, and where the others are follows from its address (peer_addresses.h) on one machine
// and by the names of the row's operator; else they register with it. Beside PET_RDZV_ENDPOINT the
// rank is the last number of the host's name. Of several rows the first that is set counts: of
// which the first variable is, in the last two for several processes, or for one with a leader's
// address from elsewhere.
//
// Source: training-operator 1.9 pkg/controller.v1/pytorch, trainer 2.3 plugins/torch, torchrun's
// torch/distributed/elastic.
#ifndef KEELSON_CORE_CLUSTER_RANK_ENVIRONMENT_H_
#define KEELSON_CORE_CLUSTER_RANK_ENVIRONMENT_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/cluster/cluster_spec.h"

namespace keelson {

// What such a launcher has told this process.
struct RankEnvironment {
  // The variables of all launchers that are set, by name.
  std::map<std::string, std::string, std::less<>> variables;
  // The host's name, in a pod that of the pod: "mnist-worker-2".
  std::string host_name;
  // Whether torchrun may start several processes of this program on a host, as scripts have it,
  // each of which computes on a device of its own.
  bool several_per_host = false;

  // The variables of this process. The host's name is HOSTNAME, as container runtimes set it, else
  // that of the machine.
  static RankEnvironment OfProcess();

  // The variables that number processes or name a leader, in the order of the table: what a cluster
  // from elsewhere ignores.
  std::vector<std::string> Names() const;
};

// The cluster of a process that trains, chief or worker; nothing: no launcher has numbered this
// process. Its peers are listed where their addresses follow from the leader's
// (ClusterSpec::derived_addresses), up to the largest number that PET_NNODES allows; a process
// alone is listed too. Else, and where there are several on a host, they register with the leader
// (ClusterSpec::peers_register).
// `chief_address` is the leader's address from elsewhere (--chief_hosts), "host:port", instead of
// the environment's.
//
// Operators up to 1.3 say localhost in the master's pod, which then goes by the pod's name. Under
// torchrun whose agent keeps its store at MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True) the
// leader takes the port after it. PET_NNODES=min:max gives ClusterSpec::min_workers and, except
// under torchrun, which starts all anew, the largest number of processes.
//
// INVALID_ARGUMENT, with the variable and the value found: a variable that the row needs is
// missing, or malformed; a rank outside the world, except RANK; several processes on a host
// (LOCAL_RANK, LOCAL_WORLD_SIZE, unless several_per_host; a PyTorchJob's nprocPerNode without
// torchrun), for one worker uses all devices of its pod; a port above 65535 that would follow from
// the leader's; RANK under torchrun that is not the pod's number, where addresses follow from
// names; an endpoint that is not the pod with number 0; mpirun without a leader's address;
// PET_NNODES of several pods of which nothing says which one leads.
//
// UNAVAILABLE: RANK of a worker beyond the world. The operator makes such a pod for a moment when
// the number of workers falls; as a bad configuration it would fail the job.
absl::StatusOr<std::optional<ClusterSpec>> ParseRankEnvironment(
    const RankEnvironment& environment, const std::optional<std::string>& chief_address);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_RANK_ENVIRONMENT_H_
