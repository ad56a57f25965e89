// Attention over a page table: three Metal kernels, as mx.fast.metal_kernel takes them.
//
// Words of Metal, for a first reader
//   thread        runs the whole kernel text once, with an index of its own
//   SIMD group    32 threads ("lanes") that run in step and can add up a value of theirs: simd_sum
//   threadgroup   some SIMD groups that share a little fast memory, marked `threadgroup`; they meet at a
//                 threadgroup_barrier, and only behind it does one see what another has written
//   grid          all threadgroups; they do not see each other
//   device        memory of the GPU, where MLX arrays are; `queries[i]` counts elements, not bytes
//
// Where things are (every array is contiguous, the last axis fastest)
//   queries       [rows, HEADS, HEAD_SIZE]                not scaled yet
//   keys, values  [slots, KV_HEADS, HEAD_SIZE]            slot = page id * PAGE_SIZE + offset in the page
//   page_tables   [rows, pages]                           page ids, of which a row uses as many as its context fills
//   context_lengths [rows]                                how many tokens, from the first on, a row may see
//   out           [rows, HEADS, HEAD_SIZE]                of type T
// Query heads share KV heads: head h reads KV head h / QUERIES_PER_KV. A page may be in many tables: it is only read.
//
// The softmax takes one pass over the keys ("online"): `highest` is the highest score so far, `total` the sum of
// exp(score - highest), `sum` the same sum with every weight times its value. When a higher score comes, all that was
// summed so far shrinks by exp(old highest - new highest). At the end, sum / total is the answer. Two such triples over
// different keys merge in the same way, so the keys can be shared out. Sources: Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022.
//
// What a row may not see never enters its sums, not even times 0: it might be NaN, and 0 * NaN is NaN. What no row of a
// threadgroup may see is not even read. Lines marked "guard" keep an index inside its array; page ids are checked in
// Python before a launch.
//
// The file is cut into sections at lines that begin with four slashes (minivllm/metal/source.py). MLX writes a
// signature around a body: a name that is declared nowhere is an array, a constant, or a thread's place in the grid.

//// header

// Elements of a head are dealt to the lanes like cards: lane l holds elements l, l + 32, l + 64, ... so that lanes side
// by side read elements side by side.
#define LANES 32
#define PER_LANE ((HEAD_SIZE + LANES - 1) / LANES)
#define ELEMENT(i) (lane + LANES * (i))
// The last round is short when a head is not a multiple of 32 (80); for the others this is true at compile time.
#define IN_HEAD(d) (HEAD_SIZE % LANES == 0 || (d) < HEAD_SIZE)
#define QUERIES_PER_KV (HEADS / KV_HEADS)
#define SCALE (1 / sqrt(float(HEAD_SIZE)))

//// header: plain

// Element d of a key or value; `at` is slot * KV_HEADS + KV head.
#define KEY(at, d) float(keys[(at) * HEAD_SIZE + (d)])
#define VALUE(at, d) float(values[(at) * HEAD_SIZE + (d)])

//// header: quantized

// Pages as mx.quantize writes them: each group of QUANT_GROUP elements of a head has a scale and a bias, and an element
// is scale * number + bias with a number of BITS bits, the first one in the lowest bits of a 32-bit word.
#define PER_WORD (32 / BITS)
#define WORD(at, d) ((at) * (HEAD_SIZE / PER_WORD) + (d) / PER_WORD)
#define GROUP(at, d) ((at) * (HEAD_SIZE / QUANT_GROUP) + (d) / QUANT_GROUP)
#define NUMBER(word, d) float(((word) >> ((d) % PER_WORD * BITS)) & ((1u << BITS) - 1))
#define KEY(at, d) (float(key_scales[GROUP(at, d)]) * NUMBER(keys[WORD(at, d)], d) + float(key_biases[GROUP(at, d)]))
#define VALUE(at, d) \
    (float(value_scales[GROUP(at, d)]) * NUMBER(values[WORD(at, d)], d) + float(value_biases[GROUP(at, d)]))

