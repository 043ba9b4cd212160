/* SPDX-License-Identifier: Apache-2.0 */
// Elementwise functions. A thread has a group of elements of a line, in all operands. Bound by
// memory; each operand is read or written once.
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/rows/lines.cuh"

namespace
{
using namespace lh;

constexpr int THREADS = 256;

// ---- functions ----

__device__ inline float
sigmoid(float x)
{
    return __fdividef(1.F, 1.F + expf(-x));
}

// Each has READS input lines, WRITES output lines, and apply() for one element.
struct Sum {
    static constexpr int READS = 1, WRITES = 1;

    __device__
    Sum(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        y[0] = x[0];
    }
};

struct SumOfTwo {
    static constexpr int READS = 2, WRITES = 1;
    float factor;

    __device__
    SumOfTwo(const LhCudaElements &e)
        : factor(e.value)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        y[0] = factor * x[0] + x[1];
    }
};

struct Fill {
    static constexpr int READS = 0, WRITES = 1;
    float value;

    __device__
    Fill(const LhCudaElements &e)
        : value(e.value)
    {
    }
    __device__ void
    apply(const float (&)[1], float (&y)[WRITES]) const
    {
        y[0] = value;
    }
};

// gate, up; p
struct Glu {
    static constexpr int READS = 2, WRITES = 1;

    __device__
    Glu(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        y[0] = x[0] * sigmoid(x[0]) * x[1];
    }
};

// gate, up, dp; dgate, dup
struct GluBackward {
    static constexpr int READS = 3, WRITES = 2;

    __device__
    GluBackward(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        const float s = sigmoid(x[0]);

        y[0] = x[2] * x[1] * s * (1.F + x[0] * (1.F - s));
        y[1] = x[2] * x[0] * s;
    }
};

// sqrt(2 / pi), and the factor of the cubic term.
constexpr float GELU_SCALE = 0.79788456080286535588F, GELU_CUBE = 0.044715F;

// gelu is x sigmoid(2 u) with u = scale (x + cube x^3): 1 + tanh would lose all digits near -1.
__device__ inline float
gelu_sigmoid(float x)
{
    return sigmoid(2.F * GELU_SCALE * (x + GELU_CUBE * x * x * x));
}

struct Gelu {
    static constexpr int READS = 1, WRITES = 1;

    __device__
    Gelu(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        y[0] = x[0] * gelu_sigmoid(x[0]);
    }
};

// x, dy; dx
struct GeluBackward {
    static constexpr int READS = 2, WRITES = 1;

    __device__
    GeluBackward(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        const float s = gelu_sigmoid(x[0]);
        const float slope = 2.F * GELU_SCALE * (1.F + 3.F * GELU_CUBE * x[0] * x[0]);

        y[0] = x[1] * (s + x[0] * s * (1.F - s) * slope);
    }
};

// x, g; z
struct Gate {
    static constexpr int READS = 2, WRITES = 1;

    __device__
    Gate(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        y[0] = x[0] * sigmoid(x[1]);
    }
};

// x, g, dz; dx, dg
struct GateBackward {
    static constexpr int READS = 3, WRITES = 2;

    __device__
    GateBackward(const LhCudaElements &)
    {
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        const float s = sigmoid(x[1]);

        y[0] = x[2] * s;
        y[1] = x[2] * x[0] * s * (1.F - s);
    }
};

// gradient, moments, weight; moments, weight, rounded weight
struct Adam {
    static constexpr int READS = 4, WRITES = 4;
    const LhCudaAdam &a;
    float scale, first, second; /* factors of the gradient, and of the moments for their bias */

    __device__
    Adam(const LhCudaElements &e)
        : a(e.adam)
    {
        const float norm = sqrtf(*a.norm), clock = (a.clock != nullptr ? *a.clock : 0.F) + 1.F;

        scale = a.clip > 0.F && norm > a.clip ? a.clip / norm : 1.F;
        first = 1.F / -expm1f(clock * a.log_beta1);
        second = 1.F / -expm1f(clock * a.log_beta2);
    }
    __device__ void
    apply(const float (&x)[READS], float (&y)[WRITES]) const
    {
        const float g = x[0] * scale;

        y[0] = a.beta1 * x[1] + a.less_beta1 * g;
        y[1] = a.beta2 * x[2] + a.less_beta2 * g * g;
        y[2] = x[3] * a.keep - a.rate * (y[0] * first) / (sqrtf(y[1] * second) + a.epsilon);
        y[3] = y[2];
    }
};

// ---- kernels ----

