// Mutex, reader-writer lock and condition variable over the standard library's, with thread
// annotations. Not absl::Mutex: the distribution's abseil is not built for the thread sanitizer,
// which would then see no synchronisation at all (docs/adr/0002-own-mutex.md). Threads that a
// Scheduler runs lock and wait through it.
#ifndef KEELSON_CORE_BASE_MUTEX_H_
#define KEELSON_CORE_BASE_MUTEX_H_

#include <pthread.h>

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/scheduler.h"

namespace keelson {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Lock(this);
    mutex_.lock();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Unlock(this);
    mutex_.unlock();
  }

  // For the analysis of annotations, in functions that are only called by who has the lock. Checks
  // nothing when it runs.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Wakes waiters of conditions that `Mutex` guards. Wait in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex* mutex) {
    if (Scheduler* const scheduler = Scheduler::Current()) {
      return scheduler->Wait(this, mutex, absl::InfiniteDuration());
    }
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // Returns after `timeout` at the latest (real time); may wake early.
  void WaitFor(Mutex* mutex, absl::Duration timeout) {
    if (Scheduler* const scheduler = Scheduler::Current()) {
      return scheduler->Wait(this, mutex, timeout);
    }
    std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
    condition_.wait_for(lock, absl::ToChronoNanoseconds(timeout));
    lock.release();
  }
  void NotifyAll() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->NotifyAll(this);
    condition_.notify_all();
  }

 private:
  std::condition_variable condition_;
};

// Many readers or one writer. A waiting writer holds back new readers, so it is not starved.
// Readers must not lock it again while they hold it.
class ABSL_LOCKABLE SharedMutex {
 public:
  SharedMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~SharedMutex() { pthread_rwlock_destroy(&lock_); }
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Lock(this);
    pthread_rwlock_wrlock(&lock_);
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Unlock(this);
    pthread_rwlock_unlock(&lock_);
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->LockShared(this);
    pthread_rwlock_rdlock(&lock_);
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    if (Scheduler* const scheduler = Scheduler::Current()) return scheduler->Unlock(this);
    pthread_rwlock_unlock(&lock_);
  }

 private:
  pthread_rwlock_t lock_;
};

class ABSL_SCOPED_LOCKABLE WriterMutexLock {
 public:
  explicit WriterMutexLock(SharedMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~WriterMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  WriterMutexLock(const WriterMutexLock&) = delete;
  WriterMutexLock& operator=(const WriterMutexLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(SharedMutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_MUTEX_H_
