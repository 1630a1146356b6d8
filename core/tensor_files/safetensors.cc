#include "core/tensor_files/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <tuple>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/element_conversion.h"
#include "core/tensor_files/element_count.h"
#include "core/tensor_files/pending_file.h"
#include "core/tensor_files/stand_in_type.h"
#include "nlohmann/json.hpp"

namespace keelson {
namespace {

static_assert(std::endian::native == std::endian::little, "values are stored as they lie");

using Json = nlohmann::json;
using Entries = std::map<std::string, SafetensorsFile::Entry, std::less<>>;

constexpr size_t kLengthBytes = 8;
// The limit of the format's own reader.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxDepth = 8;
constexpr char kMetadataKey[] = "__metadata__";

struct SafetensorsType {
  absl::string_view name;
  BundleDtype dtype;
};
constexpr std::array<SafetensorsType, 16> kSafetensorsTypes = {
    {{"F32", BundleDtype::kFloat32},
     {"F64", BundleDtype::kFloat64},
     {"F16", BundleDtype::kFloat16},
     {"BF16", BundleDtype::kBfloat16},
     {"I8", BundleDtype::kInt8},
     {"I16", BundleDtype::kInt16},
     {"I32", BundleDtype::kInt32},
     {"I64", BundleDtype::kInt64},
     {"U8", BundleDtype::kUint8},
     {"U16", BundleDtype::kUint16},
     {"U32", BundleDtype::kUint32},
     {"U64", BundleDtype::kUint64},
     {"BOOL", BundleDtype::kBool},
     {"C64", BundleDtype::kComplex64},
     {"F8_E5M2", BundleDtype::kFloat8E5m2},
     {"F8_E4M3", BundleDtype::kFloat8E4m3fn}}};

std::optional<BundleDtype> DtypeOf(absl::string_view name) {
  for (const SafetensorsType& type : kSafetensorsTypes) {
    if (type.name == name) return type.dtype;
  }
  return std::nullopt;
}

std::optional<absl::string_view> NameOf(BundleDtype dtype) {
  for (const SafetensorsType& type : kSafetensorsTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return std::nullopt;
}

absl::Status Damaged(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": not a safetensors file: ", what));
}

absl::Status BadTensor(absl::string_view path, absl::string_view name, absl::string_view what) {
  return Damaged(path, absl::StrCat("tensor '", absl::CHexEscape(name), "': ", what));
}

// The header's object; its keys are found once. Values deeper than any of the format are left out,
// so that the memory for them is bounded.
absl::StatusOr<Json> ParseHeader(const std::string& path, const std::string& text) {
  std::set<std::string> keys;
  std::string twice;
  const auto note_keys = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      std::string key = parsed.get<std::string>();
      if (!keys.insert(key).second) twice = std::move(key);
    }
    return depth <= kMaxDepth;
  };
  try {
    Json header = Json::parse(text, note_keys);
    if (!header.is_object()) return Damaged(path, "the header is not a JSON object");
    if (!twice.empty()) return BadTensor(path, twice, "is listed twice");
    return header;
  } catch (const Json::parse_error& error) {
    return Damaged(path, absl::StrCat("the header is not JSON, at its byte ", error.byte));
  } catch (const Json::out_of_range&) {
    return Damaged(path, "the header has a number beyond those of 64 bits");
  }
}

// An array of integers >= 0.
std::optional<std::vector<int64_t>> Integers(const Json& json) {
  if (!json.is_array()) return std::nullopt;
  std::vector<int64_t> integers;
  for (const Json& element : json) {
    if (!element.is_number_unsigned()) return std::nullopt;
    const uint64_t value = element.get<uint64_t>();
    if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    integers.push_back(static_cast<int64_t>(value));
  }
  return integers;
}

