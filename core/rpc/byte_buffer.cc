#include "core/rpc/byte_buffer.h"

#include <grpcpp/support/slice.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace keelson {
namespace {

constexpr size_t kSmallestInPlace = 16 * 1024;

using Slices = std::vector<grpc::Slice>;

// Received slices, deleted with the last fragment in them. They are freed by the buffer, which is
// deleted after them: where memory is scarce gRPC takes some back on the thread that frees it, and
// grpc_slice_unref, other than grpc_byte_buffer_destroy, does not prepare a thread that is not
// gRPC's for that (1.51: a null pointer in ExecCtx::Run).
struct Received {
  grpc::ByteBuffer buffer;
  Slices slices;
  std::atomic<size_t> fragments;

  static void Release(void* user) {
    auto* received = static_cast<Received*>(user);
    if (received->fragments.fetch_sub(1, std::memory_order_acq_rel) == 1) delete received;
  }
};

// A pin held by gRPC, which may release it on another thread. gRPC's locks order that after the
// hand-over; the flag makes this visible to the thread sanitizer, which does not see them.
struct Sent {
  explicit Sent(Pin held) : pin(std::move(held)) {
    handed_over.store(true, std::memory_order_release);
  }

  static void Release(void* user) {
    auto* sent = static_cast<Sent*>(user);
    if (sent->handed_over.load(std::memory_order_acquire)) delete sent;
  }

  std::atomic<bool> handed_over{false};
  Pin pin;
};

grpc::Slice InPlace(Fragment fragment) {
  // gRPC does not write to it.
  return grpc::Slice(const_cast<uint8_t*>(fragment.data), fragment.size, Sent::Release,
                     new Sent(std::move(fragment.pin)));
}

// fragments[begin, end) in one slice.
grpc::Slice Joined(const std::vector<Fragment>& fragments, size_t begin, size_t end, size_t bytes) {
  grpc::Slice slice(bytes);
  auto* to = const_cast<uint8_t*>(slice.begin());
  for (size_t i = begin; i < end; ++i) {
    std::memcpy(to, fragments[i].data, fragments[i].size);
    to += fragments[i].size;
  }
  return slice;
}

}  // namespace

ByteRope TakeByteBuffer(grpc::ByteBuffer* buffer) {
  ByteRope rope;
  auto received = std::make_unique<Received>();
  // Dump fails on a buffer that holds nothing.
  if (!buffer->Valid() || !buffer->Dump(&received->slices).ok()) return rope;
  received->buffer.Swap(buffer);
  const size_t count = received->slices.size();
  if (count == 0) return rope;
  received->fragments = count;
  const Received* const all = received.get();
  Received* const user = received.release();
  for (size_t i = 0; i < count; ++i) {
    // Appending an empty fragment may delete `user`, but not before the last one.
    const grpc::Slice& slice = all->slices[i];
    rope.Append({slice.begin(), slice.size(), Pin(Received::Release, user)});
  }
  return rope;
}

grpc::ByteBuffer MakeByteBuffer(ByteRope rope) {
  std::vector<Fragment> fragments = rope.TakeFragments();
  Slices slices;
  for (size_t i = 0; i < fragments.size();) {
    size_t end = i, bytes = 0;
    while (end < fragments.size() && fragments[end].size < kSmallestInPlace) {
      bytes += fragments[end++].size;
    }
    if (end > i) slices.push_back(Joined(fragments, i, end, bytes));
    if (end < fragments.size()) slices.push_back(InPlace(std::move(fragments[end++])));
    i = end;
  }
  // A buffer without slices would not be a message.
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace keelson
