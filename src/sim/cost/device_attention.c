/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/device_attention.h"

#include "sim/cost/attention_cost.h"

#include <string.h>

#define NAME_MAX_LENGTH 64
#define TILE_MAX 65536
#define PROLOGUE_MAX 1000
#define ALONE_MIN 0.01
#define TIME_MAX_S 1.0
#define CACHE_BYTES_MAX 1e15
#define MEASUREMENTS_MAX 1e9
#define QUANTILES_MAX 32
#define QUANTILE_MAX_S 1000.0

const char *const lh_device_masks[] = { "full", "causal", NULL };

static const char *const directions[] = { "fwd", "bwd", NULL };
static const char *const tile_sides[] = { "queries", "keys", NULL };

#define SERVING_BANDWIDTH(key, text)                                                               \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_BANDWIDTH,                            \
        .offset = offsetof(LhServing, key), .min = LH_RATE_MIN, .max = LH_RATE_MAX,                \
        .description = (text)                                                                      \
    }
#define DELAY(key, member, text)                                                                   \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_TIME,                                 \
        .offset = offsetof(LhServing, member), .min = 0, .max = TIME_MAX_S, .description = (text)  \
    }

static const LhField serving_fields[] = {
    DELAY(launch, launch_ps, "Time to launch all kernels of a call."),
    SERVING_BANDWIDTH(
        append, "Bandwidth of appending keys and values to the cache; takes no time if absent."),
    SERVING_BANDWIDTH(
        queries,
        "Bandwidth of queries and output of the same size, counted once; takes no time if absent."),
    DELAY(append_token, append_token_ps,
          "Time of the append for a token whose keys have 512 elements or more; proportionally "
          "less for fewer."),
    { .name = "split_keys",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhServing, split_keys),
      .description = "Whether a small number of tiles is split by keys among the SMs, as in "
                     "FlashAttention-3." },
    SERVING_BANDWIDTH(partials, "Bandwidth of the outputs of split keys; takes no time if absent."),
    { .name = "l2",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(LhServing, l2_bytes),
      .min = 1,
      .max = CACHE_BYTES_MAX,
      .description =
          "Size of the device's L2 cache; data beyond half of it takes additional time." },
    SERVING_BANDWIDTH(beyond_l2, "Bandwidth of data beyond half of the L2."),
    { .name = NULL },
};

#define ROW_RESIDUAL(key, text)                                                                    \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_DOUBLE, .offset = offsetof(LhAttentionResiduals, key),      \
        .min = 0, .max = LH_RESIDUAL_MAX, .description = (text)                                    \
    }

static const LhField quantile_fields[] = {
    { .name = "until",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .offset = offsetof(LhAttentionQuantile, until_ps),
      .min = 0,
      .max = QUANTILE_MAX_S,
      .description = "Upper limit of the predicted time of the calls; absent in the last entry." },
    { .name = "error",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionQuantile, error),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LH_RESIDUAL_MAX,
      .description = "Relative error that four in five of the calls are within." },
    { .name = NULL },
};

static const LhField row_residual_fields[] = {
    { .name = "rows",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhAttentionResiduals, rows),
      .min = 1,
      .max = MEASUREMENTS_MAX,
      .description = "Number of measurements that the constants were fitted to." },
    ROW_RESIDUAL(mean, "Mean absolute relative error of these."),
    ROW_RESIDUAL(worst, "Worst relative error of these."),
    ROW_RESIDUAL(
        holdout_mean,
        "Mean absolute relative error of half of them, held out from a fit to the other half."),
    ROW_RESIDUAL(holdout, "Worst relative error of the held-out half."),
    { .name = "quantiles",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhAttentionResiduals, quantiles),
      .min = 1,
      .max = QUANTILES_MAX,
      .fields = quantile_fields,
      .element_size = sizeof(LhAttentionQuantile),
      .description = "Relative errors by the time of calls, the shortest first." },
    { .name = NULL },
};

#define WORD(key, member, names, text)                                                             \
    {                                                                                              \
        .name = key, .type = LH_FIELD_CHOICE, .offset = offsetof(LhAttentionRow, member),          \
        .flags = LH_FIELD_REQUIRED, .choices = (names), .description = (text)                      \
    }
#define SIZE(key, member, high, text)                                                              \
    {                                                                                              \
        .name = key, .type = LH_FIELD_UINT, .offset = offsetof(LhAttentionRow, member),            \
        .flags = LH_FIELD_REQUIRED, .min = 1, .max = (high), .description = (text)                 \
    }
