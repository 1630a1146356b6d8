#include "core/data/data_files.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/name_pattern.h"
#include "core/base/status_macros.h"
#include "core/data/byte_stream.h"
#include "core/data/record_index.h"

namespace keelson {
namespace {

// Whether a file's name is one of data: not that of an index, or of one that is being written.
bool IsData(absl::string_view name) { return !absl::StartsWith(name, ".") && !IsRecordIndex(name); }

// Whether a packed file is there plain, too, or a zstd file as gzip.
bool IsThereWithLessPacking(absl::string_view name, const std::set<std::string>& all) {
  if (!HasPackedSuffix(name)) return false;
  const std::string plain(WithoutPackedSuffix(name));
  const std::string gzip = absl::StrCat(plain, ".gz");
  return all.contains(plain) || (name != gzip && all.contains(gzip));
}

absl::StatusOr<std::vector<std::string>> ListData(const std::string& directory,
                                                  FileSystem* file_system) {
  absl::StatusOr<std::vector<std::string>> names = file_system->List(directory);
  if (!names.ok()) {
    return absl::Status(names.status().code(),
                        absl::StrCat("data directory: ", names.status().message()));
  }
  const std::set<std::string> all(names->begin(), names->end());
  names->erase(std::remove_if(names->begin(), names->end(),
                              [&](const std::string& name) {
                                return !IsData(name) || IsThereWithLessPacking(name, all);
                              }),
               names->end());
  return names;
}

bool Matches(absl::string_view pattern, absl::string_view name) {
  return MatchesPattern(pattern, name) || MatchesPattern(pattern, WithoutPackedSuffix(name));
}

std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 5;
  if (names.empty()) return "none";
  const size_t count = std::min(kMost, names.size());
  return absl::StrCat(
      absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(count), ", "),
      names.size() > kMost ? ", ..." : "");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindDataFiles(const std::string& directory,
                                                       absl::Span<const std::string> patterns,
                                                       absl::string_view field,
                                                       FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListData(directory, file_system));
  if (patterns.empty()) {
    if (names.size() == 1) return std::vector<std::string>{JoinPath(directory, names.front())};
    return absl::InvalidArgumentError(absl::StrCat("data directory ", directory,
                                                   ": expected a single file, as ", field,
                                                   " names none, found ", Some(names)));
  }
  std::vector<std::string> paths;
  std::set<std::string> taken;
  for (size_t i = 0; i < patterns.size(); ++i) {
    bool any = false;
    for (const std::string& name : names) {
      if (!Matches(patterns[i], name)) continue;
      any = true;
      if (taken.insert(name).second) paths.push_back(JoinPath(directory, name));
    }
    if (any) continue;
    return absl::NotFoundError(absl::StrCat(field, "[", i, "]: expected a file \"", patterns[i],
                                            "\" in ", directory, ", found ", Some(names)));
  }
  return paths;
}

}  // namespace keelson
