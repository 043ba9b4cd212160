/* SPDX-License-Identifier: Apache-2.0 */
// Products of matrices of any element types, in fp32. A block has 64 x 64 of the result and takes
// 16 steps of depth at a time, a thread 8 x 4 numbers. The numbers of the next steps are loaded
// while the current ones are multiplied.
//
// A step's 64 numbers of a factor are a line of shared memory, in groups of 4: group g of step s at
// g ^ (s / 4 * 2). A warp that stores 16 steps each of 8 lanes then writes to every bank once.
#include "kernels/cuda/product/product.cuh"

namespace
{
using namespace lh;

constexpr uint32_t SIDE = 64, STEPS = 16, THREADS = 128;
constexpr uint32_t ROWS = 8, COLUMNS = 4; // of a thread
constexpr uint32_t SHARES = SIDE * STEPS / FP32_GROUP / THREADS;

// Returns the position of a group in the line of a step.
__device__ inline uint32_t
place_of_group(uint32_t step, uint32_t group)
{
    return (group ^ (step / FP32_GROUP * 2)) * FP32_GROUP;
}

// A factor for a block: lanes are rows of a, or columns of b.
struct Factor {
    LhCudaMatrix matrix;
    uint32_t first_row, lane, lanes, depth;
    bool rows_are_steps;
};

__device__ inline Factor
factor_of(const LhCudaFactor &f, const Work &w, const Steps &s, uint32_t depth)
{
    Factor x = { f.matrix, first_row_of(f, w), 0, 0, depth, false };

    x.matrix.data += offset_of(f, w) + s.repeat * f.of_repeat;
    return x;
}

// Group @index of a thread's share of a factor: in one row, lane or step. One request of a warp
// covers all groups of a row.
struct Share {
    uint32_t row, column; // within the block's part
};

__device__ inline Share
share_of(bool rows_are_steps, uint32_t index)
{
    const uint32_t groups = (rows_are_steps ? SIDE : STEPS) / FP32_GROUP;
    const uint32_t group = threadIdx.x + index * THREADS;

    return { group / groups, group % groups * FP32_GROUP };
}

// Weight of a row of the factor. Exponents are integers before the multiplication, so long
// distances lose no precision.
__device__ inline float
weight_of(const LhCudaWeights &weights, uint32_t row)
{
    const int32_t index = static_cast<int32_t>(row);

    return exp2f(weights.by *
                 static_cast<float>(weights.falls ? weights.from - index : weights.from + index));
}

__device__ inline void
fetch(const Factor &f, uint32_t step, const LhCudaWeights *weights, float (&x)[SHARES][FP32_GROUP])
{
    const uint32_t rows = f.rows_are_steps ? f.depth : f.lanes;
    const uint32_t columns = f.rows_are_steps ? f.lanes : f.depth;

#pragma unroll
    for (uint32_t i = 0; i < SHARES; i++) {
        const Share at = share_of(f.rows_are_steps, i);
        const uint32_t row = at.row + (f.rows_are_steps ? step : f.lane);
        const uint32_t column = at.column + (f.rows_are_steps ? f.lane : step);
        const bool there = row < rows && column < columns;

#pragma unroll
        for (int k = 0; k < FP32_GROUP; k++)
            x[i][k] = 0.F;
        if (there)
            get_columns(f.matrix, f.first_row + row, column, count_at<FP32_GROUP>(column, columns),
                        x[i]);
        if (there && weights != nullptr) {
            const float weight = weight_of(*weights, row);

#pragma unroll
            for (int k = 0; k < FP32_GROUP; k++)
                x[i][k] *= weight;
        }
    }
}

__device__ inline void
deposit(bool rows_are_steps, const float (&x)[SHARES][FP32_GROUP], float (*to)[SIDE])
{
#pragma unroll
    for (uint32_t i = 0; i < SHARES; i++) {
        const Share at = share_of(rows_are_steps, i);

        if (rows_are_steps) {
            *reinterpret_cast<float4 *>(
                &to[at.row][place_of_group(at.row, at.column / FP32_GROUP)]) =
                make_float4(x[i][0], x[i][1], x[i][2], x[i][3]);
            continue;
        }
        const uint32_t lane = place_of_group(at.column, at.row / FP32_GROUP) + at.row % FP32_GROUP;

#pragma unroll
        for (int k = 0; k < FP32_GROUP; k++)
            to[at.column + k][lane] = x[i][k];
    }
}

struct Stage {
    float a[STEPS][SIDE], b[STEPS][SIDE];
};

__device__ inline void
multiply(const Stage &stage, uint32_t across, uint32_t along, float (&sums)[ROWS][COLUMNS])
{
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++) {
        const float *line_of_a = stage.a[step], *line_of_b = stage.b[step];
        const float4 a0 =
            *reinterpret_cast<const float4 *>(line_of_a + place_of_group(step, 2 * along));
        const float4 a1 =
            *reinterpret_cast<const float4 *>(line_of_a + place_of_group(step, 2 * along + 1));
        const float4 b =
            *reinterpret_cast<const float4 *>(line_of_b + place_of_group(step, across));
        const float rows[ROWS] = { a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w };
        const float columns[COLUMNS] = { b.x, b.y, b.z, b.w };

#pragma unroll
        for (uint32_t i = 0; i < ROWS; i++)
#pragma unroll
            for (uint32_t j = 0; j < COLUMNS; j++)
                sums[i][j] = fmaf(rows[i], columns[j], sums[i][j]);
    }
}