//// body: decode

// One query row and one head for each threadgroup. Its SIMD groups take the pages of the row in turn:
//
//     page of the row     0   1   2   3   4   5   6
//     SIMD group          0   1   2   3   0   1   2        4 SIMD groups, no splits
//
// With few rows most of the GPU would idle: then the row's pages are dealt to the SIMD groups of several threadgroups,
// its splits. Each writes the answer over its own pages and the logarithm of its total; the merge kernel does the rest.
const int head = threadgroup_position_in_grid.x;
const int row = threadgroup_position_in_grid.y;
const int split = threadgroup_position_in_grid.z;
const int rows = threadgroups_per_grid.y;
const int group = simdgroup_index_in_threadgroup;
const int lane = thread_index_in_simdgroup;

const int context = context_lengths[row];
const int pages = (context + PAGE_SIZE - 1) / PAGE_SIZE;
const size_t first_element = (size_t(row) * HEADS + head) * HEAD_SIZE;

float q[PER_LANE] = {};  // {} is all zeros
float sum[PER_LANE] = {};
for (int i = 0; i < PER_LANE; ++i) {
    if (IN_HEAD(ELEMENT(i))) {  // guard
        q[i] = SCALE * float(queries[first_element + ELEMENT(i)]);
    }
}
float highest = -INFINITY;
float total = 0;

const int stride = SIMD_GROUPS * threadgroups_per_grid.z;
for (int page = split * SIMD_GROUPS + group; page < pages; page += stride) {  // guard
    const size_t first_slot = size_t(page_tables[row * page_tables_shape[1] + page]) * PAGE_SIZE;
    const int tokens = min(PAGE_SIZE, context - page * PAGE_SIZE);  // guard
    for (int token = 0; token < tokens; ++token) {
        const size_t at = (first_slot + token) * KV_HEADS + head / QUERIES_PER_KV;
        float score = 0;
        for (int i = 0; i < PER_LANE; ++i) {
            if (IN_HEAD(ELEMENT(i))) {  // guard
                score += q[i] * KEY(at, ELEMENT(i));
            }
        }
        score = simd_sum(score);
        const float new_highest = max(highest, score);
        const float shrink = exp(highest - new_highest);  // the first time exp(-infinity), which is 0
        const float weight = exp(score - new_highest);
        highest = new_highest;
        total = total * shrink + weight;
        for (int i = 0; i < PER_LANE; ++i) {
            if (IN_HEAD(ELEMENT(i))) {  // guard
                sum[i] = sum[i] * shrink + weight * VALUE(at, ELEMENT(i));
            }
        }
    }
}

// The SIMD groups merge. Each lays down what it has; behind the barrier every thread may read all of it.
threadgroup float highest_of[SIMD_GROUPS];
threadgroup float total_of[SIMD_GROUPS];
threadgroup float sum_of[SIMD_GROUPS * HEAD_SIZE];
if (lane == 0) {
    highest_of[group] = highest;
    total_of[group] = total;
}
for (int i = 0; i < PER_LANE; ++i) {
    if (IN_HEAD(ELEMENT(i))) {  // guard
        sum_of[group * HEAD_SIZE + ELEMENT(i)] = sum[i];
    }
}
threadgroup_barrier(mem_flags::mem_threadgroup);

float highest_of_all = -INFINITY;
for (int other = 0; other < SIMD_GROUPS; ++other) {
    highest_of_all = max(highest_of_all, highest_of[other]);
}
float share[SIMD_GROUPS];
float total_of_all = 0;
for (int other = 0; other < SIMD_GROUPS; ++other) {
    // A SIMD group without a page has total 0 and highest -infinity; -infinity - -infinity would be NaN.
    share[other] = total_of[other] == 0 ? 0 : exp(highest_of[other] - highest_of_all);
    total_of_all += share[other] * total_of[other];
}
const size_t answer = (size_t(split) * rows + row) * HEADS + head;
for (int d = thread_index_in_threadgroup; d < HEAD_SIZE; d += SIMD_GROUPS * LANES) {  // guard
    float x = 0;
    for (int other = 0; other < SIMD_GROUPS; ++other) {
        x += share[other] * sum_of[other * HEAD_SIZE + d];
    }
    out[answer * HEAD_SIZE + d] = T(total_of_all == 0 ? 0 : x / total_of_all);
}
if (thread_index_in_threadgroup == 0) {
    log_totals[answer] = total_of_all == 0 ? -INFINITY : highest_of_all + log(total_of_all);
}

