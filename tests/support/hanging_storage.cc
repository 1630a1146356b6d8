// Preloaded into a program: storage that hangs. Calls about files whose paths have
// KEELSON_HANGING_FILES in them, that open them or make them durable, do not return while there is
// a file of the name KEELSON_HANGING_WHILE. They obey no signal, as those of a network file system
// whose server is away.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void HangAt(const char* path) {
  const char* const files = std::getenv("KEELSON_HANGING_FILES");
  const char* const marker = std::getenv("KEELSON_HANGING_WHILE");
  if (files == nullptr || marker == nullptr) return;
  struct stat info;
  const bool meant = std::string_view(path).find(files) != std::string_view::npos;
  while (meant && stat(marker, &info) == 0) {
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int OpenLate(int (*open)(const char*, int, ...), const char* path, int flags, va_list arguments) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
  HangAt(path);
  return open(path, flags, mode);
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static auto* const real = Real<int(int)>("fsync");
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path) - 1);
  if (size > 0) {
    path[size] = 0;
    HangAt(path);
  }
  return real(fd);
}

int open(const char* path, int flags, ...) {
  static auto* const real = Real<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const int fd = OpenLate(real, path, flags, arguments);
  va_end(arguments);
  return fd;
}

int open64(const char* path, int flags, ...) {
  static auto* const real = Real<int(const char*, int, ...)>("open64");
  va_list arguments;
  va_start(arguments, flags);
  const int fd = OpenLate(real, path, flags, arguments);
  va_end(arguments);
  return fd;
}

}  // extern "C"
