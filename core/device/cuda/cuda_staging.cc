#include "core/device/cuda/cuda_staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace keelson {
namespace {

constexpr size_t kPieces = 8;
constexpr size_t kPieceBytes = size_t{2} << 20;

}  // namespace

CudaStaging::~CudaStaging() {
  context_->BeginRelease();
  context_->Check("cudaStreamSynchronize", cudaStreamSynchronize(context_->compute()));
}

bool CudaStaging::Allocate() {
  auto memory = pool_->Allocate(kPieces * kPieceBytes);
  if (!memory.ok()) {
    context_->Fail(std::move(memory).status());
    return false;
  }
  memory_ = *std::move(memory);
  for (size_t i = 0; i < kPieces; ++i) {
    auto copied = CudaEvent::Create(context_);
    if (!copied.ok()) return false;
    pieces_.push_back({memory_->bytes().data() + i * kPieceBytes, *std::move(copied)});
  }
  return true;
}

CudaStaging::Piece* CudaStaging::Next() {
  if (pieces_.empty() && !Allocate()) return nullptr;
  Piece* const piece = &pieces_[next_];
  next_ = (next_ + 1) % kPieces;
  const cudaEvent_t copied = piece->copied->handle();
  const cudaError_t passed = cudaEventQuery(copied);
  const bool free = passed == cudaErrorNotReady
                        ? context_->Check("cudaEventSynchronize", cudaEventSynchronize(copied))
                        : context_->Check("cudaEventQuery", passed);
  return free ? piece : nullptr;
}

bool CudaStaging::Copy(const void* from, void* to, size_t bytes, cudaMemcpyKind kind,
                       Piece* piece) {
  return context_->Check("cudaMemcpyAsync",
                         cudaMemcpyAsync(to, from, bytes, kind, context_->compute())) &&
         piece->copied->Record(context_->compute());
}

void CudaStaging::CopyToDevice(const void* from, size_t bytes, void* to) {
  for (size_t done = 0; done < bytes; done += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, bytes - done);
    Piece* const piece = Next();
    if (piece == nullptr) return;
    std::memcpy(piece->bytes, static_cast<const uint8_t*>(from) + done, size);
    if (!Copy(piece->bytes, static_cast<uint8_t*>(to) + done, size, cudaMemcpyHostToDevice,
              piece)) {
      return;
    }
  }
}

void CudaStaging::CopyToHost(const void* from, size_t bytes, void* to) {
  for (size_t done = 0; done < bytes; done += kPieceBytes) {
    const size_t size = std::min(kPieceBytes, bytes - done);
    Piece* const piece = Next();
    if (piece == nullptr ||
        !Copy(static_cast<const uint8_t*>(from) + done, piece->bytes, size, cudaMemcpyDeviceToHost,
              piece) ||
        !context_->Check("cudaEventSynchronize", cudaEventSynchronize(piece->copied->handle()))) {
      return;
    }
    std::memcpy(static_cast<uint8_t*>(to) + done, piece->bytes, size);
  }
}

}  // namespace keelson
