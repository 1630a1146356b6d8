// The emulation's stand-in for CUDA's header of this name: the part of it that Keelson uses.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_LIBRARY_TYPES_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_LIBRARY_TYPES_H_

enum cudaDataType_t {
  CUDA_R_32F = 0,
  CUDA_R_16BF = 14,
};
typedef cudaDataType_t cudaDataType;

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_INCLUDE_LIBRARY_TYPES_H_
