// How long the threads of OpenMP, by which the CPU device computes, spin while they wait for one
// another.
#ifndef KEELSON_CORE_BASE_THREAD_WAITS_H_
#define KEELSON_CORE_BASE_THREAD_WAITS_H_

namespace keelson {

// Starts this program again, as the same process, with GOMP_SPINCOUNT in its environment, unless
// that or OMP_WAIT_POLICY is there already. libgomp reads them before main, and without them its
// threads spin for milliseconds: where something else wants the cores, such as a server on the same
// machine, they keep them from the very threads that they wait for. Call it first in main, with
// main's argv. Returns where there is nothing to do, or it cannot be done.
void BoundSpinning(char** argv);

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_THREAD_WAITS_H_
