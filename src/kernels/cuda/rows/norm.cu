/* SPDX-License-Identifier: Apache-2.0 */
// Sums over rows and columns: a block has a row and makes one pass per sum; repeated reads hit the
// cache.
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/rows/lines.cuh"
#include "kernels/cuda/rows/norm.h"

namespace
{
using namespace lh;

constexpr uint32_t THREADS = 256;

// Distance of a thread's consecutive groups of columns.
template <int N> constexpr uint32_t STEP = THREADS *N;

__device__ inline float
number_of(const LhCudaMatrix &m, uint32_t row, uint32_t column)
{
    return get(element_at(m, row_offset(m, row), row, column), m.storage);
}

// ---- norms ----

// Statistics of a row: weights apply to (x - mean) scale.
struct Row {
    float mean, scale;
};

template <int N>
__device__ inline Row
read_row(const LhCudaNorm &n, uint32_t row)
{
    float sum = 0.F, squares = 0.F, x[N];

    for (uint32_t column = threadIdx.x * N; n.centred && column < n.width; column += STEP<N>) {
        get_columns(n.x, row, column, count_at<N>(column, n.width), x);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += x[i];
    }
    const float mean = n.centred ? block_sum<THREADS>(sum) / n.width : 0.F;

    for (uint32_t column = threadIdx.x * N; column < n.width; column += STEP<N>) {
        const int count = count_at<N>(column, n.width);

        get_columns(n.x, row, column, count, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            squares += i < count ? (x[i] - mean) * (x[i] - mean) : 0.F;
    }
    squares = block_sum<THREADS>(squares) / n.width;
    return { mean, 1.F / sqrtf(squares + n.epsilon) };
}

template <int N>
__global__ void
__launch_bounds__(THREADS) norm(const __grid_constant__ LhCudaNorm n)
{
    const Row row = read_row<N>(n, blockIdx.x);

    for (uint32_t column = threadIdx.x * N; column < n.width; column += STEP<N>) {
        const int count = count_at<N>(column, n.width);
        float x[N], w[N], bias[N] = {};

        get_columns(n.x, blockIdx.x, column, count, x);
        get_columns(n.w, 0, column, count, w);
        if (n.centred)
            get_columns(n.w, 0, n.width + column, count, bias);
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = fmaf((x[i] - row.mean) * row.scale, w[i], bias[i]);
        put_columns(n.y, blockIdx.x, column, count, x);
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS) find_rows(const __grid_constant__ LhCudaNorm n)
{
    const Row row = read_row<N>(n, blockIdx.x);

    if (threadIdx.x == 0) {
        n.stats[2 * static_cast<uint64_t>(blockIdx.x)] = row.mean;
        n.stats[2 * static_cast<uint64_t>(blockIdx.x) + 1] = row.scale;
    }
}

__device__ inline Row
row_of(const LhCudaNorm &n, uint32_t row)
{
    return { n.stats[2 * static_cast<uint64_t>(row)], n.stats[2 * static_cast<uint64_t>(row) + 1] };
}

__device__ inline uint32_t
chunk_of(uint32_t rows)
{
    return (rows + LH_CUDA_CHUNKS - 1) / LH_CUDA_CHUNKS;
}

// A thread has a group of columns of a chunk of rows and sums their contributions to the gradients
// of weights and bias, in fp32 for any x and dy.
__global__ void
__launch_bounds__(THREADS) sum_chunk(const __grid_constant__ LhCudaNorm n)
{
    const uint32_t column = (blockIdx.x * THREADS + threadIdx.x) * FP32_GROUP;
    const uint32_t first = blockIdx.y * chunk_of(n.rows);
    const uint32_t end = min(first + chunk_of(n.rows), n.rows);
    float weights[FP32_GROUP] = {}, bias[FP32_GROUP] = {}, x[FP32_GROUP], dy[FP32_GROUP];

    if (column >= n.width)
        return;
    const int count = count_at<FP32_GROUP>(column, n.width);

    for (uint32_t i = first; i < end; i++) {
        const Row row = row_of(n, i);

        get_columns(n.x, i, column, count, x);
        get_columns(n.y, i, column, count, dy);
#pragma unroll
        for (int k = 0; k < FP32_GROUP; k++) {
            weights[k] = fmaf(dy[k], (x[k] - row.mean) * row.scale, weights[k]);
            bias[k] += dy[k];
        }
    }
    float4 *to = reinterpret_cast<float4 *>(n.partial) +
                 static_cast<uint64_t>(blockIdx.y) * 2 * n.groups + column / FP32_GROUP;

    to[0] = make_float4(weights[0], weights[1], weights[2], weights[3]);
    to[n.groups] = make_float4(bias[0], bias[1], bias[2], bias[3]);
}

// A thread has an element of dw.
__global__ void
__launch_bounds__(THREADS) sum_chunks(const __grid_constant__ LhCudaNorm n)
{
    const uint32_t column = blockIdx.x * THREADS + threadIdx.x;
    const uint32_t chunk = chunk_of(n.rows), chunks = (n.rows + chunk - 1) / chunk;

    if (column >= (n.centred ? 2 : 1) * n.width)
        return;
    const uint32_t place = column < n.width ? column : n.groups * FP32_GROUP + column - n.width;
    unsigned char *at = element_at(n.dw, row_offset(n.dw, 0), 0, column);
    float sum = n.starts ? 0.F : get(at, n.dw.storage);

    for (uint32_t i = 0; i < chunks; i++)
        sum += n.partial[static_cast<uint64_t>(i) * 2 * n.groups * FP32_GROUP + place];
    put(at, n.dw.storage, sum);
}

// Reads x, normalised, and dy w.
template <int N>
__device__ inline void
get_gradient(const LhCudaNorm &n, const Row &row, uint32_t column, int count, float (&x)[N],
             float (&dy)[N])
{
    float w[N];

    get_columns(n.x, blockIdx.x, column, count, x);
    get_columns(n.y, blockIdx.x, column, count, dy);
    get_columns(n.w, 0, column, count, w);
#pragma unroll
    for (int i = 0; i < N; i++) {
        x[i] = (x[i] - row.mean) * row.scale;
        dy[i] *= w[i];
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS) norm_bwd(const __grid_constant__ LhCudaNorm n)
{
    const Row row = row_of(n, blockIdx.x);
    float dot = 0.F, sum = 0.F, x[N], dy[N];

    for (uint32_t column = threadIdx.x * N; column < n.width; column += STEP<N>) {
        get_gradient(n, row, column, count_at<N>(column, n.width), x, dy);
#pragma unroll
        for (int i = 0; i < N; i++) {
            dot = fmaf(dy[i], x[i], dot);
            sum += dy[i];
        }
    }
    dot = block_sum<THREADS>(dot) / n.width;
    sum = n.centred ? block_sum<THREADS>(sum) / n.width : 0.F;
    for (uint32_t column = threadIdx.x * N; column < n.width; column += STEP<N>) {
        const int count = count_at<N>(column, n.width);
        float before[N] = {};

        get_gradient(n, row, column, count, x, dy);
        if (n.adds)
            get_columns(n.dx, blockIdx.x, column, count, before);
#pragma unroll
        for (int i = 0; i < N; i++)
            dy[i] = before[i] + row.scale * (dy[i] - sum - x[i] * dot);
        put_columns(n.dx, blockIdx.x, column, count, dy);
    }
}

// ---- the loss ----

enum { AT_MOST, AT_SUM, AT_TARGET, NUMBERS };

// Finds a row's target. Returns false if it is not in this rank's columns.
__device__ inline bool
find_target(const LhCudaLoss &l, uint32_t row, uint64_t *token, uint32_t *column)
{
    *token = *reinterpret_cast<const uint32_t *>(
        element_at(l.tokens, row_offset(l.tokens, row), row, 0));
    *column = static_cast<uint32_t>(*token - l.first);
    return *token >= l.first && *token < l.vocabulary && *token - l.first < l.width;
}

template <int N>
__global__ void
__launch_bounds__(THREADS) loss_stats(const __grid_constant__ LhCudaLoss l)
{
    float most = -CUDART_INF_F, sum = 0.F, x[N];
    uint32_t target;
    uint64_t token;

    for (uint32_t column = threadIdx.x * N; column < l.columns; column += STEP<N>) {
        const int count = count_at<N>(column, l.columns);

        get_columns(l.logits, blockIdx.x, column, count, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            most = i < count ? fmaxf(most, x[i]) : most;
    }
    most = block_max<THREADS>(most);
    for (uint32_t column = threadIdx.x * N; column < l.columns; column += STEP<N>) {
        const int count = count_at<N>(column, l.columns);

        get_columns(l.logits, blockIdx.x, column, count, x);
#pragma unroll
        for (int i = 0; i < N; i++)
            sum += i < count ? expf(x[i] - most) : 0.F;
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x != 0)
        return;
    const bool here = find_target(l, blockIdx.x, &token, &target);
    const float numbers[] = { most, sum,
                              here ? number_of(l.logits, blockIdx.x, target) : -CUDART_INF_F };

    for (uint32_t i = 0; i < NUMBERS; i++)
        put(element_at(l.numbers, row_offset(l.numbers, blockIdx.x), blockIdx.x, i),
            l.numbers.storage, numbers[i]);
}

// Merges the numbers of a row from all ranks.
__device__ inline void
join_stats(const LhCudaLoss &l, uint32_t row, float (&all)[NUMBERS])
{
    all[AT_MOST] = all[AT_TARGET] = -CUDART_INF_F;
    all[AT_SUM] = 0.F;
    for (uint32_t i = 0; i < l.members; i++) {
        all[AT_MOST] = fmaxf(all[AT_MOST], number_of(l.numbers, i * l.rows + row, AT_MOST));
        all[AT_TARGET] = fmaxf(all[AT_TARGET], number_of(l.numbers, i * l.rows + row, AT_TARGET));
    }
    for (uint32_t i = 0; i < l.members; i++)
        all[AT_SUM] += number_of(l.numbers, i * l.rows + row, AT_SUM) *
                       expf(number_of(l.numbers, i * l.rows + row, AT_MOST) - all[AT_MOST]);
}

template <int N>
__global__ void
__launch_bounds__(THREADS) loss(const __grid_constant__ LhCudaLoss l)
{
    float stats[NUMBERS], x[N];
    uint32_t target;
    uint64_t token;
    const bool here = find_target(l, blockIdx.x, &token, &target);
    const float weight = token < l.vocabulary ? l.weight : 0.F;

    join_stats(l, blockIdx.x, stats);
    for (uint32_t column = threadIdx.x * N; column < l.width; column += STEP<N>) {
        const int count = count_at<N>(column, l.width);

        get_columns(l.logits, blockIdx.x, column, count, x);
#pragma unroll
        for (int i = 0; i < N; i++) {
            const bool counts = weight > 0.F && column + i < l.columns;

            x[i] = counts ? expf(x[i] - stats[AT_MOST]) / stats[AT_SUM] : 0.F;
            x[i] = weight * (x[i] - (here && column + i == target ? 1.F : 0.F));
        }
        put_columns(l.dlogits, blockIdx.x, column, count, x);
    }
    if (threadIdx.x == 0)
        l.losses[blockIdx.x] =
            weight > 0.F ? weight * (stats[AT_MOST] + logf(stats[AT_SUM]) - stats[AT_TARGET]) : 0.F;
}

// Sums numbers in one block: each thread every THREADS-th, then all threads.
__device__ inline float
sum_of(const float *numbers, uint32_t count)
{
    float sum = 0.F;

    for (uint32_t i = threadIdx.x; i < count; i += THREADS)
        sum += numbers[i];
    return block_sum<THREADS>(sum);
}

__global__ void
__launch_bounds__(THREADS) sum_losses(const __grid_constant__ LhCudaLoss l)
{
    const float sum = sum_of(l.losses, l.rows);
    unsigned char *at = element_at(l.value, row_offset(l.value, 0), 0, 0);

    if (threadIdx.x == 0)
        put(at, l.value.storage, (l.starts ? 0.F : get(at, l.value.storage)) + sum);
}

// ---- the norm of gradients ----

template <int N>
__global__ void
__launch_bounds__(THREADS, 1) sum_squares(const __grid_constant__ LhCudaGradNorm g)
{
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * STEP<N>;
    float sum = 0.F, x[N];

    for (uint64_t at = (static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x) * N;
         at < g.count; at += step) {
        float squares = 0.F;

        load(g.gradient, at, count_at<N>(at, g.count), x);
#pragma unroll
        for (int i = 0; i < N; i++)
            squares = fmaf(x[i], x[i], squares);
        sum += squares;
    }
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        g.partial[blockIdx.x] = sum;
}

__global__ void
__launch_bounds__(THREADS) sum_norms(const __grid_constant__ LhCudaGradNorm g, uint32_t blocks)
{
    const float sum = sum_of(g.partial, blocks);

    if (threadIdx.x == 0)
        *g.norm = (g.starts ? 0.F : *g.norm) + sum;
}

// Launches kernels with one block per row.
template <class Argument>
enum lh_status
launch(void (*kernel)(Argument), const Argument &a, void *stream)
{
    if (a.rows > 0)
        kernel<<<a.rows, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(a);
    return launched();
}
} // namespace

enum lh_status
lh_cuda_norm(const LhCudaNorm *n, void *stream)
{
    const bool any_fp32 = is_fp32(n->x.storage) || is_fp32(n->w.storage) || is_fp32(n->y.storage);

    return with_group(any_fp32,
                      [=](auto group) { return launch(norm<decltype(group)::value>, *n, stream); });
}

// dx may overwrite dy, so the kernels that read dy are enqueued first.
enum lh_status
lh_cuda_norm_bwd(const LhCudaNorm *n, void *stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);
    const uint32_t chunk = (n->rows + LH_CUDA_CHUNKS - 1) / LH_CUDA_CHUNKS;
    const uint32_t columns = (n->centred ? 2 : 1) * n->width;
    const bool any_fp32 = is_fp32(n->x.storage) || is_fp32(n->w.storage) || is_fp32(n->y.storage) ||
                          is_fp32(n->dx.storage);

    if (n->rows == 0)
        return LH_STATUS_OK;
    const dim3 chunks((n->width + STEP<FP32_GROUP> - 1) / STEP<FP32_GROUP>,
                      (n->rows + chunk - 1) / chunk);

    return with_group(any_fp32, [=](auto group) {
        constexpr int N = decltype(group)::value;

        find_rows<N><<<n->rows, THREADS, 0, s>>>(*n);
        if (!n->frozen) {
            sum_chunk<<<chunks, THREADS, 0, s>>>(*n);
            sum_chunks<<<(columns + THREADS - 1) / THREADS, THREADS, 0, s>>>(*n);
        }
        norm_bwd<N><<<n->rows, THREADS, 0, s>>>(*n);
        return launched();
    });
}

enum lh_status
lh_cuda_loss_stats(const LhCudaLoss *l, void *stream)
{
    return with_group(is_fp32(l->logits.storage), [=](auto group) {
        return launch(loss_stats<decltype(group)::value>, *l, stream);
    });
}

enum lh_status
lh_cuda_loss(const LhCudaLoss *l, void *stream)
{
    const bool any_fp32 = is_fp32(l->logits.storage) || is_fp32(l->dlogits.storage);

    with_group(any_fp32,
               [=](auto group) { return launch(loss<decltype(group)::value>, *l, stream); });
    sum_losses<<<1, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*l);
    return launched();
}

enum lh_status
lh_cuda_grad_norm(const LhCudaGradNorm *g, void *stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);

    return with_group(is_fp32(g->gradient.storage), [=](auto group) {
        constexpr int N = decltype(group)::value;
        const uint64_t most = (g->count + STEP<N> - 1) / STEP<N>;
        const uint32_t blocks =
            most < LH_CUDA_NORM_BLOCKS ? static_cast<uint32_t>(most) : LH_CUDA_NORM_BLOCKS;

        if (blocks > 0)
            sum_squares<N><<<blocks, THREADS, 0, s>>>(*g);
        sum_norms<<<1, THREADS, 0, s>>>(*g, blocks);
        return launched();
    });
}
