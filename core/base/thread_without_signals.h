// A thread that receives no signals.
#ifndef KEELSON_CORE_BASE_THREAD_WITHOUT_SIGNALS_H_
#define KEELSON_CORE_BASE_THREAD_WITHOUT_SIGNALS_H_

#include <signal.h>

#include <thread>
#include <utility>

namespace keelson {

// Starts a thread that blocks all signals, as do threads that it starts: signals belong to the
// SignalWatcher, which may be started later. Throws std::system_error where the system has no
// thread left, as std::thread does.
template <typename Body>
std::thread ThreadWithoutSignals(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Restores the mask, also when std::thread throws.
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{before};
  return std::thread(std::move(body));
}

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_THREAD_WITHOUT_SIGNALS_H_
