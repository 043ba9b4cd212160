// Products of matrices of any element types, in fp32: a block has 64 x 64 of the result and takes
// 16 steps of depth at a time, a thread 8 x 4 numbers. The numbers of the next steps come from
// memory while those of these are multiplied.
//
// A step's 64 numbers of a factor lie in shared memory so that neither a thread's 8 numbers of a
// row nor one number each of 32 rows meet in a bank: of every 8, the first 4 lie in the first half
// of the line and the others in the second, which is turned by 16.
#include "kernels/cuda/product.cuh"

namespace
{
using namespace lh;

constexpr uint32_t SIDE = 64, STEPS = 16, THREADS = 128;
constexpr uint32_t LANE_GROUPS = SIDE / GROUP, HALF = GROUP / 2;
constexpr uint32_t ROWS = 8, COLUMNS = 4; // of a thread

// Where half @half of group @group lies in a line.
__device__ inline uint32_t
half_at(uint32_t group, uint32_t half)
{
    return half * (SIDE / 2) + (group * HALF + half * (SIDE / 4)) % (SIDE / 2);
}

// One factor as a block sees it: lanes are rows of a, or columns of b.
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

// The group of numbers that a thread brings of a factor: of one row, lane or step.
struct Share {
    uint32_t row, column; // within the block's part
};

__device__ inline Share
share_of(bool rows_are_steps)
{
    if (rows_are_steps)
        return { threadIdx.x / LANE_GROUPS, threadIdx.x % LANE_GROUPS * GROUP };
    return { threadIdx.x % SIDE, threadIdx.x / SIDE * GROUP };
}

__device__ inline void
fetch(const Factor &f, uint32_t step, float (&x)[GROUP])
{
    const Share at = share_of(f.rows_are_steps);
    const uint32_t row = at.row + (f.rows_are_steps ? step : f.lane);
    const uint32_t column = at.column + (f.rows_are_steps ? f.lane : step);
    const uint32_t rows = f.rows_are_steps ? f.depth : f.lanes;
    const uint32_t columns = f.rows_are_steps ? f.lanes : f.depth;

    if (row >= rows || column >= columns) {
#pragma unroll
        for (int i = 0; i < GROUP; i++)
            x[i] = 0.F;
        return;
    }
    get_columns(f.matrix, f.first_row + row, column,
                static_cast<int>(min(columns - column, static_cast<uint32_t>(GROUP))), x);
}

// Exponents are whole numbers until they are multiplied, so that long distances lose nothing.
__device__ inline void
weigh(const LhCudaWeights &weights, const Factor &f, uint32_t step, float (&x)[GROUP])
{
    if (weights.of == LH_CUDA_WEIGH_NOTHING)
        return;
    const bool of_steps = weights.of == LH_CUDA_WEIGH_STEPS;
    const bool of_rows = of_steps == f.rows_are_steps; // of the factor's rows, not its columns
    const Share at = share_of(f.rows_are_steps);
    const uint32_t first = (of_rows ? at.row : at.column) + (of_steps ? step : f.lane);

#pragma unroll
    for (int i = 0; i < GROUP; i++) {
        const int32_t index = static_cast<int32_t>(first) + (of_rows ? 0 : i);

        x[i] *= exp2f(weights.by * static_cast<float>(weights.falls ? weights.from - index
                                                                    : weights.from + index));
    }
}

__device__ inline void
deposit(bool rows_are_steps, const float (&x)[GROUP], float (*to)[SIDE])
{
    const Share at = share_of(rows_are_steps);

    if (rows_are_steps) {
#pragma unroll
        for (int half = 0; half < 2; half++)
            *reinterpret_cast<float4 *>(&to[at.row][half_at(at.column / GROUP, half)]) =
                make_float4(x[4 * half], x[4 * half + 1], x[4 * half + 2], x[4 * half + 3]);
        return;
    }
    const uint32_t lane = half_at(at.row / GROUP, at.row % GROUP / HALF) + at.row % HALF;

#pragma unroll
    for (int i = 0; i < GROUP; i++)
        to[at.column + i][lane] = x[i];
}

struct Stage {
    float a[STEPS][SIDE], b[STEPS][SIDE];
};

__device__ inline void
multiply(const Stage &stage, uint32_t across, uint32_t along, float (&sums)[ROWS][COLUMNS])
{
#pragma unroll
    for (uint32_t step = 0; step < STEPS; step++) {
        const float4 a0 = *reinterpret_cast<const float4 *>(&stage.a[step][half_at(along, 0)]);
        const float4 a1 = *reinterpret_cast<const float4 *>(&stage.a[step][half_at(along, 1)]);
        const float4 b = *reinterpret_cast<const float4 *>(&stage.b[step][across * COLUMNS]);
        const float rows[ROWS] = { a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w };
        const float columns[COLUMNS] = { b.x, b.y, b.z, b.w };

#pragma unroll
        for (uint32_t i = 0; i < ROWS; i++)
#pragma unroll
            for (uint32_t j = 0; j < COLUMNS; j++)
                sums[i][j] = fmaf(rows[i], columns[j], sums[i][j]);
    }
}

// The first column of those that lie at place @across of a line.
__device__ inline uint32_t
column_at(uint32_t across)
{
    const uint32_t halves = SIDE / 2 / COLUMNS;

    return across < halves ? across * GROUP
                           : (across - halves + halves / 2) % halves * GROUP + HALF;
}

__device__ inline void
store(const LhCudaProduct &p, const Work &w, uint32_t row, uint32_t column,
      const float (&sums)[COLUMNS])
{
    LhCudaMatrix c = p.c.matrix;
    const uint32_t place = first_row_of(p.c, w) + row;
    const int64_t offset = row_offset(c, place);

    const Interval seen = p.pairs.masked ? seen_by(p.pairs, row) : Interval{ 0, 0 };

    c.data += offset_of(p.c, w);
#pragma unroll
    for (uint32_t j = 0; j < COLUMNS; j++) {
        if (column + j >= w.columns)
            continue;
        unsigned char *at = element_at(c, offset, place, column + j);
        const float x =
            p.pairs.masked ? weigh_pair(p.pairs, seen, row, column + j, sums[j]) : sums[j];

        put(at, c.storage, p.keep != 0.F ? x + p.keep * get(at, c.storage) : x);
    }
}

// One term's factors, from the steps on.
__device__ inline void
fetch_both(const LhCudaProduct &p, const Work &w, const Steps &s, float (&a)[GROUP],
           float (&b)[GROUP])
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
    fetch(of_a, s.step, a);
    fetch(of_b, s.step, b);
    weigh(term.weights, of_a, s.step, a);
}