#define RATE(key, needed, text)                                                                    \
    {                                                                                              \
        .name = #key, .type = LH_FIELD_UNIT, .unit = LH_UNIT_FLOPS,                                \
        .offset = offsetof(LhAttentionRow, key), .flags = (needed), .min = LH_RATE_MIN,            \
        .max = LH_RATE_MAX, .description = (text)                                                  \
    }

const LhField lh_attention_fields[] = {
    { .name = "library",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhAttentionRow, library),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = NAME_MAX_LENGTH,
      .description = "Library of the kernel, such as fa3." },
    WORD("direction", direction, directions, "Forward or backward pass."),
    SIZE("head_dim", head_dim, LH_HEAD_DIM_MAX,
         "Head dimension; the row applies to this one only."),
    { .name = "masks",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(LhAttentionRow, masks),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = (int)G_N_ELEMENTS(lh_device_masks) - 1,
      .description = "Masks of the blocks that the row applies to: full, causal." },
    SIZE("tile_rows", tiling.rows, TILE_MAX, "Rows of a tile, computed by one thread block."),
    SIZE(
        "tile_keys", tiling.columns, TILE_MAX,
        "Rows of a block, the unit of the other side; blocks are of queries if tiles are of keys."),
    WORD("tile_of", tile_of, tile_sides, "Side whose rows form the tiles."),
    { .name = "pack_groups",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhAttentionRow, tiling.pack_groups),
      .description = "Whether the query heads of a key-value head share tiles of queries." },
    WORD("order", order, lh_tile_orders,
         "Order in which tiles are assigned, each to the first free SM."),
    { .name = "resident",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhAttentionRow, tiling.resident),
      .min = 1,
      .max = LH_TILES_RESIDENT,
      .description = "Thread blocks resident on an SM, for linear order only; default 1." },
    { .name = "alone",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionRow, tiling.alone),
      .min = ALONE_MIN,
      .max = 1,
      .description =
          "Fraction of the SM's rate that a single resident thread block reaches; default 1." },
    { .name = "prologue",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionRow, tiling.prologue),
      .min = 0,
      .max = PROLOGUE_MAX,
      .description = "Cost of a tile beside its blocks, in blocks." },
    RATE(rate, LH_FIELD_REQUIRED, "Rate of all SMs when busy, on a cool device."),
    RATE(sustained_rate, 0, "Sustained rate of all SMs, used by simulations; default: \"rate\"."),
    { .name = "knee",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .offset = offsetof(LhAttentionRow, knee_ps),
      .min = 0,
      .max = TIME_MAX_S,
      .description = "Length of a kernel whose rate is halfway between the two; default 4ms." },
    { .name = "serving",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhAttentionRow, serving),
      .fields = serving_fields,
      .description = "Work of a serving system beside the tiles: for comparison with its "
                     "measurements, not used by simulations." },
    { .name = "residuals",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhAttentionRow, residuals),
      .fields = row_residual_fields,
      .description = "Relative errors of the fit." },
    LH_FIELDS_EVIDENCE(LhAttentionRow, from, LH_FIELD_REQUIRED, LH_DEVICE_TEXT_MAX, "the row",
                       "the row comes"),
    { .name = NULL },
};

void
lh_attention_init(void *row)
{
    ((LhAttentionRow *)row)->knee_ps = LH_ATTENTION_KNEE_PS;
    ((LhAttentionRow *)row)->tiling.resident = 1;
    ((LhAttentionRow *)row)->tiling.alone = 1;
}

/* The bit of a mask word; 0: unknown. */
static unsigned
mask_bit(const char *word)
{
    if (strcmp(word, lh_device_masks[0]) == 0)
        return 1;
    return strcmp(word, lh_device_masks[1]) == 0 ? 2 : 0;
}

/* The masks of a row as bits; 0 with @error if one is unknown or occurs twice. */
static unsigned
mask_bits(const LhJson *json, const LhAttentionRow *row, const char *path, GError **error)
{
    unsigned bits = 0;

    for (guint i = 0; i < row->masks->len; i++) {
        const char *name = g_ptr_array_index(row->masks, i);
        const unsigned bit = mask_bit(name);

        if (bit == 0 || (bits & bit) != 0) {
            g_autofree char *at = g_strdup_printf("%s.masks[%u]", path, i);

            lh_json_error(json, at, error, "\"%s\" is \"%.60s\"; allowed: full, causal, each once",
                          at, name);
            return 0;
        }
        bits |= bit;
    }
    return bits;
}

/* Whether both rows are for the same kernel; @bits are the masks of @a. */
static bool
overlap(const LhAttentionRow *a, unsigned bits, const LhAttentionRow *b)
{
    if (strcmp(a->library, b->library) != 0 || a->direction != b->direction ||
        a->head_dim != b->head_dim)
        return false;
    for (guint i = 0; i < b->masks->len; i++) {
        const char *name = g_ptr_array_index(b->masks, i);

        if ((bits & (strcmp(name, lh_device_masks[0]) == 0 ? 1u : 2u)) != 0)
            return true;
    }
    return false;
}

