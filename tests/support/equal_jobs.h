// Jobs that do the same arithmetic in different ways (model_difference.h compares what they come
// to).
#ifndef KEELSON_TESTS_SUPPORT_EQUAL_JOBS_H_
#define KEELSON_TESTS_SUPPORT_EQUAL_JOBS_H_

#include <cstdint>

#include "keelson/v1/train_config.pb.h"
#include "tests/support/local_cluster.h"

namespace keelson {

// A small job without clipping: the workers of a round would clip their own gradients, and one
// worker the mean. The records should be a multiple of every batch of the compared jobs, so that no
// step is smaller than another. Not final yet.
v1::TrainConfig EvenConfig(int64_t batch_size, int64_t steps, int64_t records = 96);

// The same, final, with a synchronous mode.
v1::TrainConfig SynchronousConfig(int64_t batch_size, int64_t aggregate, int64_t total,
                                  int64_t steps, int64_t records = 96);

// Starts the cluster, whose work begins when all `trainers` have joined: who comes when the job is
// over would wait in vain.
void StartTogether(int trainers, LocalCluster* cluster);

// Runs a job of which all tasks that train take part from the first step.
void RunToTheEnd(const LocalCluster::Options& options);

}  // namespace keelson

#endif  // KEELSON_TESTS_SUPPORT_EQUAL_JOBS_H_
