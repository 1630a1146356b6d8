#include "core/checkpoint/bundle_contents.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/ordered_code.h"
#include "keelson/v1/checkpoint.pb.h"

namespace keelson {
namespace {

constexpr int kReaderVersion = 1;
constexpr int kMaxDataShards = 1 << 20;
constexpr int64_t kMaxOffset = int64_t{1} << 61;

absl::Status BadIndex(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("bad index: ", what));
}

absl::Status BadTensor(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", absl::CHexEscape(name), "': ", what));
}

// Slices' keys begin with a zero byte, names do not.
bool IsSliceKey(absl::string_view key) { return !key.empty() && key.front() == '\0'; }

absl::StatusOr<size_t> ParseHeader(const IndexTable& index) {
  const auto it = index.find(kHeaderKey);
  v1::BundleHeader header;
  if (it == index.end() || !header.ParseFromString(it->second)) return BadIndex("no header");
  if (header.endianness() != 0) {
    return absl::UnimplementedError("the bundle is big-endian; only little-endian is supported");
  }
  if (header.version().min_consumer() > kReaderVersion) {
    return absl::UnimplementedError(absl::StrCat("the bundle needs a reader of version ",
                                                 header.version().min_consumer(), ", this one is ",
                                                 kReaderVersion));
  }
  if (header.num_shards() < 1 || header.num_shards() > kMaxDataShards) {
    return BadIndex(absl::StrCat(header.num_shards(), " data files"));
  }
  return header.num_shards();
}

class Parser {
 public:
  Parser(const IndexTable& index, size_t num_shards) : index_(index) {
    contents_.data_sizes.resize(num_shards);
  }

  absl::StatusOr<BundleContents> Run() && {
    for (const auto& [key, value] : index_) {
      if (key == kHeaderKey || IsSliceKey(key)) continue;
      ASSIGN_OR_RETURN(StoredTensor tensor, ParseTensor(key, value));
      contents_.tensors.emplace(key, std::move(tensor));
    }
    RETURN_IF_ERROR(CheckDisjoint());
    return std::move(contents_);
  }

 private:
  absl::StatusOr<StoredTensor> ParseTensor(const std::string& name, const std::string& value) {
    v1::BundleEntry entry;
    if (!entry.ParseFromString(value)) return BadTensor(name, "its index entry is not one");
    StoredTensor tensor;
    tensor.name = name;
    tensor.dtype = static_cast<BundleDtype>(entry.dtype());
    absl::StatusOr<Shape> shape = FromProto(entry.shape());
    if (!shape.ok()) return BadTensor(name, shape.status().message());
    tensor.shape = *std::move(shape);
    RETURN_IF_ERROR(entry.slices().empty() ? AddWhole(entry, &tensor) : AddSlices(entry, &tensor));
    return tensor;
  }

  absl::Status AddWhole(const v1::BundleEntry& entry, StoredTensor* tensor) {
    TensorSliceSpec everything;
    everything.extents.resize(tensor->shape.rank());
    ASSIGN_OR_RETURN(everything, ResolveSlice(everything, tensor->shape));
    return AddStored(entry, std::move(everything), tensor);
  }

  absl::Status AddSlices(const v1::BundleEntry& entry, StoredTensor* tensor) {
    std::vector<TensorSliceSpec> positions;
    for (const v1::TensorSlice& proto : entry.slices()) {
      const TensorSliceSpec slice = FromProto(proto);
      absl::StatusOr<TensorSliceSpec> position = ResolveSlice(slice, tensor->shape);
      if (!position.ok()) return BadTensor(tensor->name, position.status().message());
      ASSIGN_OR_RETURN(const v1::BundleEntry stored, FindSlice(*tensor, slice));
      if (ToProto(SliceShape(*position)).SerializeAsString() !=
          stored.shape().SerializeAsString()) {
        return BadTensor(tensor->name,
                         absl::StrCat("slice ", ToString(slice), " is stored with another shape"));
      }
      RETURN_IF_ERROR(AddStored(stored, *position, tensor));
      positions.push_back(*std::move(position));
    }
    const absl::Status cover = CheckExactCover(tensor->shape, &positions);
    return cover.ok() ? cover : BadTensor(tensor->name, cover.message());
  }

  // Otherwise a small file could be said to hold any number of large tensors.
  absl::Status CheckDisjoint() const {
    std::vector<std::pair<const StoredSlice*, const StoredTensor*>> places;
    for (const auto& [name, tensor] : contents_.tensors) {
      for (const StoredSlice& slice : tensor.slices) {
        if (slice.size > 0) places.emplace_back(&slice, &tensor);
      }
    }
    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first->data_shard, a.first->offset) <
             std::pair(b.first->data_shard, b.first->offset);
    });
    for (size_t i = 1; i < places.size(); ++i) {
      const StoredSlice& before = *places[i - 1].first;
      const StoredSlice& slice = *places[i].first;
      if (before.data_shard != slice.data_shard || before.offset + before.size <= slice.offset) {
        continue;
      }
      return BadTensor(
          places[i].second->name,
          absl::StrCat("bytes from ", slice.offset, " of data file ", slice.data_shard,
                       " are also those of '", absl::CHexEscape(places[i - 1].second->name), "'"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<v1::BundleEntry> FindSlice(const StoredTensor& tensor,
                                            const TensorSliceSpec& slice) {
    const auto it = index_.find(EncodeSliceKey(tensor.name, slice));
    v1::BundleEntry stored;
    if (it == index_.end() || !stored.ParseFromString(it->second)) {
      return BadTensor(tensor.name, absl::StrCat("slice ", ToString(slice), " has no data"));
    }
    if (static_cast<BundleDtype>(stored.dtype()) != tensor.dtype) {
      return BadTensor(tensor.name,
                       absl::StrCat("slice ", ToString(slice), " is stored with another type"));
    }
    return stored;
  }

  absl::Status AddStored(const v1::BundleEntry& entry, TensorSliceSpec position,
                         StoredTensor* tensor) {
    const int num_shards = static_cast<int>(contents_.data_sizes.size());
    if (entry.shard_id() < 0 || entry.shard_id() >= num_shards) {
      return BadTensor(tensor->name,
                       absl::StrCat("is in data file ", entry.shard_id(), " of ", num_shards));
    }
    const int64_t element_size = DtypeSize(tensor->dtype);
    const int64_t expected = SliceShape(position).num_elements() * element_size;
    const bool fits = element_size == 0 || entry.size() == expected;
    if (!fits || entry.size() < 0 || entry.size() > kMaxOffset || entry.offset() < 0 ||
        entry.offset() > kMaxOffset) {
      return BadTensor(tensor->name,
                       absl::StrCat("is stored in ", entry.size(), " bytes from ", entry.offset(),
                                    ", expected ", expected, " bytes"));
    }
    StoredSlice slice;
    slice.position = std::move(position);
    slice.data_shard = entry.shard_id();
    slice.offset = static_cast<uint64_t>(entry.offset());
    slice.size = static_cast<uint64_t>(entry.size());
    slice.masked_crc = entry.crc32c();
    uint64_t& data_size = contents_.data_sizes[entry.shard_id()];
    data_size = std::max(data_size, slice.offset + slice.size);
    tensor->slices.push_back(std::move(slice));
    return absl::OkStatus();
  }

  const IndexTable& index_;
  BundleContents contents_;
};

}  // namespace

absl::StatusOr<BundleContents> ParseBundleContents(const IndexTable& index) {
  ASSIGN_OR_RETURN(const size_t num_shards, ParseHeader(index));
  return Parser(index, num_shards).Run();
}

}  // namespace keelson