// Operands without data are absent and read as 0.
template <class Function, int N>
__global__ void
__launch_bounds__(THREADS) elements(const __grid_constant__ LhCudaElements e)
{
    constexpr int READS = Function::READS, WRITES = Function::WRITES;
    const uint64_t groups = (e.width + N - 1) / N;
    const uint64_t index = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x;
    const uint64_t line = groups == 0 || index < groups ? 0 : index / groups;
    const uint64_t column = (index - line * groups) * N;
    float x[READS > 0 ? READS : 1][N] = {}, y[WRITES][N];

    if (line >= e.count || column >= e.width)
        return;
    const int count = count_at<N>(column, e.width);
    const Function function(e);

#pragma unroll
    for (int i = 0; i < READS; i++)
        if (e.lines[i].data != nullptr)
            load(e.lines[i], line * e.lines[i].pitch + e.lines[i].offset + column, count, x[i]);
#pragma unroll
    for (int k = 0; k < N; k++) {
        float one[READS > 0 ? READS : 1], result[WRITES];

#pragma unroll
        for (int i = 0; i < (READS > 0 ? READS : 1); i++)
            one[i] = x[i][k];
        function.apply(one, result);
#pragma unroll
        for (int i = 0; i < WRITES; i++)
            y[i][k] = result[i];
    }
#pragma unroll
    for (int i = 0; i < WRITES; i++) {
        const LhCudaLine &to = e.lines[READS + i];

        if (to.data != nullptr)
            store(to, line * to.pitch + to.offset + column, count, y[i]);
    }
}

template <int N>
__global__ void
__launch_bounds__(THREADS) terms(const __grid_constant__ LhCudaTerms t)
{
    const uint64_t at = (static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x) * N;
    const uint64_t offset = at * size_of(t.storage);
    float sum[N], x[N];

    if (at >= t.elements)
        return;
    const int count = count_at<N>(at, t.elements);
    const bool whole = t.grouped && count == N;

    get_some(t.terms[0] + offset, t.storage, count, whole, sum);
    for (uint32_t i = 1; i < t.count; i++) {
        get_some(t.terms[i] + offset, t.storage, count, whole, x);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] = t.factor * sum[k] + x[k];
    }
    put_some(t.sum + offset, t.storage, count, whole, sum);
}

__global__ void
tick(float *clock, bool first)
{
    *clock = (first ? 0.F : *clock) + 1.F;
}

// Computes the blocks of THREADS threads. Returns false if they exceed a grid.
bool
blocks_for(uint64_t threads, uint32_t *blocks)
{
    const uint64_t count = (threads + THREADS - 1) / THREADS;

    *blocks = static_cast<uint32_t>(count);
    return count <= INT32_MAX;
}

template <class Function, int N>
enum lh_status
launch_groups(const LhCudaElements &e, cudaStream_t stream)
{
    uint32_t blocks;

    if (!blocks_for(e.count * ((e.width + N - 1) / N), &blocks))
        return LH_STATUS_UNSUPPORTED;
    if (blocks > 0)
        elements<Function, N><<<blocks, THREADS, 0, stream>>>(e);
    return launched();
}

template <class Function>
enum lh_status
launch(const LhCudaElements &e, cudaStream_t stream)
{
    bool any_fp32 = false;

    for (int i = 0; i < Function::READS + Function::WRITES; i++)
        any_fp32 |= e.lines[i].data != nullptr && is_fp32(e.lines[i].storage);
    return with_group(any_fp32, [&](auto group) {
        return launch_groups<Function, decltype(group)::value>(e, stream);
    });
}
} // namespace

extern "C" enum lh_status
lh_cuda_elements(const LhCudaElements *e, void *stream)
{
    const cudaStream_t s = static_cast<cudaStream_t>(stream);

    switch (e->function) {
    case LH_CUDA_SUM:
        return launch<Sum>(*e, s);
    case LH_CUDA_SUM_OF_TWO:
        return launch<SumOfTwo>(*e, s);
    case LH_CUDA_FILL:
        return launch<Fill>(*e, s);
    case LH_CUDA_GLU:
        return launch<Glu>(*e, s);
    case LH_CUDA_GLU_BWD:
        return launch<GluBackward>(*e, s);
    case LH_CUDA_GELU:
        return launch<Gelu>(*e, s);
    case LH_CUDA_GELU_BWD:
        return launch<GeluBackward>(*e, s);
    case LH_CUDA_GATE:
        return launch<Gate>(*e, s);
    case LH_CUDA_GATE_BWD:
        return launch<GateBackward>(*e, s);
    case LH_CUDA_ADAM:
        return launch_groups<Adam, FP32_GROUP>(*e, s); // moments are fp32
    default:
        return LH_STATUS_UNSUPPORTED;
    }
}

extern "C" enum lh_status
lh_cuda_terms(const LhCudaTerms *t, void *stream)
{
    return with_group(is_fp32(t->storage), [=](auto group) {
        constexpr int N = decltype(group)::value;
        uint32_t blocks;

        if (!blocks_for((t->elements + N - 1) / N, &blocks))
            return LH_STATUS_UNSUPPORTED;
        if (blocks > 0)
            terms<N><<<blocks, THREADS, 0, static_cast<cudaStream_t>(stream)>>>(*t);
        return launched();
    });
}

extern "C" enum lh_status
lh_cuda_tick(float *clock, bool first, void *stream)
{
    tick<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(clock, first);
    return launched();
}
