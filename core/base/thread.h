// A thread: the operating system's, or one of the Scheduler that runs its creator.
#ifndef KEELSON_CORE_BASE_THREAD_H_
#define KEELSON_CORE_BASE_THREAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

namespace keelson {

// Used by one thread at a time. As with std::thread, who starts one joins it before this object is
// destroyed or assigned to.
class Thread {
 public:
  // None.
  Thread() = default;
  // Starts `body`. Throws std::system_error where the system has no thread left.
  explicit Thread(std::function<void()> body);
  Thread(Thread&& other) noexcept;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread();

  // Whether one was started that has not been joined.
  bool Joinable() const { return real_.joinable() || scheduled_.has_value(); }
  // Waits for its end.
  void Join();

 private:
  std::thread real_;
  std::optional<uint64_t> scheduled_;  // its number at the Scheduler
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_THREAD_H_
