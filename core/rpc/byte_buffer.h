// Converts between ByteRope and gRPC's byte buffers, without copying large fragments.
#ifndef KEELSON_CORE_RPC_BYTE_BUFFER_H_
#define KEELSON_CORE_RPC_BYTE_BUFFER_H_

#include <grpcpp/support/byte_buffer.h>

#include "core/wire/byte_rope.h"

namespace keelson {

// The bytes are not copied. Leaves `buffer` empty.
ByteRope TakeByteBuffer(grpc::ByteBuffer* buffer);

// Fragments of 16 KiB and more are sent in place, and their pins released when gRPC no longer needs
// them; smaller ones are copied together.
grpc::ByteBuffer MakeByteBuffer(ByteRope rope);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_BYTE_BUFFER_H_
