// Integers: random numbers, bits, division, text, tables of functions, interpreters.

/// Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).
PROGRAM(philox) {
  const u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  u32 c[4] = {in[t], t, 7, 9}, k0 = 0x12345678, k1 = 0x9abcdef0;
  for (int round = 0; round < 10; ++round) {
    const u32 h0 = __umulhi(0xd2511f53u, c[0]), l0 = 0xd2511f53u * c[0];
    const u32 h1 = __umulhi(0xcd9e8d57u, c[2]), l1 = 0xcd9e8d57u * c[2];
    c[0] = h1 ^ c[1] ^ k0, c[1] = l1, c[2] = h0 ^ c[3] ^ k1, c[3] = l0;
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  for (int i = 0; i < 4; ++i) out[4 * t + i] = c[i];
}

PROGRAM(bit_tricks) {
  const u32 t = threadIdx.x, x = in[t], y = in[(t + 1) % n];
  u32 mixed = __popc(x) + 64 * __clz(y) + 4096 * __ffs(x);
  mixed ^= __brev(y) ^ __byte_perm(x, y, 0x3172) ^ __funnelshift_l(x, y, x & 31) ^ __funnelshift_rc(x, y, y & 63);
  mixed += __vadd4(x, y) ^ __vmaxs2(x, y) ^ __vabsdiffu4(x, y) ^ __vcmpgtu2(x, y);
  mixed ^= __usad(x, y, 5) + __uhadd(x, y) + __dp4a(x, y, 3u);
  out[t] = mixed;
}

PROGRAM(long_division) {
  const u32 t = threadIdx.x;
  const u64 a = static_cast<u64>(in[t]) << 32 | in[(t + 5) % n], b = in[(t + 9) % n] >> (t % 32) | 1;
  const long long x = static_cast<long long>(a), y = t & 1 ? -static_cast<long long>(b) : static_cast<long long>(b);
  const u64 mixed = a / b + 3 * (a % b) + static_cast<u64>(x / y) * 5 + static_cast<u64>(x % y) * 7 + __umul64hi(a, b);
  out[2 * t] = static_cast<u32>(mixed);
  out[2 * t + 1] = static_cast<u32>(mixed >> 32);
}

/// Positions where the pattern (the first 5 bytes of in) occurs in the bytes of in.
PROGRAM(string_search) {
  const char* text = reinterpret_cast<const char*>(in);
  const u32 length = 4 * n;
  for (u32 at = threadIdx.x; at < length; at += blockDim.x) {
    u32 equal = 0;
    while (equal < 5 && at + equal < length && text[at + equal] == text[equal]) ++equal;
    out[at] = equal == 5;
  }
}

/// Distance of edits between the first 24 bytes and 24 bytes at the thread's place, a row of the table in local memory.
PROGRAM(edit_distance) {
  const unsigned char* text = reinterpret_cast<const unsigned char*>(in);
  u32 row[25];
  for (u32 j = 0; j <= 24; ++j) row[j] = j;
  for (u32 i = 1; i <= 24; ++i) {
    u32 corner = row[0];
    row[0] = i;
    for (u32 j = 1; j <= 24; ++j) {
      const u32 change = corner + (text[i - 1] % 4 != text[threadIdx.x + j - 1] % 4);
      corner = row[j];
      row[j] = min(change, min(row[j], row[j - 1]) + 1);
    }
  }
  out[threadIdx.x] = row[24];
}

static __device__ __noinline__ u32 doubled(u32 x) { return 2 * x; }
static __device__ __noinline__ u32 squared(u32 x) { return x * x; }
static __device__ __noinline__ u32 turned(u32 x) { return ~x; }
__device__ u32 (*const steps[3])(u32) = {doubled, squared, turned};

PROGRAM(function_pointers) {
  u32 x = in[threadIdx.x];
  for (u32 i = 0; i < 6; ++i) x = steps[(x >> i) % 3](x);
  out[threadIdx.x] = x;
}

/// A stack machine: each nibble of the word is an instruction.
PROGRAM(interpreter) {
  u32 stack[8] = {1, 2, 3, 4}, top = 3, code = in[threadIdx.x];
  for (int step = 0; step < 8; ++step, code >>= 4) switch (code & 15) {
      case 0: stack[top] += 1; break;
      case 1: stack[top] *= 3; break;
      case 2: stack[top] ^= stack[(top + 7) % 8]; break;
      case 3: top = (top + 1) % 8; stack[top] = step; break;
      case 4: top = (top + 7) % 8; break;
      case 5: stack[top] = stack[top] >> 3 | stack[top] << 29; break;
      case 6: stack[top] -= stack[(top + 1) % 8]; break;
      case 7: if (stack[top] & 1) step += 2; break;
      case 8: goto end;
      case 9: stack[top] = __popc(stack[top]); break;
      default: stack[top] = stack[top] * 5 + (code & 15);
    }
end:
  u32 mixed = top;
  for (int i = 0; i < 8; ++i) mixed = mixed * 31 + stack[i];
  out[threadIdx.x] = mixed;
}

/// The clock runs forward; the loop is not optimised away.
PROGRAM(clocked) {
  const long long start = clock64();
  u32 x = in[threadIdx.x];
  for (u32 i = 0; i < 20; ++i) x = x * 1664525u + 1013904223u;
  out[threadIdx.x] = clock64() >= start ? x : 0;
}

static __device__ __noinline__ u32 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

PROGRAM(recursion) { out[threadIdx.x] = fibonacci(in[threadIdx.x] % 8 + n); }
