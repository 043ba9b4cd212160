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
    DELAY(launch, launch_ps, "To launch all kernels of a call."),
    SERVING_BANDWIDTH(append, "Of keys and values into the cache; absent: takes no time."),
    SERVING_BANDWIDTH(queries,
                      "Of queries and as much output, counted once; absent: takes no time."),
    DELAY(append_token, append_token_ps,
          "Of the append, for a token whose keys have 512 elements or more; less for fewer."),
    { .name = "split_keys",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhServing, split_keys),
      .description = "Whether few tiles are split by their keys among the SMs, as "
                     "FlashAttention-3 does." },
    SERVING_BANDWIDTH(partials, "Of the outputs of split keys; absent: takes no time."),
    { .name = "l2",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(LhServing, l2_bytes),
      .min = 1,
      .max = CACHE_BYTES_MAX,
      .description = "The device's L2 cache, where what half of it cannot hold takes time." },
    SERVING_BANDWIDTH(beyond_l2, "Of what half of the L2 cannot hold."),
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
      .description = "Of calls that are predicted to be shorter; the last entry has none." },
    { .name = "error",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionQuantile, error),
      .flags = LH_FIELD_REQUIRED,
      .min = 0,
      .max = LH_RESIDUAL_MAX,
      .description = "Four in five are within it." },
    { .name = NULL },
};

static const LhField row_residual_fields[] = {
    { .name = "rows",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhAttentionResiduals, rows),
      .min = 1,
      .max = MEASUREMENTS_MAX,
      .description = "Measurements that the constants were fitted to." },
    ROW_RESIDUAL(mean, "Mean error of these, relative."),
    ROW_RESIDUAL(worst, "The worst of them."),
    ROW_RESIDUAL(holdout_mean,
                 "Mean error of the half of them that a fit to the other did not see."),
    ROW_RESIDUAL(holdout, "The worst of that half."),
    { .name = "quantiles",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(LhAttentionResiduals, quantiles),
      .min = 1,
      .max = QUANTILES_MAX,
      .fields = quantile_fields,
      .element_size = sizeof(LhAttentionQuantile),
      .description = "How far off calls of about one length are, the shortest first." },
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
      .description = "Whose kernel it is, such as fa3." },
    WORD("direction", direction, directions, "Forward or backward pass."),
    SIZE("head_dim", head_dim, LH_HEAD_DIM_MAX, "Head dimension, and no other."),
    { .name = "masks",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(LhAttentionRow, masks),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = (int)G_N_ELEMENTS(lh_device_masks) - 1,
      .description = "Which blocks the row holds for: full, causal." },
    SIZE("tile_rows", tiling.rows, TILE_MAX, "Rows of one thread block."),
    SIZE("tile_keys", tiling.columns, TILE_MAX,
         "Rows of the other side that it takes at once: a block, of queries in tiles of keys."),
    WORD("tile_of", tile_of, tile_sides, "Whose rows a thread block has."),
    { .name = "pack_groups",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(LhAttentionRow, tiling.pack_groups),
      .description = "Whether the query heads of a key-value head share tiles of queries." },
    WORD("order", order, lh_tile_orders,
         "In which order tiles are taken, each by the SM free first."),
    { .name = "resident",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhAttentionRow, tiling.resident),
      .min = 1,
      .max = LH_TILES_RESIDENT,
      .description = "Thread blocks that an SM holds at once, in linear order; default 1." },
    { .name = "alone",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionRow, tiling.alone),
      .min = ALONE_MIN,
      .max = 1,
      .description = "Share of the SM's rate that one of them alone has; default 1." },
    { .name = "prologue",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(LhAttentionRow, tiling.prologue),
      .min = 0,
      .max = PROLOGUE_MAX,
      .description = "What a tile costs beside its blocks, in blocks." },
    RATE(rate, LH_FIELD_REQUIRED, "Of all SMs, busy, of a device that is cool."),
    RATE(sustained_rate, 0, "The same in the long run, which simulations use; default the rate."),
    { .name = "knee",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .offset = offsetof(LhAttentionRow, knee_ps),
      .min = 0,
      .max = TIME_MAX_S,
      .description = "How long a kernel is that is half way between the two; default 4ms." },
    { .name = "serving",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhAttentionRow, serving),
      .fields = serving_fields,
      .description = "What a serving system needs beside the tiles: for judging measurements of "
                     "it, in no simulation." },
    { .name = "residuals",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(LhAttentionRow, residuals),
      .fields = row_residual_fields,
      .description = "How far the fit is from what it was made of." },
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

/* Of the word; 0: it is none. */
static unsigned
mask_bit(const char *word)
{
    if (strcmp(word, lh_device_masks[0]) == 0)
        return 1;
    return strcmp(word, lh_device_masks[1]) == 0 ? 2 : 0;
}

/* The masks of a row as bits; 0 with @error if one of them is none. */
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

/* Whether both are about one kernel; @bits are the masks of @a. */
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

        return lh_json_error(json, at, error, "\"%s\" is above the row's \"rate\"", at);
    }
    if ((row->serving.l2_bytes > 0) != (row->serving.beyond_l2 > 0)) {
        g_autofree char *at = g_strconcat(path, ".serving", NULL);

        return lh_json_error(json, at, error,
                             "\"%s\" has one of \"l2\" and \"beyond_l2\"; allowed: both or none",
                             at);
    }
    return true;
}

/* Each longer than the one before, the last for all that are longer still. */
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
        return lh_json_error(json, path, error,
                             "\"%s\" packs groups into tiles of keys; allowed: tiles of queries",
                             path);
    if (row->tiling.resident > 1 && row->tiling.order != LH_TILES_LINEAR)
        return lh_json_error(json, path, error,
                             "\"%s\" has tiles that share an SM in an order that is not known; "
                             "allowed: linear",
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
                             "there is no library \"%.60s\" in \"attention\"", library);
    return true;
}
