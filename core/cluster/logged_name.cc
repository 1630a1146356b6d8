#include "core/cluster/logged_name.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace keelson {
namespace {

constexpr size_t kMostBytes = 100;

// The bytes of the character at the front; 0: there is none that is printable UTF-8.
size_t PrintableBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (bytes == 0 || byte(0) > 0xf4 || text.size() < bytes) return 0;
  uint32_t character = byte(0) & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    character = character << 6 | (byte(i) & 0x3f);
  }
  // Control characters, halves of UTF-16's pairs, and what fewer bytes would do for.
  constexpr uint32_t kFirst[] = {0, 0, 0xa0, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character < 0xe000;
  return character >= kFirst[bytes] && character <= 0x10ffff && !surrogate ? bytes : 0;
}

bool IsPrintable(absl::string_view text) {
  while (!text.empty()) {
    const size_t bytes = PrintableBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool IsReserved(absl::string_view name) {
  return name == "loss" || name == "learning_rate" || absl::StartsWith(name, "speed/") ||
         absl::StartsWith(name, "exchange/");
}

}  // namespace

absl::Status CheckLoggedName(absl::string_view name) {
  if (name.empty() || name.size() > kMostBytes || !IsPrintable(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of a logged value: expected 1 to ", kMostBytes,
                     " bytes of printable UTF-8, found \"", absl::CHexEscape(name.substr(0, 20)),
                     "\", ", name.size(), " bytes"));
  }
  if (IsReserved(name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the name of a logged value: expected one that the job does not report itself, found ",
        name));
  }
  return absl::OkStatus();
}

}  // namespace keelson
