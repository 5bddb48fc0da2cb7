// Small programs as anyone might write them, each an entry (const u32* in, u32* out, u32 n). What they should give is
// computed in programs_test.cpp.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <stdio.h>

using u32 = unsigned int;
using u64 = unsigned long long;
#define PROGRAM(name) extern "C" __global__ void name(const u32* __restrict__ in, u32* __restrict__ out, u32 n)

#include "tests/ptx/programs/integer.cu"
#include "tests/ptx/programs/numeric.cu"
#include "tests/ptx/programs/parallel.cu"
#include "tests/ptx/programs/refused.cu"
