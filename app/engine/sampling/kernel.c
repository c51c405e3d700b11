/* Passes over a row of a vocabulary, each in place of several of numpy's: see kernel.py.

   The vectors are GCC's and Clang's: without -ffast-math a compiler may not change the order of a sum, and with
   it there would be no NaN. A row has shape [n], n > 0, and any alignment. Sums are in single precision over a
   few values, and in double over theirs. */

#include <stdint.h>
#include <string.h>

#ifdef __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define FEW (16 * LANES) /* values that are summed in single precision */
#define GROUP (8 * LANES) /* values that are compared at once */
#define BLOCK 256 /* values of a row that is drawn from */
#define BLOCKS 1024 /* the most that it has */

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef double Doubles __attribute__((vector_size(8 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline Floats load(const float *x) {
    Floats v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline Floats choose(Ints mask, Floats yes, Floats no) {
    return (Floats)((mask & (Ints)yes) | (~mask & (Ints)no));
}

static inline int any(Ints mask) {
    int32_t found = 0;
    for (int lane = 0; lane < LANES; lane++) found |= mask[lane];
    return found;
}

static inline double sum(Doubles v) {
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += v[lane];
    return total;
}

/* exp(x) for x <= 0 or NaN, to about two units in the last place: 2^k e^r, with the polynomial of the Cephes
   library for e^r. 2^k comes in two factors, because the result may be denormal. */
static inline Floats exponential(Floats x) {
    const Floats zero = {}, whole = zero + 0x1.8p23f; /* a sum with it has no bits behind the point */
    x = choose(x < -104, zero - 104, x);
    Floats shifted = x * 1.44269504f + whole;
    Floats k = shifted - whole;
    Floats r = x - k * 0.693359375f - k * -2.12194440e-4f;
    Floats p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1;
    Ints power = (Ints)shifted - (Ints)whole, half = power >> 1;
    return p * (Floats)((half + 127) << 23) * (Floats)((power - half + 127) << 23);
}

/* The sum of exp((x - shift) * scale); they are written into `out`, which may be `x`, unless it is null. */
double exponentials(const float *x, int64_t n, float shift, float scale, float *out) {
    Doubles sums = {};
    int64_t i = 0;
    while (i + LANES <= n) {
        int64_t end = least(i + FEW, n);
        Floats few = {};
        for (; i + LANES <= end; i += LANES) {
            Floats made = exponential((load(x + i) - shift) * scale);
            few += made;
            if (out) memcpy(out + i, &made, sizeof made);
        }
        sums += __builtin_convertvector(few, Doubles);
    }
    double total = sum(sums);
    for (; i < n; i++) {
        float made = exponential(((Floats){} + x[i] - shift) * scale)[0];
        total += made;
        if (out) out[i] = made;
    }
    return total;
}

/* Finds the `k` largest values, largest first, of equal ones those of lower places first. Returns how many
   there are: none if any is NaN. */
int64_t largest(const float *x, int64_t n, int64_t k, int64_t *places, float *values) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += GROUP) {
        int64_t end = least(i + GROUP, n);
        if (count == k && end == i + GROUP) {
            Ints above = {};
            for (int64_t j = i; j < end; j += LANES) above |= ~(load(x + j) <= values[k - 1]);
            if (!any(above)) continue; /* nor is any NaN */
        }
        for (int64_t j = i; j < end; j++) {
            float v = x[j];
            if (v != v) return 0;
            if (count == k && !(v > values[k - 1])) continue;
            int64_t at = count < k ? count++ : k - 1;
            for (; at > 0 && values[at - 1] < v; at--) {
                values[at] = values[at - 1];
                places[at] = places[at - 1];
            }
            values[at] = v;
            places[at] = j;
        }
    }
    return count;
}

/* Draws from probabilities: returns the first place whose interval ends above `u`, and the interval. Its edges
   are scaled, so that the last one is 1, before they are compared, because they are recorded. */
int64_t draw(const float *p, int64_t n, double u, double *low, double *high) {
    double ends[BLOCKS], total = 0;
    int64_t width = BLOCK * (1 + n / (BLOCK * BLOCKS)), blocks = 0, i = 0;
    do {
        int64_t end = least(i + width, n);
        Doubles sums = {};
        while (i + LANES <= end) {
            int64_t stop = least(i + FEW, end);
            Floats few = {};
            for (; i + LANES <= stop; i += LANES) few += load(p + i);
            sums += __builtin_convertvector(few, Doubles);
        }
        total += sum(sums);
        for (; i < end; i++) total += p[i];
        ends[blocks++] = total;
    } while (i < n);
    int64_t block = 0;
    while (block < blocks - 1 && !(u < ends[block] / total)) block++;
    /* The two sums may round differently: the block's last token ends where the block ends. */
    int64_t place = block * width, last = least(place + width, n) - 1;
    while (last > place && p[last] == 0) last--;
    double before = block ? ends[block - 1] : 0, next = before + p[place];
    while (place < last && !(u < next / total)) {
        before = next;
        next += p[++place];
    }
    *low = before / total;
    *high = (place == last || next > ends[block] ? ends[block] : next) / total;
    return place;
}
