// Branches, switch, loops, calls that remain, local arrays.
PROGRAM(dense_switch) {
  switch (a % 12) {
    case 0:
      return b + 1;
    case 1:
      return b * 3;
    case 2:
      return b ^ c;
    case 3:
      return b - c;
    case 4:
      return b >> 5;
    case 5:
      return b << 7;
    case 6:
      return b | c;
    case 7:
      return b & c;
    case 8:
      return ~b;
    case 9:
      return b * c;
    default:
      return c;
  }
}
PROGRAM(sparse_switch) {
  switch (u32(a % 1000)) {
    case 3:
      return 1;
    case 77:
      return b;
    case 500:
    case 501:
    case 502:
      return c;
    case 999:
      return b + c;
    default:
      return a % 1000 > 400 ? 2 : 3;
  }
}
PROGRAM(switch_in_a_loop) {
  u64 state = a, sum = 0;
  for (int i = 0; i < 20; ++i) {
    switch (state & 7) {
      case 0:
        sum += state;
        break;
      case 1:
        sum ^= b;
        break;
      case 2:
        sum *= 3;
        [[fallthrough]];
      case 3:
        sum += 5;
        break;
      case 4:
        continue;
      case 5:
        state >>= 1;
        break;
      default:
        sum -= c;
    }
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    state ^= state >> 29;
  }
  return sum;
}
PROGRAM(collatz) {
  u32 n = u32(a % 997) + 1, steps = 0;
  while (n != 1 && steps < 500) {
    n = n & 1 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}
PROGRAM(nested_breaks) {
  u64 sum = 0;
  for (u32 i = 0; i < 8; ++i) {
    for (u32 j = 0; j < 8; ++j) {
      if (((a >> (i * 8 + j)) & 1) == 0) continue;
      if (((b >> j) & 3) == 3) break;
      sum += i * j + (c & 15);
    }
    if (sum > 200) break;
  }
  return sum;
}
PROGRAM(early_return) {
  if (a & 1) return b;
  if (a & 2) {
    if (c & 1) return a;
    return t;
  }
  return b ^ c;
}
ONCE u64 mixed(u64 x, u32 rounds) {
  for (u32 i = 0; i < rounds; ++i) x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15ull;
  return x;
}
PROGRAM(call_that_remains) {
  return mixed(a, t & 3) + mixed(b, 2);
}
struct Triple {
  u64 first;
  u32 second;
  u16 third;
};
ONCE Triple rotated(Triple x, const u32* by) {
  return {x.first << *by | u64{x.third}, x.second ^ u32(x.first), u16(x.second >> *by)};
}
PROGRAM(call_with_structures) {
  const u32 by = t & 15;
  const Triple made = rotated(rotated({a, u32(b), u16(c)}, &by), &by);
  return made.first + made.second * 5ull + made.third;
}
ONCE u64 twice(u64 x) {
  return 2 * x + 1;
}
ONCE u64 squared(u64 x) {
  return x * x;
}
ONCE u64 turned(u64 x) {
  return x >> 7 | x << 57;
}
typedef u64 (*Function)(u64);
#ifdef __CUDACC__
__device__
#endif
    const Function functions[3] = {twice, squared, turned};
PROGRAM(indirect_call) {
  return functions[a % 3](b) + functions[t % 3](c);
}
PROGRAM(chosen_function) {
  const Function f = a & 1 ? squared : twice, g = b & 1 ? turned : f;
  return f(c) ^ g(a);
}
ONCE u64 gcd(u64 x, u64 y) {
  while (y) {
    const u64 rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
PROGRAM(greatest_divisor) {
  return gcd(u32(a), u32(b) | 1) + gcd(720720, u32(c) | 1);
}
PROGRAM(local_array) {
  u32 box[16];
  for (u32 i = 0; i < 16; ++i) box[i] = u32(a >> i) * i;
  for (u32 i = 0; i < 16; ++i) box[(b >> (4 * i)) & 15] += box[(c >> (4 * i)) & 15];
  u64 sum = 0;
  for (u32 i = 0; i < 16; ++i) sum = sum * 31 + box[i];
  return sum;
}
PROGRAM(local_bytes_sorted) {
  u8 box[8];
  for (u32 i = 0; i < 8; ++i) box[i] = u8(a >> 8 * i);
  for (u32 i = 1; i < 8; ++i)
    for (u32 j = i; j > 0 && box[j] < box[j - 1]; --j) {
      const u8 kept = box[j];
      box[j] = box[j - 1];
      box[j - 1] = kept;
    }
  u64 result = 0;
  for (u32 i = 0; i < 8; ++i) result |= u64{box[i]} << 8 * i;
  return result;
}
PROGRAM(array_of_structures) {
  Triple box[4];
  for (u32 i = 0; i < 4; ++i) box[i] = {a >> i, u32(b) + i, u16(c >> i)};
  const Triple chosen = box[t & 3];
  box[c & 3] = box[b & 3];
  return chosen.first + chosen.second + chosen.third + box[2].first;
}
#ifdef __CUDACC__
__constant__
#endif
    const u32 primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
PROGRAM(constant_table) {
  return a * primes[b & 15] + primes[t & 15];
}
PROGRAM(short_circuit) {
  return (u32(a) > u32(b) && u32(b) > u32(c)) || (a % 3 == 0 && !(c & 4)) ? t : t ^ 0xffff;
}
