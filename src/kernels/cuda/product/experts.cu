/* SPDX-License-Identifier: Apache-2.0 */
// Dispatch of rows to experts, combine, and rows of tables: a block has a row, whose elements its
// threads process in groups. Sums have a fixed order, that of the rows.
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/product/experts.h"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 128;

enum { EXPERT, WEIGHT };

__device__ inline float
number_of(const LhCudaMatrix &m, uint32_t row, uint32_t column)
{
    return get(element_at(m, row_offset(m, row), row, column), m.storage);
}

__device__ inline void
set_number(const LhCudaMatrix &m, uint32_t row, uint32_t column, float x)
{
    put(element_at(m, row_offset(m, row), row, column), m.storage, x);
}

__device__ inline uint32_t
token_of(const LhCudaMatrix &m, uint32_t row)
{
    return *reinterpret_cast<const uint32_t *>(element_at(m, row_offset(m, row), row, 0));
}

// Returns the first place of an order whose key is at least @key.
__device__ inline uint32_t
find_first(const LhCudaSort &o, uint32_t key)
{
    uint32_t first = 0, end = o.count;

    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;

        if (o.keys[o.order[middle]] < key)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

// ---- route ----

// Choices of experts that do not exist are sorted last and ignored.
__global__ void
__launch_bounds__(THREADS) read_experts(const __grid_constant__ LhCudaRoute r)
{
    const uint32_t choice = blockIdx.x * THREADS + threadIdx.x;

    if (choice >= r.order.count)
        return;
    const float expert = number_of(r.route, choice, EXPERT);

    r.keys[choice] =
        expert >= 0.F && expert < r.experts ? static_cast<uint32_t>(expert) : r.experts;
}

__global__ void
__launch_bounds__(THREADS) find_places(const __grid_constant__ LhCudaRoute r)
{
    const uint32_t index = blockIdx.x * THREADS + threadIdx.x;

    if (r.places != nullptr && index < r.order.count)
        r.places[r.order.order[index]] = index;
    if (r.firsts != nullptr && index <= r.experts)
        r.firsts[index] = find_first(r.order, index);
}

// Returns the expert that follows @chosen, with logit @least, in the order of choices: by
// decreasing logit, equal ones by number.
__device__ inline uint32_t
choose_next(const LhCudaChoice &c, uint32_t row, uint32_t chosen, float least)
{
    uint32_t best = c.experts;
    float largest = 0.F;

    for (uint32_t e = threadIdx.x % WARP; e < c.experts; e += WARP) {
        const float x = number_of(c.logits, row, e);
        const bool free = chosen == c.experts || x < least || (x == least && e > chosen);

        if (free && (best == c.experts || x > largest)) {
            best = e;
            largest = x;
        }
    }
    for (uint32_t step = WARP / 2; step > 0; step /= 2) {
        const uint32_t other = __shfl_xor_sync(ALL_LANES, best, step);
        const float x = __shfl_xor_sync(ALL_LANES, largest, step);

        if (other != c.experts &&
            (best == c.experts || x > largest || (x == largest && other < best))) {
            best = other;
            largest = x;
        }
    }
    return best < c.experts ? best : 0; // 0 if NaNs leave no candidate
}

// One warp per row. Weights are first written as exponentials, then divided by their sum.
__global__ void
__launch_bounds__(THREADS) choose(const __grid_constant__ LhCudaChoice c)
{
    const uint32_t row = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    uint32_t chosen = c.experts;
    float logit = 0.F, most = 0.F, sum = 0.F;

    if (row >= c.count)
        return;
    for (uint32_t j = 0; j < c.choices; j++) {
        chosen = choose_next(c, row, chosen, logit);
        logit = number_of(c.logits, row, chosen);
        most = j == 0 ? logit : most;
        sum += expf(logit - most);
        if (threadIdx.x % WARP == 0)
            set_number(c.route, row * c.choices + j, EXPERT, static_cast<float>(chosen));
    }
    chosen = c.experts;
    for (uint32_t j = 0; j < c.choices; j++) {
        chosen = choose_next(c, row, chosen, logit);
        logit = number_of(c.logits, row, chosen);
        if (threadIdx.x % WARP == 0)
            set_number(c.route, row * c.choices + j, WEIGHT, expf(logit - most) / sum);
    }
}

// dlogit = weight (dweight - the sum of weight dweight) of the chosen, 0 of all others. One warp
// per row; a lane searches the row's choices for its expert.
__global__ void
__launch_bounds__(THREADS) choose_bwd(const __grid_constant__ LhCudaChoice c)
{
    const uint32_t row = blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    float sum = 0.F;

    if (row >= c.count)
        return;
    for (uint32_t i = row * c.choices; i < (row + 1) * c.choices; i++)
        sum += number_of(c.route, i, WEIGHT) * number_of(c.dweights, i, 0);
    for (uint32_t e = threadIdx.x % WARP; e < c.experts; e += WARP) {
        float x = 0.F;

        for (uint32_t i = row * c.choices; i < (row + 1) * c.choices; i++)
            if (number_of(c.route, i, EXPERT) == e)
                x += number_of(c.route, i, WEIGHT) * (number_of(c.dweights, i, 0) - sum);
        set_number(c.logits, row, e, x);
    }
}

// ---- dispatch and combine ----

template <int N>
__global__ void
__launch_bounds__(THREADS) dispatch(const __grid_constant__ LhCudaWay w)
{
    const uint32_t choice = blockIdx.x, place = w.places[choice];

    for (uint32_t column = threadIdx.x * N; column < w.width; column += THREADS * N) {
        float x[N];

        get_columns(w.rows, choice / w.choices, column, count_at<N>(column, w.width), x);
        put_columns(w.sorted, place, column, count_at<N>(column, w.width), x);
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS, 1) collect(const __grid_constant__ LhCudaWay w)
{
    const uint32_t row = blockIdx.x;

    for (uint32_t column = threadIdx.x * N; column < w.width; column += THREADS * N) {
        const int count = count_at<N>(column, w.width);
        float sum[N] = {}, x[N];

        if (w.adds)
            get_columns(w.rows, row, column, count, sum);
        for (uint32_t i = row * w.choices; i < (row + 1) * w.choices; i++) {
            const float factor = w.weighed ? number_of(w.route, i, WEIGHT) : 1.F;

            get_columns(w.sorted, w.places[i], column, count, x);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] = fmaf(factor, x[k], sum[k]);
        }
        put_columns(w.rows, row, column, count, sum);
    }
}

// The gradient of a copy is its weight times the row's gradient; that of the weight is the sum of
// the products of copy and row's gradient.
template <int N>
__global__ void
__launch_bounds__(THREADS) collect_bwd(const __grid_constant__ LhCudaWay w)
{
    const uint32_t choice = blockIdx.x, place = w.places[choice];
    const float weight = number_of(w.route, choice, WEIGHT);
    float sum = 0.F;

    for (uint32_t column = threadIdx.x * N; column < w.width; column += THREADS * N) {
        const int count = count_at<N>(column, w.width);
        float x[N], dy[N];

        get_columns(w.rows, choice / w.choices, column, count, dy);
        get_columns(w.sorted, place, column, count, x);
#pragma unroll
        for (int k = 0; k < N; k++) {
            sum = fmaf(x[k], dy[k], sum);
            x[k] = weight * dy[k];
        }
        put_columns(w.result, place, column, count, x);
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        set_number(w.weights, choice, 0, sum);
}

// ---- tables ----

// Returns the table row of a token, or `count` if this rank has none.
__device__ inline uint32_t
index_of(const LhCudaEmbedding &e, uint32_t row)
{
    const uint64_t token = token_of(e.tokens, row), index = token - e.first;

    return token >= e.first && token < e.vocabulary && index < e.count
               ? static_cast<uint32_t>(index)
               : e.count;
}

template <int N>
__global__ void
__launch_bounds__(THREADS) embed(const __grid_constant__ LhCudaEmbedding e)
{
    const uint32_t index = index_of(e, blockIdx.x);

    for (uint32_t column = threadIdx.x * N; column < e.width; column += THREADS * N) {
        float x[N] = {};

        if (index < e.count)
            get_columns(e.table, index, column, count_at<N>(column, e.width), x);
        put_columns(e.rows, blockIdx.x, column, count_at<N>(column, e.width), x);
    }
}

__global__ void
__launch_bounds__(THREADS) read_tokens(const __grid_constant__ LhCudaEmbedding e)
{
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;

    if (row < e.rows_count)
        e.keys[row] = index_of(e, row);
}

// A block has a row of the table and sums the rows of its token in their order.
template <int N>
__global__ void
__launch_bounds__(THREADS) embed_bwd(const __grid_constant__ LhCudaEmbedding e)
{
    const uint32_t index = blockIdx.x;
    const uint32_t first = find_first(e.order, index);

    if (!e.starts && (first == e.order.count || e.keys[e.order.order[first]] != index))
        return;
    for (uint32_t column = threadIdx.x * N; column < e.width; column += THREADS * N) {
        const int count = count_at<N>(column, e.width);
        float sum[N] = {}, x[N];

        if (!e.starts)
            get_columns(e.table, index, column, count, sum);
        for (uint32_t i = first; i < e.order.count && e.keys[e.order.order[i]] == index; i++) {
            get_columns(e.rows, e.order.order[i], column, count, x);
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k] += x[k];
        }
        put_columns(e.table, index, column, count, sum);
    }
}

// ---- launches ----

// Launches @blocks blocks.
template <class Argument>
enum lh_status
launch(void (*kernel)(Argument), uint32_t blocks, const Argument &a, void *stream)
{
    if (blocks > 0)
        kernel<<<blocks, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(a);
    return launched();
}

uint32_t
blocks_for(uint64_t threads)
{
    return static_cast<uint32_t>((threads + THREADS - 1) / THREADS);
}

bool
any_fp32(const LhCudaWay &w)
{
    return is_fp32(w.rows.storage) || is_fp32(w.sorted.storage);
}

bool
any_fp32(const LhCudaEmbedding &e)
{
    return is_fp32(e.table.storage) || is_fp32(e.rows.storage);
}

constexpr uint32_t ROWS_OF_WARPS = THREADS / WARP;
} // namespace