__global__ void
__launch_bounds__(THREADS) product(const __grid_constant__ LhCudaProduct p)
{
    __shared__ Stage stage;
    const uint32_t across = threadIdx.x % (SIDE / COLUMNS), along = threadIdx.x / (SIDE / COLUMNS);
    float sums[ROWS][COLUMNS] = {}, a[GROUP], b[GROUP];
    Work w;

    if (!find_work(p, blockIdx.x, SIDE, SIDE, w))
        return;
    Steps s = begin(p, w);

    if (!is_over(p, s))
        fetch_both(p, w, s, a, b);
    while (!is_over(p, s)) {
        const LhCudaTerm &term = p.terms[s.term];

        __syncthreads(); // the numbers before have been read
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
        const uint32_t row = w.row + along * ROWS + i;

        if (row < w.rows)
            store(p, w, row, w.column + column_at(across), sums[i]);
    }
}

bool
suits_tensor_cores(const LhCudaProduct &p)
{
    const LhCudaTerm &t = p.terms[0];
    const LhCudaMatrix &a = t.a.matrix, &b = t.b.matrix;

    return p.terms_count == 1 && !p.pairs.masked && t.weights.of == LH_CUDA_WEIGH_NOTHING &&
           a.storage == b.storage && a.storage != LH_STORAGE_FP32 && a.grouped && b.grouped &&
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
        return lh_cuda_multiply_mma(p, stream);
    if (blocks > INT32_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        product<<<static_cast<uint32_t>(blocks), THREADS, 0, static_cast<cudaStream_t>(stream)>>>(
            *p);
    return launched();
}
