// Marks arithmetic that kernels use and CPU tests check.
#ifndef KEELSON_CORE_DEVICE_CUDA_HOST_DEVICE_H_
#define KEELSON_CORE_DEVICE_CUDA_HOST_DEVICE_H_

#ifdef __CUDACC__
#define KEELSON_HOST_DEVICE __host__ __device__
#else
#define KEELSON_HOST_DEVICE
#endif

#endif  // KEELSON_CORE_DEVICE_CUDA_HOST_DEVICE_H_