//// body: merge

// Merges the splits of one row and head: partial [splits, rows, HEADS, HEAD_SIZE] weighted by log_totals [splits, rows,
// HEADS]. A split without pages has -infinity there, so its weight is 0, and zeros in `partial`.
const int head = threadgroup_position_in_grid.x;
const int row = threadgroup_position_in_grid.y;
const int lane = thread_index_in_simdgroup;
const int splits = log_totals_shape[0];
const size_t stride = size_t(log_totals_shape[1]) * HEADS;
const size_t answer = size_t(row) * HEADS + head;

float highest = -INFINITY;
for (int split = 0; split < splits; ++split) {  // guard
    highest = max(highest, log_totals[split * stride + answer]);
}
float total = 0;
float sum[PER_LANE] = {};
for (int split = 0; split < splits; ++split) {  // guard
    const size_t part = split * stride + answer;
    const float weight = exp(log_totals[part] - highest);
    total += weight;
    for (int i = 0; i < PER_LANE; ++i) {
        if (IN_HEAD(ELEMENT(i))) {  // guard
            sum[i] += weight * partial[part * HEAD_SIZE + ELEMENT(i)];
        }
    }
}
for (int i = 0; i < PER_LANE; ++i) {
    if (IN_HEAD(ELEMENT(i))) {  // guard
        out[answer * HEAD_SIZE + ELEMENT(i)] = T(sum[i] / total);
    }
}

//// body: prefill

// The last rows of one sequence: row r is at position start + r and sees positions 0 to start + r. Many rows use the
// same keys, so a threadgroup fetches a tile of keys once, into memory that its threads share, for TILE_QUERIES
// queries. Rows and the query heads of one KV head are counted through as queries of that KV head:
//
//     query     0         1         2         3         4         5          (3 heads for each KV head)
//     is        row 0     row 0     row 0     row 1     row 1     row 1
//               head 0    head 1    head 2    head 0    head 1    head 2
//
// First lanes are keys: each computes the score of its own key. Then lanes are elements of the head again; the weights
// go from the ones to the others through threadgroup memory. One tile holds keys first, then values.
#define TILE_KEYS LANES
#define TILE_QUERIES (SIMD_GROUPS * QUERIES_PER_GROUP)
#define THREADS (SIMD_GROUPS * LANES)
#define TILE_ROW (HEAD_SIZE + 1)  // one more than needed: lanes that read a column each hit a memory bank of their own
#define SLOT(position) (size_t(page_tables[(position) / PAGE_SIZE]) * PAGE_SIZE + (position) % PAGE_SIZE)
#define PLACE(query) (size_t((query) / QUERIES_PER_KV) * HEADS + kv_head * QUERIES_PER_KV + (query) % QUERIES_PER_KV)
const int kv_head = threadgroup_position_in_grid.x;
const int first_query = threadgroup_position_in_grid.y * TILE_QUERIES;
const int thread_index = thread_index_in_threadgroup;
const int group = simdgroup_index_in_threadgroup;
const int lane = thread_index_in_simdgroup;
const int start = context_lengths[0] - queries_shape[0];
const int queries_of_head = queries_shape[0] * QUERIES_PER_KV;

threadgroup float tile[TILE_KEYS * TILE_ROW];
threadgroup float q[TILE_QUERIES * HEAD_SIZE];
threadgroup float weights[TILE_QUERIES * TILE_KEYS];

