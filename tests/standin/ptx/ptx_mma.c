/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mma.sync: d = a b + c of a warp, by the fragment tables of the PTX manual (sections "Matrix
 * Fragments for mma.m16n8k16 with floating point type", "... m16n8k8", "... m16n8k4"). There
 * groupID is lane / 4 and threadID_in_group lane % 4; the elements of a, b and c are indexed across
 * the lane's registers, the lower half of a register first.
 *
 * The manual guarantees neither the order nor the rounding of the sums, only a precision of at
 * least fp32. Products are exact; they are summed in a random order, either rounded to nearest at
 * each step or, as the hardware is known to do, aligned and truncated.
 */
#include "ptx_float.h"
#include "ptx_private.h"

#define ROWS 16
#define COLUMNS 8
#define DEPTH_MAX 16

enum element { BF16, F16, TF32 };

static const struct {
    uint8_t element, depth;
    bool half_sums; /* c and d are f16 */
} kinds[] = {
    [PTX_MMA_K16_BF16] = { BF16, 16, false },  [PTX_MMA_K8_BF16] = { BF16, 8, false },
    [PTX_MMA_K16_F16] = { F16, 16, false },    [PTX_MMA_K8_F16] = { F16, 8, false },
    [PTX_MMA_K16_F16_F16] = { F16, 16, true }, [PTX_MMA_K8_TF32] = { TF32, 8, false },
    [PTX_MMA_K4_TF32] = { TF32, 4, false },
};

typedef struct {
    float a[ROWS][DEPTH_MAX];
    float b[DEPTH_MAX][COLUMNS];
    float c[ROWS][COLUMNS];
} Tile;

/* The lower (half 0) or upper halves of a register. */
static inline void
halves_of(const uint32_t *packed, uint32_t half, uint8_t element, float values[PTX_LANES])
{
    for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
        const uint16_t bits = (uint16_t)(packed[lane] >> 16 * half);

        values[lane] = element == BF16 ? ptx_from_bf16(bits) : ptx_from_f16(bits);
    }
}

/* The hardware reads 19 bits of a tf32 and ignores the rest. */
static inline float
tf32_of(uint32_t bits)
{
    return ptx_float_of(bits & ~0x1fffu);
}

/* NOLINTBEGIN(clang-analyzer-core.*): the caller has as many registers as the depth needs. */

/* a_i: row groupID for i in 0, 1, 4, 5, else groupID + 8; column 2 threadID + (i & 1), + 8 from
 * i = 4 on. With depth 8 there are a_0 to a_3. */
static void
take_a_halves(Tile *tile, const uint32_t *const *a, uint32_t depth, uint8_t element)
{
    for (uint32_t i = 0; i < depth / 2; i++) {
        const uint32_t row = i % 4 < 2 ? 0 : 8, column = (i & 1) + (i < 4 ? 0 : 8);
        float values[PTX_LANES];

        halves_of(a[i / 2], i & 1, element, values);
        for (uint32_t lane = 0; lane < PTX_LANES; lane++)
            tile->a[row + lane / 4][column + lane % 4 * 2] = values[lane];
    }
}

/* b_i: row 2 threadID + (i & 1), + 8 from i = 2 on; column groupID. */
static void
take_b_halves(Tile *tile, const uint32_t *const *b, uint32_t depth, uint8_t element)
{
    for (uint32_t i = 0; i < depth / 4; i++) {
        const uint32_t row = (i & 1) + (i < 2 ? 0 : 8);
        float values[PTX_LANES];

        halves_of(b[i / 2], i & 1, element, values);
        for (uint32_t lane = 0; lane < PTX_LANES; lane++)
            tile->b[row + lane % 4 * 2][lane / 4] = values[lane];
    }
}

/* tf32: a_i: row groupID for even i, else groupID + 8; column threadID, + 4 from i = 2 on.
 * b_i: row threadID + 4 i; column groupID. */
static void
take_tf32(Tile *tile, const uint32_t *const *a, const uint32_t *const *b, uint32_t depth)
{
    for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
        for (uint32_t i = 0; i < depth / 2; i++)
            tile->a[lane / 4 + (i & 1) * 8][lane % 4 + i / 2 * 4] = tf32_of(a[i][lane]);
        for (uint32_t i = 0; i < depth / 4; i++)
            tile->b[lane % 4 + i * 4][lane / 4] = tf32_of(b[i][lane]);
    }
}

/* NOLINTEND(clang-analyzer-core.*) */

/* c_i: row groupID, + 8 from i = 2 on; column 2 threadID + (i & 1). */
static void
take_sums(Tile *tile, uint32_t i, const float values[PTX_LANES])
{
    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        tile->c[lane / 4 + (i < 2 ? 0 : 8)][lane % 4 * 2 + (i & 1)] = values[lane];
}

