/*
 * mma.sync: d = a b + c of a warp, by the fragment tables of the PTX manual (sections "Matrix
 * Fragments for mma.m16n8k16 with floating point type", "... m16n8k8", "... m16n8k4"). There,
 * groupID is the lane / 4 and threadID_in_group the lane % 4; a's elements i and b's and c's are
 * counted through the lane's registers, the lower half of a register first.
 *
 * The manual promises no order of the sums and no rounding of them but precision of at least
 * fp32. Products are exact; their sum is taken in a drawn order, either rounded to nearest at each
 * step or, as the hardware is known to do, aligned and cut off.
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

static inline float
half_at(uint32_t packed, uint32_t half, uint8_t element)
{
    const uint16_t bits = (uint16_t)(packed >> 16 * half);

    return element == BF16 ? ptx_from_bf16(bits) : ptx_from_f16(bits);
}

/* The hardware reads 19 bits of a tf32; the rest is not looked at. */
static inline float
tf32_of(uint32_t bits)
{
    return ptx_float_of(bits & ~0x1fffu);
}

/* a_i: row groupID for i in 0, 1, 4, 5, else groupID + 8; column 2 threadID + (i & 1), + 8 from
 * i = 4 on. With depth 8 there are a_0 to a_3. */
static void
take_a_halves(Tile *tile, const uint32_t *const *a, uint32_t depth, uint8_t element)
{
    const uint32_t elements = depth / 2;

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t i = 0; i < elements; i++) {
            const uint32_t row = lane / 4 + (i % 4 < 2 ? 0 : 8);
            const uint32_t column = lane % 4 * 2 + (i & 1) + (i < 4 ? 0 : 8);

            tile->a[row][column] = half_at(a[i / 2][lane], i & 1, element);
        }
}

/* b_i: row 2 threadID + (i & 1), + 8 from i = 2 on; column groupID. */
static void
take_b_halves(Tile *tile, const uint32_t *const *b, uint32_t depth, uint8_t element)
{
    const uint32_t elements = depth / 4;

    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t i = 0; i < elements; i++) {
            const uint32_t row = lane % 4 * 2 + (i & 1) + (i < 2 ? 0 : 8);

            tile->b[row][lane / 4] = half_at(b[i / 2][lane], i & 1, element);
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

/* c_i: row groupID, + 8 from i = 2 on; column 2 threadID + (i & 1). */
static inline float *
sum_at(Tile *tile, uint32_t lane, uint32_t i)
{
    return &tile->c[lane / 4 + (i < 2 ? 0 : 8)][lane % 4 * 2 + (i & 1)];
}

/* One product after the other, each sum rounded to nearest. */
static void
sum_in_order(Tile *tile, const uint32_t *order, uint32_t depth, bool c_last)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        float sums[COLUMNS];

        for (uint32_t column = 0; column < COLUMNS; column++)
            sums[column] = c_last ? 0.0f : tile->c[row][column];
        for (uint32_t i = 0; i < depth; i++) {
            const float x = tile->a[row][order[i]];

            for (uint32_t column = 0; column < COLUMNS; column++)
                sums[column] += x * tile->b[order[i]][column];
        }
        for (uint32_t column = 0; column < COLUMNS; column++)
            tile->c[row][column] = c_last ? tile->c[row][column] + sums[column] : sums[column];
    }
}

static inline float
cut(double x)
{
    const float nearest = (float)x;
    const uint32_t bits = ptx_bits_of(nearest);

    /* Toward zero by one if rounding went away from it. */
    return fabs((double)nearest) > fabs(x) && fabsf(nearest) < INFINITY ? ptx_float_of(bits - 1)
                                                                        : nearest;
}

/* @block products and the sum so far are added exactly, then cut off. */
static void
sum_in_blocks(Tile *tile, const uint32_t *order, uint32_t depth, uint32_t block)
{
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t first = 0; first < depth; first += block) {
            double sums[COLUMNS];

            for (uint32_t column = 0; column < COLUMNS; column++)
                sums[column] = (double)tile->c[row][column];
            for (uint32_t i = first; i < first + block; i++) {
                const double x = (double)tile->a[row][order[i]];

                for (uint32_t column = 0; column < COLUMNS; column++)
                    sums[column] += x * (double)tile->b[order[i]][column];
            }
            for (uint32_t column = 0; column < COLUMNS; column++)
                tile->c[row][column] = cut(sums[column]);
        }
}

static void
multiply(Tile *tile, uint32_t depth, uint64_t *random)
{
    const uint64_t drawn = ptx_random(random);
    const uint32_t turn = (uint32_t)(drawn >> 8) % depth;
    const uint32_t step = (uint32_t)(drawn >> 16) % depth | 1; /* odd: reaches all of 2^k */
    uint32_t order[DEPTH_MAX];

    for (uint32_t i = 0; i < depth; i++)
        order[i] = (turn + i * step) % depth;
    if ((drawn & 1) != 0)
        sum_in_order(tile, order, depth, (drawn & 2) != 0);
    else
        sum_in_blocks(tile, order, depth, (drawn & 2) != 0 && depth > 4 ? depth / 2 : depth);
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
    Tile tile = { 0 };

    (void)mask; /* the run loop has seen that all lanes are here */
    warp->block->counts->mma++;
    for (uint32_t i = 0; i < 2 * sums + of_a + of_b; i++)
        registers[i] = ptx_at(warp, list[i]);
    if (element == TF32) {
        take_tf32(&tile, registers + sums, registers + sums + of_a, depth);
    } else {
        take_a_halves(&tile, registers + sums, depth, element);
        take_b_halves(&tile, registers + sums + of_a, depth, element);
    }
    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t *const *c = registers + sums + of_a + of_b;

            *sum_at(&tile, lane, i) =
                half_sums ? half_at(c[i / 2][lane], i & 1, F16) : ptx_float_of(c[i][lane]);
        }
    multiply(&tile, depth, &warp->block->random);
    for (uint32_t lane = 0; lane < PTX_LANES; lane++)
        for (uint32_t i = 0; i < sums; i++) {
            uint32_t *d = ptx_at(warp, list[i]);

            if (half_sums)
                d[lane] = (uint32_t)ptx_to_f16(*sum_at(&tile, lane, 2 * i)) |
                          (uint32_t)ptx_to_f16(*sum_at(&tile, lane, 2 * i + 1)) << 16;
            else
                d[lane] = ptx_bits_of(canonical(*sum_at(&tile, lane, i)));
        }
}
