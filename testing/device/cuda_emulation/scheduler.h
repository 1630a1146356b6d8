// Chooses the order in which the emulated GPUs do their work.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_SCHEDULER_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace keelson::cuda_emulation {

// A unit of a GPU's work: a kernel, a copy; or a point in its work.
struct Work {
  int gpu = 0;
  // The GPUs whose memory it uses, as bits.
  unsigned memories = 0;
  // Null for a mere point. Returns a cudaError_t.
  std::function<int()> run;
  // The work that must be done before it; cleared when it is done.
  std::vector<std::shared_ptr<Work>> after;

  uint64_t number = 0;  // in the order of Scheduler::Add
  bool done = false;
  double done_microseconds = 0;  // on the emulation's clock, when it is done
};
using WorkPointer = std::shared_ptr<Work>;

// Queues work and executes it in an order that its dependencies allow: with seed 0 that of the
// calls, else a random one that favours one lane (a stream, or a branch of a graph) for a while,
// then another. Not thread-safe.
class Scheduler {
 public:
  // `execute` does the work and sets `done`. Called for one at a time.
  Scheduler(uint64_t seed, std::function<void(Work*)> execute);

  // The work of one lane is executed in the order of Add, which the caller also expresses in
  // `after`.
  void Add(uint64_t lane, WorkPointer work);
  // Executes `target` and the work before it; perhaps more.
  void RunUntil(const WorkPointer& target);
  // Executes a little of the work before `target`; for callers that poll.
  void Nudge(const WorkPointer& target);
  void RunAll();

  // A random number from 0 to bound - 1; 0 with seed 0.
  uint64_t Chance(uint64_t bound);

 private:
  struct Lane {
    std::deque<WorkPointer> work;
    uint64_t priority = 0;
  };

  // Executes one that is ready, among `wanted` unless that is null; false when there is none.
  bool RunOne(const std::vector<const Work*>* wanted);
  bool Precedes(const Lane& a, const Lane& b) const;
  Lane* Pick(const std::vector<const Work*>* wanted);

  const uint64_t seed_;
  const std::function<void(Work*)> execute_;
  std::mt19937_64 random_;
  std::map<uint64_t, Lane> lanes_;
  size_t pending_ = 0;
  uint64_t added_ = 0;
};

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_SCHEDULER_H_
