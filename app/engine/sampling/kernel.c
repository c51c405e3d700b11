/* Passes over a row of a vocabulary, each in place of several of numpy's: see kernel.py.

   The vectors are those of GCC and Clang: without -ffast-math a compiler may not change the order of a sum, and
   with it there would be no NaN. A row has shape [n], n > 0, and any alignment. Sums are in single precision
   over a few values, and in double over theirs. */

#define _POSIX_C_SOURCE 199309L /* for clock_gettime, whatever the flags */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#ifdef __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define FEW (16 * LANES) /* values that are summed in single precision */
#define GROUP (16 * LANES) /* values that are compared at once */
#define MANY (64 * LANES) /* values of which the largest is found at once */
#define WAYS 4 /* vectors of these at a time */
#define BLOCK 64 /* tokens that share the first of their times */
#define BLOCKS 4096 /* of them, whose largest p are kept at once */
#define FIRST (1ull << 32) /* the counter of the first block; tokens count from 0 */
#define SLACK 1.000000001 /* more than the roundings of a product */
#define SHORT 0.999999 /* and this less, in single precision */

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef double Doubles __attribute__((vector_size(8 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));

static inline ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

static inline Floats load(const float *x) {
    Floats v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline Floats choose(Ints mask, Floats yes, Floats no) {
    return (Floats)((mask & (Ints)yes) | (~mask & (Ints)no));
}

static inline int any(Ints mask) {
    uint64_t found = 0, halves[LANES / 2];
    memcpy(halves, &mask, sizeof halves);
    for (int half = 0; half < LANES / 2; half++) found |= halves[half];
    return found != 0;
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

/* Whether this processor has what -mavx2 -mfma compiles for. */
int has_avx2(void) {
#ifdef __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* The sum of exp((x - shift) * scale); they are written into `out`, which may be `x`, unless it is null. */
double exponentials(const float *x, ptrdiff_t n, float shift, float scale, float *out) {
    Doubles sums = {};
    ptrdiff_t i = 0;
    while (i + LANES <= n) {
        ptrdiff_t end = least(i + FEW, n);
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

/* Returns the place of the first of the largest values, or of the first NaN. Copies the row into `out`, unless it
   is null. */
ptrdiff_t copy_argmax(const float *x, ptrdiff_t n, float *out) {
    float best = -INFINITY;
    ptrdiff_t start = 0, i = 0; /* `start`: where the values begin that have the best first */
    int broken = 0;
    for (; i + MANY <= n; i += MANY) {
        Floats most[WAYS]; /* apart, because a comparison waits for the one before with the same */
        Ints nan = {};
        for (int way = 0; way < WAYS; way++) most[way] = (Floats){} + best;
        for (ptrdiff_t j = i; j < i + MANY; j += LANES * WAYS) {
            for (int way = 0; way < WAYS; way++) {
                Floats v = load(x + j + LANES * way);
                if (out) memcpy(out + j + LANES * way, &v, sizeof v);
                most[way] = choose(v > most[way], v, most[way]);
                nan |= v != v;
            }
        }
        broken |= any(nan);
        for (int way = 1; way < WAYS; way++) most[0] = choose(most[way] > most[0], most[way], most[0]);
        if (!any(most[0] > best)) continue;
        start = i;
        for (int lane = 0; lane < LANES; lane++) best = most[0][lane] > best ? most[0][lane] : best;
    }
    for (; i < n; i++) {
        if (out) out[i] = x[i];
        broken |= x[i] != x[i];
        if (x[i] > best) best = x[start = i];
    }
    if (broken) start = 0;
    while (broken ? x[start] == x[start] : x[start] != best) start++;
    return start;
}

/* The probabilities at one over a temperature, into `out`: all NaN if any value is. */
void softmax(const float *x, ptrdiff_t n, float scale, float *out) {
    float share = 1 / exponentials(x, n, x[copy_argmax(x, n, 0)], scale, out);
    for (ptrdiff_t i = 0; i < n; i++) out[i] *= share;
}

/* Where values are above the bound, or NaN. */
static inline Ints beyond(const float *x, float bound) { return ~(load(x) <= bound); }

/* Finds the `k` largest values, largest first, of equal ones those of lower places first. Returns how many
   there are: none if any is NaN. */
ptrdiff_t largest(const float *x, ptrdiff_t n, ptrdiff_t k, ptrdiff_t *places, float *values) {
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; i += GROUP) {
        ptrdiff_t end = least(i + GROUP, n);
        if (count == k && end == i + GROUP) {
            Ints found = {};
            for (ptrdiff_t j = 0; j < GROUP; j += LANES) found |= beyond(x + i + j, values[k - 1]);
            if (!any(found)) continue;
        }
        for (ptrdiff_t j = i; j < end; j += LANES) {
            ptrdiff_t stop = least(j + LANES, end);
            if (count == k && stop == j + LANES && !any(beyond(x + j, values[k - 1]))) continue;
            for (ptrdiff_t place = j; place < stop; place++) {
                float v = x[place];
                if (v != v) return 0;
                if (count == k && !(v > values[k - 1])) continue;
                ptrdiff_t at = count < k ? count++ : k - 1;
                for (; at > 0 && values[at - 1] < v; at--) {
                    values[at] = values[at - 1];
                    places[at] = places[at - 1];
                }
                values[at] = v;
                places[at] = place;
            }
        }
    }
    return count;
}

/* llama.cpp's llama_batch. */
typedef struct {
    int32_t n_tokens;
    int32_t *token;
    float *embd;
    int32_t *pos;
    int32_t *n_seq_id;
    int32_t **seq_id;
    int8_t *logits;
} Batch;

/* llama.cpp's llama_embd. */
typedef struct {
    const float *data;
    size_t n_rows;
    size_t n_embd;
} Embedding;

/* What a head's passes over tokens beside rows need: the class of this name in kernel.py. */
typedef struct {
    void (*clear)(void *);
    int32_t (*add_token)(void *, int32_t, int32_t);
    int32_t (*add_embd)(void *, int32_t, Embedding);
    _Bool (*set_embd)(void *, int32_t, Embedding);
    _Bool (*set_pos)(void *, int32_t, const int32_t *);
    _Bool (*set_output)(void *, int32_t, _Bool);
    int32_t (*process)(void *, int, void *);
    const float *(*get_rows)(void *); /* what the head gave in its latest pass */
    void *batch; /* llama.cpp's llama_batch_ext */
    size_t width;
    const float *rows; /* of the first tokens; then each has what the head gave */
    const float *inputs; /* if not null, its encoder makes rows of them first */
    ptrdiff_t n_inputs;
    size_t input_width;
    float *made; /* those rows */
    double *norms; /* of the first few inputs, then of the rows made of these */
    ptrdiff_t n_norms; /* of them */
} Entries;

/* What `draft_best` needs, and what it finds: the class of this name in kernel.py. */
typedef struct {
    int32_t (*decode)(void *, Batch);
    float *(*get_logits)(void *);
    void *context;
    Batch batch; /* from the context's first place on; `logits` is where the last token's flag ends */
    ptrdiff_t k;
    ptrdiff_t *places; /* k of each row, or as many as it has values */
    float *values;
    const int32_t *ends; /* tokens after which none is drafted */
    ptrdiff_t n_ends;
    ptrdiff_t rows;
    ptrdiff_t broken; /* whether a row with a NaN came after those */
    double seconds;
    Entries *entries; /* of a head, or null */
} Steps;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* Whether a draft goes on after a row's `k` largest values: not if the first one's share of their probability is
   below `p_min`, or if it is an end. */
static int goes_on(const Steps *steps, const ptrdiff_t *places, const float *values, ptrdiff_t k, double p_min) {
    double whole = 0;
    for (ptrdiff_t i = 0; p_min > 0 && i < k; i++) whole += exp((double)values[i] - values[0]);
    if (p_min > 0 && 1 / whole < p_min) return 0;
    for (ptrdiff_t i = 0; i < steps->n_ends; i++) {
        if (steps->ends[i] == places[0]) return 0;
    }
    return 1;
}

static double norm(const float *row, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += (double)row[i] * row[i];
    return sqrt(squares);
}

/* Lets a head's encoder make rows. They go into no memory, but llama.cpp wants their places to follow what is
   in it. */
static int32_t encode(const Steps *steps, const int32_t *pos) {
    Entries *entries = steps->entries;
    entries->clear(entries->batch);
    for (ptrdiff_t i = 0; i < entries->n_inputs; i++) {
        const float *row = entries->inputs + i * entries->input_width;
        int32_t index = entries->add_embd(entries->batch, 0, (Embedding){row, 1, entries->input_width});
        entries->set_pos(entries->batch, index, pos + i);
        if (i < entries->n_norms) entries->norms[i] = norm(row, entries->input_width);
    }
    entries->inputs = 0;
    int32_t status = entries->process(steps->context, 0, entries->batch);
    if (status) return status;
    memcpy(entries->made, entries->get_rows(steps->context), entries->n_inputs * entries->width * sizeof(float));
    for (ptrdiff_t i = 0; i < entries->n_norms; i++) {
        entries->norms[entries->n_norms + i] = norm(entries->made + i * entries->width, entries->width);
    }
    return 0;
}

/* Reads the `n` tokens from place `at` on. Only the last one's logits are wanted, and a head reads it apart:
   set-up's llama.cpp makes little of a pass without logits. */
static int32_t read_tokens(const Steps *steps, ptrdiff_t at, int32_t n) {
    Batch batch = steps->batch;
    batch.n_tokens = n;
    batch.token += at;
    batch.pos += at;
    batch.logits -= n;
    Entries *entries = steps->entries;
    if (!entries) return steps->decode(steps->context, batch);
    int32_t status = entries->inputs ? encode(steps, batch.pos) : 0;
    const float *row = entries->rows ? entries->rows : entries->get_rows(steps->context);
    for (int32_t i = 0; i < n && !status; i++, row += entries->width) {
        if (i == 0 || i == n - 1) entries->clear(entries->batch);
        int32_t index = entries->add_token(entries->batch, 0, batch.token[i]);
        entries->set_embd(entries->batch, index, (Embedding){row, 1, entries->width});
        entries->set_pos(entries->batch, index, batch.pos + i);
        entries->set_output(entries->batch, index, i == n - 1);
        if (i >= n - 2) status = entries->process(steps->context, 1, entries->batch);
    }
    entries->rows = 0;
    return status;
}

/* Runs a model over the `n` tokens from place `at` on, then over the best token after them, and so on, until
   `count` rows are made or the draft ends before. Finds the `k` largest of the first `size` logits of each row;
   `seconds` is the time of finding them. Returns what the last llama_decode does. */
int32_t draft_best(Steps *steps, ptrdiff_t at, int32_t n, ptrdiff_t size, ptrdiff_t count, double p_min) {
    ptrdiff_t k = least(steps->k, size), *places = steps->places;
    float *values = steps->values;
    steps->rows = steps->broken = 0;
    steps->seconds = 0;
    for (;;) {
        int32_t status = read_tokens(steps, at, n);
        if (status) return status;
        const float *row = steps->get_logits(steps->context);
        double began = now();
        steps->broken = !largest(row, size, k, places, values);
        int ended = steps->broken || ++steps->rows == count || !goes_on(steps, places, values, k, p_min);
        steps->seconds += now() - began;
        if (ended) return 0;
        at += n;
        n = 1;
        steps->batch.token[at] = (int32_t)places[0];
        places += k;
        values += k;
    }
}

/* Copies the latest `n` rows of `width` numbers of each of a context's layers into `out`, where those of a token are
   side by side. */
void layer_rows(const float *(*get)(void *, uint32_t), void *context, const uint32_t *layers, ptrdiff_t n_layers,
                ptrdiff_t width, ptrdiff_t n, float *out) {
    for (ptrdiff_t layer = 0; layer < n_layers; layer++) {
        const float *rows = get(context, layers[layer]);
        for (ptrdiff_t i = 0; i < n; i++) {
            memcpy(out + (i * n_layers + layer) * width, rows + i * width, width * sizeof(float));
        }
    }
}

/* Finds what top-k, top-p and min-p leave of a row, by ascending places, and its probabilities. `reach` is the
   least that min-p leaves, relative to the largest value. Returns how many are left: none if any is NaN. */
ptrdiff_t filtered(const float *x, ptrdiff_t n, ptrdiff_t k, double top_p, double reach, double temperature,
                 ptrdiff_t *places, float *p) {
    ptrdiff_t count = largest(x, n, k, places, p);
    double first = count ? p[0] : 0, whole = 0, sum = 0;
    if (top_p < 1) {
        for (ptrdiff_t i = 0; i < count; i++) whole += exp(p[i] - first);
        for (ptrdiff_t i = 0; i < count; i++) {
            sum += exp(p[i] - first);
            if (sum >= top_p * whole) count = i + 1;
        }
    }
    while (count && p[count - 1] < first + reach) count--;
    whole = 0;
    for (ptrdiff_t i = 0; i < count; i++) whole += exp((p[i] - first) / temperature);
    for (ptrdiff_t i = 0; i < count; i++) {
        float made = exp((p[i] - first) / temperature) / whole;
        ptrdiff_t place = places[i], at = i;
        for (; at > 0 && places[at - 1] > place; at--) {
            places[at] = places[at - 1];
            p[at] = p[at - 1];
        }
        places[at] = place;
        p[at] = made;
    }
    return count;
}

/* Output number `counter` of SplitMix64 (Steele, Lea and Flood 2014; Vigna's splitmix64.c) from the seed `key`. */
static inline uint64_t word(uint64_t key, uint64_t counter) {
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Between 0 and 1, neither of them; one minus it has no rounding. */
static inline double uniform(uint64_t word) { return ((word >> 12) + 0.5) * 0x1p-52; }

/* A token in a race: its time over its p, and its place. */
typedef struct {
    double ratio;
    ptrdiff_t place;
} Runner;

/* The numbers that the tokens of a block share. */
typedef struct {
    ptrdiff_t id;
    uint64_t first;
    double lead; /* its first time, or at first the least that it can be: -log u >= 1 - u */
    int known;
} Block;

static inline Block block_of(uint64_t key, ptrdiff_t id) {
    uint64_t first = word(key, FIRST + id);
    return (Block){id, first, (1 - uniform(first)) / BLOCK, 0};
}

/* Lets a token run; `two` are the best so far. What cannot win is passed over before its logarithm. */
static inline void run(Runner *two, uint64_t key, Block *block, ptrdiff_t id, ptrdiff_t place, float p) {
    double limit = two[1].ratio * p * SLACK;
    if (!(block->lead < limit)) return; /* also where p is 0 or NaN */
    if (!block->known) {
        block->lead = -log(uniform(block->first)) / BLOCK;
        block->known = 1;
    }
    double time = block->lead;
    if (id != (ptrdiff_t)(block->id * BLOCK + block->first % BLOCK)) {
        double u = uniform(word(key, id));
        if (time + (1 - u) > limit) return;
        time -= log(u);
    }
    double ratio = time / p;
    if (!(ratio < two[1].ratio)) return;
    two[1] = ratio < two[0].ratio ? two[0] : (Runner){ratio, place};
    if (ratio < two[0].ratio) two[0] = (Runner){ratio, place};
}

/* Lets a block of a whole row run, but for the tokens whose p is too small for the block's first time. */
static void run_block(Runner *two, uint64_t key, const float *p, ptrdiff_t start, ptrdiff_t end) {
    Block block = block_of(key, start / BLOCK);
    Floats bound = (Floats){} + (float)(block.lead / two[1].ratio * SHORT);
    ptrdiff_t i = start;
    for (; i + LANES <= end; i += LANES) {
        if (!any(load(p + i) > bound)) continue;
        for (ptrdiff_t j = i; j < i + LANES; j++) run(two, key, &block, j, j, p[j]);
    }
    for (; i < end; i++) run(two, key, &block, i, i, p[i]);
}

/* The largest of a vector's values; NaN are passed over. */
static inline float largest_of(Floats v) {
    float values[LANES];
    memcpy(values, &v, sizeof v);
    for (int half = LANES / 2; half; half /= 2) {
        for (int i = 0; i < half; i++) values[i] = values[i + half] > values[i] ? values[i + half] : values[i];
    }
    return values[0];
}

/* Finds the two tokens with the smallest time / p, smallest first; a place is -1 where there is none. Ids are the
   places where `ids` is null. See noise.py, which computes the same. */
void race(const float *p, const ptrdiff_t *ids, ptrdiff_t n, uint64_t key, Runner *two) {
    two[0] = two[1] = (Runner){INFINITY, -1};
    if (ids) {
        Block block = {-1, 0, 0, 0};
        for (ptrdiff_t i = 0; i < n; i++) {
            if (ids[i] / BLOCK != block.id) block = block_of(key, ids[i] / BLOCK);
            run(two, key, &block, ids[i], i, p[i]);
        }
        return;
    }
    for (ptrdiff_t start = 0; start < n; start += BLOCK * BLOCKS) {
        float most[BLOCKS]; /* of each block the largest p */
        ptrdiff_t blocks = 0, best = 0, i = start;
        for (; i + BLOCK <= n && blocks < BLOCKS; i += BLOCK) {
            Floats highest = {};
            for (ptrdiff_t j = i; j < i + BLOCK; j += LANES) {
                highest = choose(load(p + j) > highest, load(p + j), highest);
            }
            most[blocks] = largest_of(highest);
            best = most[blocks] > most[best] ? blocks : best;
            blocks++;
        }
        if (blocks < BLOCKS && i < n) run_block(two, key, p, i, n);
        if (!blocks) continue;
        run_block(two, key, p, start + best * BLOCK, start + (best + 1) * BLOCK); /* first: it bounds the others */
        most[best] = 0;
        for (ptrdiff_t b = 0; b < blocks; b++) {
            if (!(block_of(key, start / BLOCK + b).lead < two[1].ratio * most[b] * SLACK)) continue;
            run_block(two, key, p, start + b * BLOCK, start + (b + 1) * BLOCK);
        }
    }
}