// Loads one term's factors, from steps @s on.
__device__ inline void
fetch_both(const LhCudaProduct &p, const Work &w, const Steps &s, float (&a)[SHARES][FP32_GROUP],
           float (&b)[SHARES][FP32_GROUP])
{
    const LhCudaTerm &term = p.terms[s.term];
    const uint32_t depth = extent(term.depth, w);
    Factor of_a = factor_of(term.a, w, s, depth), of_b = factor_of(term.b, w, s, depth);

    of_a.rows_are_steps = term.a_transposed;
    of_a.lane = w.row;
    of_a.lanes = w.rows;
    of_b.rows_are_steps = !term.b_transposed;
    of_b.lane = w.column;
    of_b.lanes = w.columns;
    fetch(of_a, s.step, term.weighed ? &term.weights : nullptr, a);
    fetch(of_b, s.step, nullptr, b);
}

__global__ void
__launch_bounds__(THREADS) product(const __grid_constant__ LhCudaProduct p)
{
    __shared__ Stage stage;
    const uint32_t across = threadIdx.x % (SIDE / COLUMNS), along = threadIdx.x / (SIDE / COLUMNS);
    float sums[ROWS][COLUMNS] = {}, a[SHARES][FP32_GROUP], b[SHARES][FP32_GROUP];
    Work w;

    if (!find_work(p, blockIdx.x, SIDE, SIDE, w))
        return;
    Steps s = begin(p, w);

    if (!is_over(p, s))
        fetch_both(p, w, s, a, b);
    while (!is_over(p, s)) {
        const LhCudaTerm &term = p.terms[s.term];

        __syncthreads(); // the previous numbers have been read
        deposit(term.a_transposed, a, stage.a);
        deposit(!term.b_transposed, b, stage.b);
        __syncthreads();
        go_on<STEPS>(p, w, s);
        if (!is_over(p, s))
            fetch_both(p, w, s, a, b);
        multiply(stage, across, along, sums);
    }
#pragma unroll
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t row = w.row + along * ROWS + i, column = w.column + across * COLUMNS;

        if (p.pairs.masked) {
            const Interval seen = seen_by(p.pairs, row);

#pragma unroll
            for (uint32_t j = 0; j < COLUMNS; j++)
                sums[i][j] = weigh_pair(p.pairs, seen, row, column + j, sums[i][j]);
        }
        store(p, w, row, column, sums[i]);
    }
}

bool
suits_tensor_cores(const LhCudaProduct &p)
{
    const LhCudaTerm &t = p.terms[0];
    const LhCudaMatrix &a = t.a.matrix, &b = t.b.matrix;

    return p.terms_count == 1 && !p.pairs.masked && !t.weighed && a.storage == b.storage &&
           a.storage != LH_STORAGE_FP32 && a.grouped && b.grouped &&
           !(t.a_transposed && t.b_transposed);
}
} // namespace

enum lh_status
lh_cuda_multiply(const LhCudaProduct *p, void *stream)
{
    const uint64_t tiles = has_uneven_rows(*p) ? 1 : p->tiles;
    const uint64_t blocks = static_cast<uint64_t>(row_blocks_of(*p, SIDE)) *
                            blocks_of(p->columns, *p, SIDE) * p->sequences * p->heads * tiles;

    if (suits_tensor_cores(*p))
        return p->terms[0].a.matrix.storage == LH_STORAGE_BF16 ? lh_cuda_multiply_bf16(p, stream)
                                                               : lh_cuda_multiply_fp16(p, stream);
    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        product<<<static_cast<uint32_t>(blocks), THREADS, 0, static_cast<cudaStream_t>(stream)>>>(
            *p);
    return launched();
}
