/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library cuts the result into tiles, one per SM at a time, and chooses the fastest tile size:
 * large tiles read less and multiply faster, small ones leave fewer SMs idle in the last wave. Each
 * tile has a prologue and an epilogue besides its products.
 */
#include "sim/cost/product_cost.h"

#include <math.h>

/* Cost of filling the pipeline and writing the tile, in steps of the inner dimension. */
#define TILE_STEPS 256

typedef struct {
    uint64_t rows, columns;
    double share; /* of the speed of the largest tiles */
} Tile;

/* Tiles of cuBLAS and CUTLASS. With TILE_STEPS they match cuBLAS on an A100 (square products of 2K
 * to 8K) within 10 %. */
static const Tile product_tiles[] = {
    { 128, 256, 1 },
    { 256, 128, 1 },
    { 128, 128, 0.93 },
    { 64, 128, 0.85 },
};

static double
ceil_ratio(uint64_t a, uint64_t b)
{
    const uint64_t whole = a / b + (a % b != 0);

    return (double)whole;
}

double
lh_product_seconds(const LhDevice *device, const LhProductShape *shape, double rate,
                   double *rounding)
{
    const double sms = (double)device->sm_count;
    double best = INFINITY;

    *rounding = 1;
    for (unsigned i = 0; i < G_N_ELEMENTS(product_tiles) && shape->rows > 0 && shape->columns > 0;
         i++) {
        const Tile *t = &product_tiles[i];
        const double count = (double)shape->matrices * ceil_ratio(shape->rows, t->rows) *
                             ceil_ratio(shape->columns, t->columns);
        const double waves = ceil(count / sms);
        const double flops =
            2.0 * (double)t->rows * (double)t->columns * ((double)shape->depth + TILE_STEPS);
        const double seconds = waves * flops * sms / (rate * t->share);

        if (seconds < best) {
            best = seconds;
            *rounding = waves * sms / count;
        }
    }
    return isinf(best) ? 0 : best;
}
