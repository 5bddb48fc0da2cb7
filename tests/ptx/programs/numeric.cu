// Numbers: transforms, normalisations, special functions, linear algebra.

static __device__ float real(u32 x) { return (static_cast<int>(x) >> 8) * 0x1p-20f; }  // [-8, 8)

/// The discrete Fourier transform of 64 complex numbers; real parts, then imaginary parts.
PROGRAM(fft) {
  __shared__ float re[64], im[64];
  const u32 t = threadIdx.x, from = __brev(t) >> 26;
  re[t] = real(in[from]), im[t] = real(in[64 + from]);
  __syncthreads();
  for (u32 half = 1; half < 64; half *= 2) {
    const u32 k = t % (2 * half);
    if (k < half) {
      float s, c;
      sincospif(-static_cast<float>(k) / static_cast<float>(half), &s, &c);
      const float x = re[t + half], y = im[t + half];
      const float wr = x * c - y * s, wi = x * s + y * c;
      re[t + half] = re[t] - wr, im[t + half] = im[t] - wi;
      re[t] += wr, im[t] += wi;
    }
    __syncthreads();
  }
  out[t] = __float_as_uint(re[t]), out[64 + t] = __float_as_uint(im[t]);
}

/// softmax of a row of n = 128 numbers.
PROGRAM(softmax) {
  __shared__ float row[128];
  const u32 t = threadIdx.x;
  const float x = real(in[t]);
  row[t] = x;
  __syncthreads();
  float most = row[0], sum = 0;
  for (u32 i = 1; i < n; ++i) most = fmaxf(most, row[i]);
  for (u32 i = 0; i < n; ++i) sum += expf(row[i] - most);
  out[t] = __float_as_uint(expf(x - most) / sum);
}

/// (x - mean) / sqrt(variance + 1e-5) of a row of n = 128 numbers.
PROGRAM(layer_norm) {
  __shared__ float row[128];
  const u32 t = threadIdx.x;
  row[t] = real(in[t]);
  __syncthreads();
  float mean = 0, square = 0;
  for (u32 i = 0; i < n; ++i) mean += row[i];
  mean /= static_cast<float>(n);
  for (u32 i = 0; i < n; ++i) square += (row[i] - mean) * (row[i] - mean);
  out[t] = __float_as_uint((row[t] - mean) * rsqrtf(square / static_cast<float>(n) + 1e-5f));
}

/// A 16 x 16 product of halves, two columns at a time, fused in the order of k; row t / 8, columns 2 (t % 8) and next.
PROGRAM(half2_product) {
  const __half* a = reinterpret_cast<const __half*>(in);
  const __half2* b = reinterpret_cast<const __half2*>(in) + 128;
  const u32 row = threadIdx.x / 8, pair = threadIdx.x % 8;
  __half2 sum = __float2half2_rn(0.0f);
  for (u32 k = 0; k < 16; ++k) sum = __hfma2(__half2half2(a[row * 16 + k]), b[k * 8 + pair], sum);
  reinterpret_cast<__half2*>(out)[threadIdx.x] = sum;
}

/// Sine and cosine, also of large arguments.
PROGRAM(sine_and_cosine) {
  float s, c;
  sincosf(real(in[threadIdx.x]) * (threadIdx.x % 2 ? 1.0f : 12345.678f), &s, &c);
  out[2 * threadIdx.x] = __float_as_uint(s), out[2 * threadIdx.x + 1] = __float_as_uint(c);
}

PROGRAM(error_function) {
  const float x = real(in[threadIdx.x]) * 0.5f;
  out[2 * threadIdx.x] = __float_as_uint(erff(x)), out[2 * threadIdx.x + 1] = __float_as_uint(erfcf(x));
}

/// Iterations of z^2 + c until |z| > 2, at most 64.
PROGRAM(mandelbrot) {
  const float cx = real(in[threadIdx.x]) * 0.25f, cy = real(in[(threadIdx.x + 1) % n]) * 0.25f;
  float x = 0, y = 0;
  u32 i = 0;
  for (; i < 64 && x * x + y * y <= 4; ++i) {
    const float next = x * x - y * y + cx;
    y = 2 * x * y + cy;
    x = next;
  }
  out[threadIdx.x] = i;
}

/// Solves an 8 x 8 system in double by elimination without exchange of rows; thread t is row t.
PROGRAM(elimination) {
  __shared__ double m[8][9];
  const u32 t = threadIdx.x;
  for (u32 j = 0; j < 9; ++j) m[t][j] = real(in[t * 9 + j]) + (j == t ? 64.0 : 0.0);
  __syncthreads();
  for (u32 k = 0; k < 8; ++k) {
    const double factor = m[t][k] / m[k][k];
    __syncthreads();
    if (t != k)
      for (u32 j = k; j < 9; ++j) m[t][j] -= factor * m[k][j];
    __syncthreads();
  }
  const double x = m[t][8] / m[t][t];
  out[2 * t] = __double2loint(x), out[2 * t + 1] = __double2hiint(x);
}

/// A compensated sum (Kahan, 1965) of n numbers in bf16, by one thread.
PROGRAM(compensated_sum) {
  float sum = 0, rest = 0;
  for (u32 i = 0; i < n; ++i) {
    const float x = __bfloat162float(__float2bfloat16(real(in[i]))) - rest;
    const float next = sum + x;
    rest = (next - sum) - x;
    sum = next;
  }
  out[0] = __float_as_uint(sum);
}