for (int n = thread_index; n < TILE_QUERIES * HEAD_SIZE; n += THREADS) {
    // The last tile may be short of queries: it computes its last one again, and drops what it got.
    const int query = min(first_query + n / HEAD_SIZE, queries_of_head - 1);  // guard
    q[n] = SCALE * float(queries[PLACE(query) * HEAD_SIZE + n % HEAD_SIZE]);
}

int context[QUERIES_PER_GROUP];  // how many positions each query of this SIMD group sees
float highest[QUERIES_PER_GROUP];
float total[QUERIES_PER_GROUP];
float sum[QUERIES_PER_GROUP][PER_LANE] = {};
for (int r = 0; r < QUERIES_PER_GROUP; ++r) {
    const int query = min(first_query + group * QUERIES_PER_GROUP + r, queries_of_head - 1);
    context[r] = start + query / QUERIES_PER_KV + 1;
    highest[r] = -INFINITY;
    total[r] = 0;
}
const int longest = start + min(first_query + TILE_QUERIES - 1, queries_of_head - 1) / QUERIES_PER_KV + 1;  // guard

for (int first = 0; first < longest; first += TILE_KEYS) {
    const int tokens = min(TILE_KEYS, longest - first);  // guard
    for (int n = thread_index; n < tokens * HEAD_SIZE; n += THREADS) {
        const size_t at = SLOT(first + n / HEAD_SIZE) * KV_HEADS + kv_head;
        tile[n / HEAD_SIZE * TILE_ROW + n % HEAD_SIZE] = KEY(at, n % HEAD_SIZE);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the keys (at first the queries too) are there

    float scores[QUERIES_PER_GROUP] = {};
    if (lane < tokens) {  // guard
        for (int d = 0; d < HEAD_SIZE; ++d) {
            const float k = tile[lane * TILE_ROW + d];
            for (int r = 0; r < QUERIES_PER_GROUP; ++r) {
                scores[r] += q[(group * QUERIES_PER_GROUP + r) * HEAD_SIZE + d] * k;
            }
        }
    }
    for (int r = 0; r < QUERIES_PER_GROUP; ++r) {
        const bool visible = first + lane < context[r];
        const float new_highest = max(highest[r], simd_max(visible ? scores[r] : -INFINITY));
        const float shrink = exp(highest[r] - new_highest);
        const float weight = visible ? exp(scores[r] - new_highest) : 0;
        highest[r] = new_highest;
        total[r] = total[r] * shrink + simd_sum(weight);
        for (int i = 0; i < PER_LANE; ++i) {
            sum[r][i] *= shrink;
        }
        weights[(group * QUERIES_PER_GROUP + r) * TILE_KEYS + lane] = weight;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // nobody needs the keys any more, and the weights are there

    for (int n = thread_index; n < tokens * HEAD_SIZE; n += THREADS) {
        const size_t at = SLOT(first + n / HEAD_SIZE) * KV_HEADS + kv_head;
        tile[n / HEAD_SIZE * TILE_ROW + n % HEAD_SIZE] = VALUE(at, n % HEAD_SIZE);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // the values are there

    for (int r = 0; r < QUERIES_PER_GROUP; ++r) {
        const int seen = min(tokens, context[r] - first);  // a later value times its weight of 0 might be NaN
        for (int token = 0; token < seen; ++token) {
            const float weight = weights[(group * QUERIES_PER_GROUP + r) * TILE_KEYS + token];
            for (int i = 0; i < PER_LANE; ++i) {
                if (IN_HEAD(ELEMENT(i))) {  // guard
                    sum[r][i] += weight * tile[token * TILE_ROW + ELEMENT(i)];
                }
            }
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // nobody needs the values any more
}

for (int r = 0; r < QUERIES_PER_GROUP; ++r) {
    const int query = first_query + group * QUERIES_PER_GROUP + r;
    if (query < queries_of_head) {  // guard
        for (int i = 0; i < PER_LANE; ++i) {
            if (IN_HEAD(ELEMENT(i))) {  // guard
                out[PLACE(query) * HEAD_SIZE + ELEMENT(i)] = T(sum[r][i] / total[r]);
            }
        }
    }
}
