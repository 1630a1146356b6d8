// The environment variable TF_CONFIG, in every shape that TFJob operators and TensorFlow's users
// write it: cluster jobs as dense lists or sparse maps, null or absent; `cluster` or
// `sparseCluster`; the evaluator listed or not; `master` for `chief`; the index a number or a
// numeric string. Unknown keys and jobs, and `environment`, are ignored.
// Source: tensorflow_estimator run_config.py; kubeflow/trainer 1.9 genTFConfigJSONStr.
#ifndef KEELSON_CORE_CLUSTER_TF_CONFIG_H_
#define KEELSON_CORE_CLUSTER_TF_CONFIG_H_

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/cluster/cluster_spec.h"

namespace keelson {

// Empty text, or a TF_CONFIG without a cluster, gives a spec with `distributed` false.
// `expected_role` is the role of the running program, which must be able to run the task
// (ClusterSpec::RunBy).
//
// A sparse cluster may lack the chief, the servers or the task itself: the operator gives the chief
// and the evaluator of a dynamic job no addresses, and a ps only its own, at list position 0.
// ClusterSpec::Validate checks whether enough is known; call it after flags have been added.
//
// INVALID_ARGUMENT, with the key and the value found ("TF_CONFIG: task.index: expected 0..1,
// found 5"): malformed JSON (with the byte); a value of the wrong type; a malformed address;
// `master` beside `chief` or with an evaluator task; no chief and no worker; more than one chief;
// task.type missing, unknown or not for this program; task.index missing, negative, not an
// integer or outside the job (of evaluators: where they are listed); a task that needs a cluster
// without one; `cluster` beside `sparseCluster`.
// UNAVAILABLE: a worker's index beyond the list. The operator makes such a pod for a moment when
// the number of workers falls; as a bad configuration it would fail the job.
absl::StatusOr<ClusterSpec> ParseTfConfig(absl::string_view json,
                                          std::optional<Role> expected_role);

}  // namespace keelson

#endif  // KEELSON_CORE_CLUSTER_TF_CONFIG_H_
