// What processes do to files, as strace writes it down.
#ifndef KEELSON_TESTS_STRANGER_FILE_TRACE_H_
#define KEELSON_TESTS_STRANGER_FILE_TRACE_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace keelson {

// Whether strace is here and may trace.
bool CanTraceFiles();

// Text of a shell that becomes the program of its arguments, in the same process; its calls that
// name files are written to `path`, in which the shell expands variables.
std::string TraceCommand(const std::string& path);

// The trace at `path` of a process that has ended, for strace writes its end a little later. Fails
// the test when that takes 60 s.
std::string ReadTrace(const std::string& path, pid_t pid);

// The paths that the calls in a trace have created, written to, removed or changed, or may have: a
// call whose result the trace does not have counts. Devices do not.
std::vector<std::string> ChangedPaths(absl::string_view trace);

}  // namespace keelson

#endif  // KEELSON_TESTS_STRANGER_FILE_TRACE_H_
