// Preloaded into a program: storage that hangs or errs, for files whose paths have
// KEELSON_FAULTY_FILES in them. Calls that open such a file, make it durable or rename it do not
// return while there is a file of the name KEELSON_HANGING_WHILE; they obey no signal, as those of
// a network file system whose server is away. While there is a file of the name
// KEELSON_ERRING_WHILE, every other of these calls fails with EIO and does nothing, so that
// operations of several calls are interrupted between any two of them. Each variable may be absent.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

std::atomic<unsigned> erring_calls = 0;

bool FileOfVariable(const char* variable) {
  const char* const path = std::getenv(variable);
  struct stat info;
  return path != nullptr && stat(path, &info) == 0;
}

// False: the call shall fail, and errno says so.
bool Permit(std::string_view path) {
  const char* const files = std::getenv("KEELSON_FAULTY_FILES");
  if (files == nullptr || path.find(files) == std::string_view::npos) return true;
  while (FileOfVariable("KEELSON_HANGING_WHILE")) {
    const timespec pause = {0, 10'000'000};
    nanosleep(&pause, nullptr);
  }
  if (!FileOfVariable("KEELSON_ERRING_WHILE") || erring_calls.fetch_add(1) % 2 == 0) return true;
  errno = EIO;
  return false;
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : std::string();
}

std::string PathAt(int directory, const char* name) {
  if (directory == AT_FDCWD || name[0] == '/') return name;
  return PathOf(directory) + "/" + name;
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static auto* const real = Real<int(int)>("fsync");
  return Permit(PathOf(fd)) ? real(fd) : -1;
}

int open(const char* path, int flags, ...) {
  static auto* const real = Real<int(const char*, int, ...)>("open");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Permit(path) ? real(path, flags, mode) : -1;
}

int open64(const char* path, int flags, ...) {
  static auto* const real = Real<int(const char*, int, ...)>("open64");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Permit(path) ? real(path, flags, mode) : -1;
}

int openat(int directory, const char* path, int flags, ...) {
  static auto* const real = Real<int(int, const char*, int, ...)>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return Permit(PathAt(directory, path)) ? real(directory, path, flags, mode) : -1;
}

int rename(const char* from, const char* to) {
  static auto* const real = Real<int(const char*, const char*)>("rename");
  return Permit(to) ? real(from, to) : -1;
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  static auto* const real = Real<int(int, const char*, int, const char*)>("renameat");
  return Permit(PathAt(to_directory, to)) ? real(from_directory, from, to_directory, to) : -1;
}

}  // extern "C"