static void
give_sums(const Tile *tile, uint32_t i, float values[PTX_LANES])
{
    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        values[lane] = tile->c[lane / 4 + (i < 2 ? 0 : 8)][lane % 4 * 2 + (i & 1)];
}

/* Adds one product after the other, rounding each sum to nearest. */
static void
sum_in_order(Tile *tile, const uint32_t *order, uint32_t depth, bool c_last)
{
    float sums[ROWS][COLUMNS] = { 0 };

    if (!c_last)
        memcpy(sums, tile->c, sizeof(sums));
    for (uint32_t i = 0; i < depth; i++) {
        float y[COLUMNS];

        memcpy(y, tile->b[order[i]], sizeof(y));
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t column = 0; column < COLUMNS; column++)
                sums[row][column] += tile->a[row][order[i]] * y[column];
    }
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t column = 0; column < COLUMNS; column++)
            tile->c[row][column] =
                c_last ? tile->c[row][column] + sums[row][column] : sums[row][column];
}

/* Undoes a rounding away from zero by one step. */
static inline float
cut(double x)
{
    const float nearest = (float)x;
    const bool away = fabs((double)nearest) > fabs(x) && fabsf(nearest) < INFINITY;

    return ptx_float_of(ptx_bits_of(nearest) - away);
}

/* Adds @block products and the sum so far exactly, or nearly, then truncates. */
static void
sum_in_blocks(Tile *tile, const uint32_t *order, uint32_t depth, uint32_t block)
{
    for (uint32_t first = 0; first < depth; first += block) {
        double sums[ROWS][COLUMNS];

        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t column = 0; column < COLUMNS; column++)
                sums[row][column] = (double)tile->c[row][column];
        for (uint32_t i = first; i < first + block; i++) {
            double y[COLUMNS];

            for (uint32_t column = 0; column < COLUMNS; column++)
                y[column] = (double)tile->b[order[i]][column];
            for (uint32_t row = 0; row < ROWS; row++)
                for (uint32_t column = 0; column < COLUMNS; column++)
                    sums[row][column] += (double)tile->a[row][order[i]] * y[column];
        }
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t column = 0; column < COLUMNS; column++)
                tile->c[row][column] = cut(sums[row][column]);
    }
}

static void
multiply(Tile *tile, uint32_t depth, uint64_t *random)
{
    const uint64_t drawn = ptx_random(random);
    const uint32_t turn = (uint32_t)(drawn >> 8) % depth;
    const uint32_t step =
        (uint32_t)(drawn >> 16) % depth | 1; /* odd: generates all residues modulo 2^k */
    uint32_t order[DEPTH_MAX];

    for (uint32_t i = 0; i < depth; i++)
        order[i] = (turn + i * step) % depth;
    if ((drawn & 3) != 0)
        sum_in_order(tile, order, depth, (drawn & 4) != 0);
    else
        sum_in_blocks(tile, order, depth, (drawn & 4) != 0 && depth > 4 ? depth / 2 : depth);
}

static inline float
canonical(float x)
{
    return x == x ? x : ptx_float_of(PTX_NAN_F32);
}

void
PTX_MMA(ptx_warp *warp, const ptx_instruction *in, uint32_t mask)
{
    const uint8_t element = kinds[in->mode].element;
    const uint32_t depth = kinds[in->mode].depth;
    const bool half_sums = kinds[in->mode].half_sums;
    const uint32_t sums = half_sums ? 2 : 4, of_a = element == TF32 ? depth / 2 : depth / 4,
                   of_b = of_a / 2;
    const uint32_t *list = warp->block->kernel->operands + in->immediate;
    const uint32_t *registers[14];
    float values[PTX_LANES];
    Tile tile;

    (void)mask; /* the run loop has ensured that all lanes are present */
    warp->block->counts->mma++;
    for (uint32_t i = 0; i < 2 * sums + of_a + of_b; i++)
        registers[i] = ptx_at(warp, list[i]);
    if (element == TF32) {
        take_tf32(&tile, registers + sums, registers + sums + of_a, depth);
    } else {
        take_a_halves(&tile, registers + sums, depth, element);
        take_b_halves(&tile, registers + sums + of_a, depth, element);
    }
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t *const *c = registers + sums + of_a + of_b;

        if (half_sums)
            halves_of(c[i / 2], i & 1, F16, values);
        else
            memcpy(values, c[i], sizeof(values));
        take_sums(&tile, i, values);
    }
    multiply(&tile, depth, &warp->block->random);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t *d = ptx_at(warp, list[half_sums ? i / 2 : i]);

        give_sums(&tile, i, values);
        for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
            const uint32_t half = half_sums ? ptx_to_f16(values[lane]) : 0;

            if (!half_sums)
                d[lane] = ptx_bits_of(canonical(values[lane]));
            else
                d[lane] = (i & 1) == 0 ? half : d[lane] | half << 16;
        }
    }
}