static bool
check_rates(const LhJson *json, const LhDevice *device, const LhAttentionRow *row, const char *path,
            GError **error)
{
    if (row->rate > device->matrix_rate) {
        g_autofree char *at = g_strconcat(path, ".rate", NULL);
        g_autofree char *found = lh_format_flops(row->rate);
        g_autofree char *peak = lh_format_flops(device->matrix_rate);

        return lh_json_error(json, at, error, "\"%s\" is %s, above the device's \"matrix_rate\" %s",
                             at, found, peak);
    }
    if (row->sustained_rate > row->rate) {
        g_autofree char *at = g_strconcat(path, ".sustained_rate", NULL);

        return lh_json_error(json, at, error, "\"%s\" exceeds the row's \"rate\"", at);
    }
    if ((row->serving.l2_bytes > 0) != (row->serving.beyond_l2 > 0)) {
        g_autofree char *at = g_strconcat(path, ".serving", NULL);

        return lh_json_error(json, at, error,
                             "\"%s\" has one of \"l2\" and \"beyond_l2\"; allowed: both or none",
                             at);
    }
    return true;
}

/* Checks that each limit exceeds the one before, and the last entry has none. */
static bool
check_quantiles(const LhJson *json, const LhAttentionRow *row, const char *path, GError **error)
{
    const GArray *quantiles = row->residuals.quantiles;
    LhTime before_ps = 0;

    for (guint i = 0; quantiles != NULL && i < quantiles->len; i++) {
        const LhAttentionQuantile *q = &g_array_index(quantiles, LhAttentionQuantile, i);

        if (i + 1 < quantiles->len ? q->until_ps <= before_ps : q->until_ps != 0) {
            g_autofree char *at = g_strdup_printf("%s.residuals.quantiles[%u]", path, i);

            return lh_json_error(json, at, error,
                                 "\"%s\" is out of order; allowed: each \"until\" above the one "
                                 "before, none in the last entry",
                                 at);
        }
        before_ps = q->until_ps;
    }
    return true;
}

static bool
check_attention_row(const LhJson *json, LhDevice *device, guint index, GError **error)
{
    LhAttentionRow *row = &g_array_index(device->attention, LhAttentionRow, index);
    g_autofree char *path = g_strdup_printf("attention[%u]", index);
    const unsigned bits = mask_bits(json, row, path, error);

    if (bits == 0 || !check_rates(json, device, row, path, error) ||
        !check_quantiles(json, row, path, error))
        return false;
    if (row->sustained_rate <= 0)
        row->sustained_rate = row->rate;
    row->tiling.of_keys = row->tile_of == 1;
    row->tiling.order = (LhTileOrder)row->order;
    if (row->tiling.of_keys && row->tiling.pack_groups)
        return lh_json_error(
            json, path, error,
            "\"%s\" packs groups into tiles of keys; allowed: into tiles of queries", path);
    if (row->tiling.resident > 1 && row->tiling.order != LH_TILES_LINEAR)
        return lh_json_error(
            json, path, error,
            "\"%s\" has an order that is not supported for tiles that share an SM; allowed: linear",
            path);
    for (guint i = 0; i < index; i++) {
        if (overlap(row, bits, &g_array_index(device->attention, LhAttentionRow, i)))
            return lh_json_error(json, path, error,
                                 "\"%s\" is the second row for library %s, direction %s, head_dim "
                                 "%" G_GUINT64_FORMAT " and one of its masks; the first is "
                                 "\"attention[%u]\"",
                                 path, row->library, directions[row->direction], row->head_dim, i);
    }
    return true;
}

bool
lh_attention_check(const LhJson *json, LhDevice *device, GError **error)
{
    const char *library = device->attention_kernel;

    if ((device->attention != NULL || library != NULL) && device->schema == 0)
        return lh_json_error(
            json, "schema", error, "\"schema\" is %s, which has no \"%s\"; allowed: %s",
            "longhaul.device/1", device->attention != NULL ? "attention" : "attention_kernel",
            "longhaul.device/2");
    for (guint i = 0; device->attention != NULL && i < device->attention->len; i++) {
        if (!check_attention_row(json, device, i, error))
            return false;
    }
    if (library != NULL && !lh_attention_has(device, library))
        return lh_json_error(json, "attention_kernel", error,
                             "unknown library \"%.60s\"; \"attention\" has no row of it", library);
    return true;
}