enum lh_status
lh_cuda_route(const LhCudaRoute *r, void *stream)
{
    const uint32_t most = r->order.count > r->experts ? r->order.count : r->experts + 1;
    enum lh_status status = launch(read_experts, blocks_for(r->order.count), *r, stream);

    if (status == LH_STATUS_OK)
        status = lh_cuda_sort(&r->order, stream);
    return status != LH_STATUS_OK ? status : launch(find_places, blocks_for(most), *r, stream);
}

enum lh_status
lh_cuda_dispatch(const LhCudaWay *w, void *stream)
{
    return with_group(any_fp32(*w), [=](auto group) {
        return launch(dispatch<decltype(group)::value>, w->count * w->choices, *w, stream);
    });
}

enum lh_status
lh_cuda_collect(const LhCudaWay *w, void *stream)
{
    return with_group(any_fp32(*w), [=](auto group) {
        return launch(collect<decltype(group)::value>, w->count, *w, stream);
    });
}

enum lh_status
lh_cuda_collect_bwd(const LhCudaWay *w, void *stream)
{
    return with_group(any_fp32(*w) || is_fp32(w->result.storage), [=](auto group) {
        return launch(collect_bwd<decltype(group)::value>, w->count * w->choices, *w, stream);
    });
}

enum lh_status
lh_cuda_choose(const LhCudaChoice *c, void *stream)
{
    return launch(choose, (c->count + ROWS_OF_WARPS - 1) / ROWS_OF_WARPS, *c, stream);
}

enum lh_status
lh_cuda_choose_bwd(const LhCudaChoice *c, void *stream)
{
    return launch(choose_bwd, (c->count + ROWS_OF_WARPS - 1) / ROWS_OF_WARPS, *c, stream);
}

enum lh_status
lh_cuda_embed(const LhCudaEmbedding *e, void *stream)
{
    return with_group(any_fp32(*e), [=](auto group) {
        return launch(embed<decltype(group)::value>, e->rows_count, *e, stream);
    });
}

enum lh_status
lh_cuda_embed_bwd(const LhCudaEmbedding *e, void *stream)
{
    enum lh_status status = launch(read_tokens, blocks_for(e->rows_count), *e, stream);

    if (status == LH_STATUS_OK)
        status = lh_cuda_sort(&e->order, stream);
    if (status != LH_STATUS_OK)
        return status;
    return with_group(any_fp32(*e), [=](auto group) {
        return launch(embed_bwd<decltype(group)::value>, e->count, *e, stream);
    });
}