// Null: there is none.
const Json& Member(const Json& object, const char* key) {
  static const Json kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

// The entry with its place relative to the end of the header.
absl::StatusOr<SafetensorsFile::Entry> ParseEntry(const std::string& path, const std::string& name,
                                                  const Json& json) {
  if (!json.is_object()) return BadTensor(path, name, "is not described by an object");
  const Json& type = Member(json, "dtype");
  if (!type.is_string()) return BadTensor(path, name, "has no dtype");
  const std::optional<BundleDtype> dtype = DtypeOf(type.get<std::string>());
  if (!dtype.has_value()) {
    return absl::UnimplementedError(absl::StrCat(path, ": tensor '", absl::CHexEscape(name),
                                                 "': elements of type ",
                                                 absl::CHexEscape(type.get<std::string>())));
  }
  std::optional<std::vector<int64_t>> dims = Integers(Member(json, "shape"));
  if (!dims.has_value()) return BadTensor(path, name, "has no shape of integers >= 0");
  const std::optional<std::vector<int64_t>> offsets = Integers(Member(json, "data_offsets"));
  if (!offsets.has_value() || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return BadTensor(path, name, "has no data_offsets [begin, end]");
  }
  const int64_t size = (*offsets)[1] - (*offsets)[0];
  const std::optional<int64_t> elements = ElementCount(*dims);
  const Shape shape(*std::move(dims));
  if (!elements.has_value()) {
    return BadTensor(path, name, absl::StrCat("too large a shape, ", shape.ToString()));
  }
  if (size != *elements * DtypeSize(*dtype)) {
    return BadTensor(path, name,
                     absl::StrCat("expected ", *elements * DtypeSize(*dtype), " bytes for ",
                                  DtypeName(*dtype), " ", shape.ToString(), ", found ", size));
  }
  return SafetensorsFile::Entry{*dtype, shape, static_cast<uint64_t>((*offsets)[0]),
                                static_cast<uint64_t>(size)};
}

// Checks that the entries cover 0 to `data_bytes` one after the other.
absl::Status CheckCover(const std::string& path, const Entries& entries, uint64_t data_bytes) {
  std::vector<std::tuple<uint64_t, uint64_t, const std::string*>> places;
  for (const auto& [name, entry] : entries) places.push_back({entry.begin, entry.size, &name});
  std::sort(places.begin(), places.end());
  uint64_t end = 0;
  for (const auto& [begin, size, name] : places) {
    if (begin != end) {
      return BadTensor(path, *name,
                       absl::StrCat("expected to begin at byte ", end, " of the data, found ",
                                    begin, begin < end ? ", an overlap" : ", a gap"));
    }
    end = begin + size;
  }
  if (end != data_bytes) {
    return Damaged(path, absl::StrCat("expected ", end, " bytes of data, found ", data_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadHeader(const RandomAccessFile& file) {
  const std::string& path = file.path();
  if (file.size() < kLengthBytes) {
    return Damaged(path, absl::StrCat("it has ", file.size(), " bytes"));
  }
  uint64_t length = 0;
  RETURN_IF_ERROR(file.Read(0, kLengthBytes, reinterpret_cast<char*>(&length)));
  if (length > kMaxHeaderBytes) {
    return Damaged(path, absl::StrCat("expected a header of at most ", kMaxHeaderBytes,
                                      " bytes, found ", length));
  }
  if (length > file.size() - kLengthBytes) {
    return Damaged(path, absl::StrCat("expected a header of ", length, " bytes, found ",
                                      file.size() - kLengthBytes, " until the end of the file"));
  }
  std::string header(length, '\0');
  RETURN_IF_ERROR(file.Read(kLengthBytes, length, header.data()));
  return header;
}

absl::StatusOr<std::string> EncodeHeader(const std::string& path,
                                         const std::vector<TensorInfo>& tensors,
                                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  int64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::optional<absl::string_view> type = NameOf(SafetensorsDtype(tensor.dtype));
    if (!type.has_value()) {
      return absl::UnimplementedError(absl::StrCat(
          path, ": tensor '", tensor.name, "': safetensors has no ", DtypeName(tensor.dtype)));
    }
    if (tensor.name == kMetadataKey) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": safetensors keeps the name ", kMetadataKey, " for itself"));
    }
    const int64_t end = offset + tensor.shape.num_elements() * DtypeSize(tensor.dtype);
    header[tensor.name] = {{"dtype", std::string(*type)},
                           {"shape", tensor.shape.dims()},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    // So that the data is aligned.
    text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
    return text;
  } catch (const Json::type_error&) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": safetensors has names in UTF-8, found a name that is not"));
  }
}

}  // namespace

