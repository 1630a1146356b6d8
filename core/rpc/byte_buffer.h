// Between ByteRope and gRPC's byte buffers, without copying what is large.
#ifndef KEELSON_CORE_RPC_BYTE_BUFFER_H_
#define KEELSON_CORE_RPC_BYTE_BUFFER_H_

#include <grpcpp/support/byte_buffer.h>

#include "core/wire/byte_rope.h"

namespace keelson {

// The bytes stay where gRPC received them. Leaves `buffer` empty.
ByteRope TakeByteBuffer(grpc::ByteBuffer* buffer);

// Fragments of 16 KiB and more are sent from where they are, and their pins released when gRPC
// needs them no more; smaller ones are copied together.
grpc::ByteBuffer MakeByteBuffer(ByteRope rope);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_BYTE_BUFFER_H_
