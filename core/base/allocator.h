// Tunes the process's memory allocator for large buffers.
#ifndef KEELSON_CORE_BASE_ALLOCATOR_H_
#define KEELSON_CORE_BASE_ALLOCATOR_H_

namespace keelson {

// Makes glibc keep freed memory and share it between threads, instead of returning pages and
// faulting them in again with every message: received bytes and block versions are allocated and
// freed by the megabyte, and page faults cost more than the copy itself. Call first in main, before
// threads start. No effect with another allocator than glibc's.
void TuneAllocator();

}  // namespace keelson

#endif  // KEELSON_CORE_BASE_ALLOCATOR_H_