BundleDtype SafetensorsDtype(BundleDtype dtype) {
  return NameOf(dtype).has_value() ? dtype : StandInType(dtype);
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, FileSystem::Real()->OpenForRead(path));
  ASSIGN_OR_RETURN(const std::string text, ReadHeader(*file));
  ASSIGN_OR_RETURN(const Json header, ParseHeader(path, text));
  Entries entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadataKey) continue;
    ASSIGN_OR_RETURN(const Entry entry, ParseEntry(path, name, json));
    entries.emplace(name, entry);
  }
  const uint64_t data_begin = kLengthBytes + text.size();
  RETURN_IF_ERROR(CheckCover(path, entries, file->size() - data_begin));
  for (auto& [name, entry] : entries) entry.begin += data_begin;
  return std::unique_ptr<SafetensorsFile>(new SafetensorsFile(std::move(file), std::move(entries)));
}

std::vector<TensorInfo> SafetensorsFile::List() const {
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : entries_) tensors.push_back({name, entry.dtype, entry.shape});
  return tensors;
}

absl::StatusOr<const SafetensorsFile::Entry*> SafetensorsFile::Find(absl::string_view name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat(file_->path(), ": no tensor '", name, "'"));
}

absl::StatusOr<std::string> SafetensorsFile::Read(absl::string_view name) {
  ASSIGN_OR_RETURN(const Entry* const entry, Find(name));
  std::string bytes(entry->size, '\0');
  RETURN_IF_ERROR(file_->Read(entry->begin, bytes.size(), bytes.data()));
  return bytes;
}

absl::Status SafetensorsFile::ReadFloats(absl::string_view name, int64_t first,
                                         absl::Span<float> out) {
  ASSIGN_OR_RETURN(const Entry* const entry, Find(name));
  const int64_t elements = entry->shape.num_elements();
  const auto count = static_cast<int64_t>(out.size());
  if (!IsNumeric(entry->dtype) || first < 0 || count > elements || first > elements - count) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_->path(), ": tensor '", name, "': expected numbers ", first, " to ", first + count,
        ", found ", DtypeName(entry->dtype), " ", entry->shape.ToString()));
  }
  const size_t element_bytes = DtypeSize(entry->dtype);
  std::string bytes(out.size() * element_bytes, '\0');
  RETURN_IF_ERROR(file_->Read(entry->begin + first * element_bytes, bytes.size(), bytes.data()));
  ConvertToFloat(entry->dtype, bytes.data(), out);
  return absl::OkStatus();
}

absl::Status WriteSafetensors(const std::string& path, std::vector<TensorInfo> tensors,
                              const std::map<std::string, std::string>& metadata,
                              TensorSource* source) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::make_tuple(-DtypeSize(a.dtype), absl::string_view(a.name)) <
           std::make_tuple(-DtypeSize(b.dtype), absl::string_view(b.name));
  });
  ASSIGN_OR_RETURN(const std::string header, EncodeHeader(path, tensors, metadata));
  PendingFile pending(path);
  ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                   FileSystem::Real()->OpenForAppend(pending.temporary_path(), /*truncate=*/true));
  const uint64_t length = header.size();
  RETURN_IF_ERROR(
      file->Append(absl::string_view(reinterpret_cast<const char*>(&length), sizeof(length))));
  RETURN_IF_ERROR(file->Append(header));
  for (const TensorInfo& tensor : tensors) {
    ASSIGN_OR_RETURN(const std::string bytes, source->Read(tensor.name));
    RETURN_IF_ERROR(file->Append(bytes));
  }
  RETURN_IF_ERROR(file->Close());
  return pending.Commit();
}

}  // namespace keelson
