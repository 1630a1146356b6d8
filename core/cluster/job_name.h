// The name of a job, which no task is told.
#ifndef KEELSON_CORE_CLUSTER_JOB_NAME_H_
#define KEELSON_CORE_CLUSTER_JOB_NAME_H_

#include <string>

#include "core/cluster/cluster_spec.h"

namespace keelson {

// The job's name where an address of the cluster has the form of the operator,
// "JOB-ROLE-INDEX.NAMESPACE.svc:2222" with that task's role and index, the own one first: "JOB".
// Empty: none has.
std::string JobNameOf(const ClusterSpec& cluster);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_JOB_NAME_H_
