/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device files: every shipped one, fitted curves against the published measurements, interpolation,
 * invalid files.
 */
#include "data_files.h"
#include "sim/cost/device.h"
#include "sim/cost/device_fields.h"
#include "sim/cost/provenance.h"

#include <math.h>

START_TEST(device_files_are_valid)
{
    g_auto(GStrv) names = lh_data_list("devices");

    ck_assert_uint_ge(g_strv_length(names), 12);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhDevice) device = lh_device_load(*name, &error);
        g_autofree char *path = lh_data_find("devices", *name, NULL);

        ck_assert_msg(device != NULL, "%s", error != NULL ? error->message : *name);
        ck_assert_str_eq(device->name, *name);
        ck_assert_ptr_nonnull(device->description);
        ck_assert_uint_eq(strlen(device->sha256), 64);
        check_round_trip(path, lh_device_fields, sizeof(LhDevice));
    }
}
END_TEST

/* --- curves ------------------------------------------------------------------------------------
 */

#define POINTS_MAX 6

/* TFLOP/s at `length_first`, twice that, ...; 0 ends the row. */
typedef struct {
    const char *device;
    const char *kernel; /* "both": forward and backward together, 3.5 times the forward flops */
    bool causal;
    uint32_t head_dim;
    uint32_t length_first;
    double tolerance;
    double published[POINTS_MAX];
} PublishedRow;

static const PublishedRow published_rows[] = {
    /* Dao-AILab/flash-attention assets/flash2_a100_fwd_bwd_benchmark.png */
    { "a100-sxm-80g", "both", false, 64, 512, 0.032, { 132, 153, 162, 171, 175, 176 } },
    { "a100-sxm-80g", "both", false, 128, 512, 0.032, { 151, 173, 187, 196, 201, 203 } },
    { "a100-sxm-80g", "both", true, 64, 512, 0.032, { 88, 119, 140, 156, 165, 171 } },
    { "a100-sxm-80g", "both", true, 128, 512, 0.032, { 99, 133, 155, 173, 182, 189 } },
    { "a100-sxm-40g", "both", true, 128, 512, 0.032, { 99, 133, 155, 173, 182, 189 } },
    /* zhuzilin/ring-flash-attention, one GPU */
    { "a100-sxm-80g", "attention_block", true, 128, 8192, 0.01, { 205 } },
    { "a100-sxm-80g", "attention_fwd", false, 64, 1024, 0.03, { 141, 160, 161, 163, 167 } },
    { "a100-sxm-80g", "attention_fwd", true, 64, 1024, 0.015, { 112, 136, 150, 160, 164 } },
    { "a100-sxm-80g", "attention_bwd", true, 128, 8192, 0.01, { 174 } },
    /* Dao-AILab/flash-attention assets/flash3_fp16_fwd.png */
    { "h100-sxm", "attention_fwd", false, 64, 512, 0.05, { 333, 392, 460, 476, 496, 497 } },
    { "h100-sxm", "attention_fwd", true, 64, 512, 0.055, { 197, 265, 371, 420, 460, 473 } },
    { "h100-sxm", "attention_fwd", false, 128, 512, 0.05, { 467, 565, 625, 638, 646, 648 } },
    { "h100-sxm", "attention_fwd", true, 128, 512, 0.05, { 292, 423, 521, 579, 602, 616 } },
    /* FlashAttention-3 paper */
    { "h100-sxm", "attention_bwd", false, 64, 512, 0.05, { 272, 363, 422, 453, 472, 474 } },
    { "h100-sxm", "attention_bwd", false, 128, 512, 0.05, { 316, 424, 501, 542, 559, 561 } },
    /* Dao-AILab/flash-attention PR 1791 */
    { "h100-sxm", "attention_fwd", true, 128, 8192, 0.04, { 630 } },
    { "h100-sxm", "attention_bwd", true, 128, 8192, 0.001, { 532 } },
    /* NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results */
    { "h200-sxm", "attention_fwd", false, 128, 2048, 0.05, { 633, 671, 691, 702, 693 } },
    { "h200-sxm", "attention_fwd", true, 128, 2048, 0.05, { 484, 591, 644, 673, 688 } },
    { "h200-sxm", "attention_bwd", false, 128, 2048, 0.055, { 504, 560, 594, 612, 572 } },
    { "h200-sxm", "attention_bwd", true, 128, 2048, 0.05, { 370, 474, 541, 579, 581 } },
    { "gb200", "attention_fwd", false, 128, 2048, 0.1, { 1433, 1599, 1771, 1697, 1634 } },
    { "gb200", "attention_fwd", true, 128, 2048, 0.1, { 1097, 1408, 1574, 1708, 1622 } },
    { "gb200", "attention_bwd", false, 128, 2048, 0.1, { 1124, 1350, 1404, 1374, 1262 } },
    { "gb200", "attention_bwd", true, 128, 2048, 0.105, { 885, 1148, 1332, 1328, 1226 } },
    /* Dao-AILab/flash-attention PR 2280 */
    { "b200-sxm", "attention_fwd", false, 128, 8192, 0.001, { 1535 } },
    { "b200-sxm", "attention_fwd", true, 128, 8192, 0.001, { 1418 } },
    { "b200-sxm", "attention_bwd", false, 128, 8192, 0.001, { 1360 } },
    { "b200-sxm", "attention_bwd", true, 128, 8192, 0.001, { 1209 } },
};

static double
tflops(const LhDevice *device, const char *kernel, const PublishedRow *row, double length)
{
    LhKernelRate rate;

    if (strcmp(kernel, "both") == 0)
        return 3.5 / (1 / tflops(device, "attention_block", row, length) +
                      2.5 / tflops(device, "attention_bwd", row, length));
    ck_assert(lh_device_rate(device, kernel, row->causal, row->head_dim, &rate));
    ck_assert_uint_eq(rate.head_dim, row->head_dim);
    return rate.rate / 1e12 / (1 + rate.half_length / length);
}

START_TEST(device_curves_meet_published_tables)
{
    for (gsize i = 0; i < G_N_ELEMENTS(published_rows); i++) {
        const PublishedRow *row = &published_rows[i];
        g_autoptr(LhDevice) device = lh_device_load(row->device, NULL);
        double length = row->length_first;

        for (int k = 0; k < POINTS_MAX && row->published[k] > 0; k++, length *= 2) {
            const double found = tflops(device, row->kernel, row, length);

            ck_assert_msg(fabs(found / row->published[k] - 1) <= row->tolerance,
                          "%s %s causal %d d %u length %g: %g, published %g", row->device,
                          row->kernel, row->causal, row->head_dim, length, found,
                          row->published[k]);
        }
    }
}
END_TEST

/* Fitted curves of more than one point state their worst residual and the range of their table. */
START_TEST(device_curves_state_their_points)
{
    for (gsize i = 0; i < G_N_ELEMENTS(published_rows); i++) {
        const PublishedRow *row = &published_rows[i];
        const bool both = strcmp(row->kernel, "both") == 0;
        g_autoptr(LhDevice) device = lh_device_load(row->device, NULL);
        double length = row->length_first;
        LhKernelRate rate;

        ck_assert(lh_device_rate(device, both ? "attention_bwd" : row->kernel, row->causal,
                                 row->head_dim, &rate));
        if (rate.from.provenance != LH_PROVENANCE_FITTED)
            continue;
        for (int k = 0; k < POINTS_MAX && row->published[k] > 0; k++, length *= 2) {
            const double off =
                fabs(tflops(device, row->kernel, row, length) / row->published[k] - 1);

            ck_assert_double_ge(length, (double)rate.length_min);
            ck_assert_double_le(length, (double)rate.length_max);
            ck_assert_double_le(off, lh_fit_error(rate.from.provenance, &rate.residuals));
        }
        ck_assert_msg(row->published[1] <= 0 || rate.residuals.worst > 0, "%s %s has no residual",
                      row->device, row->kernel);
    }
}
END_TEST

/* A curve above the peak of its own device, or one without a source, is a mistake in the file. */
START_TEST(device_variants_scale)
{
    g_autoptr(LhDevice) sxm = lh_device_load("a100-sxm-80g", NULL);
    g_autoptr(LhDevice) pcie = lh_device_load("a100-pcie-80g", NULL);

    ck_assert_uint_eq(sxm->kernels->len, 12);
    ck_assert_uint_eq(pcie->kernels->len, 12);
    for (guint i = 0; i < sxm->kernels->len; i++) {
        const LhKernelRate *a = &g_array_index(sxm->kernels, LhKernelRate, i);
        const LhKernelRate *b = &g_array_index(pcie->kernels, LhKernelRate, i);

        ck_assert_double_eq_tol(b->rate / a->rate, 253.0 / 271.0, 1e-3);
        ck_assert_double_eq(b->half_length, a->half_length);
        if (strcmp(a->kernel, "attention_fwd") != 0 || a->head_dim == 64)
            ck_assert_int_eq(a->from.provenance, LH_PROVENANCE_FITTED);
        ck_assert_int_eq(b->from.provenance, LH_PROVENANCE_ASSUMED);
    }
}
END_TEST

/* --- look-up -----------------------------------------------------------------------------------
 */

static const char *const device_text =
    "{\n"
    "  \"schema\": \"longhaul.device/1\",\n"
    "  \"name\": \"d\",\n"
    "  \"source\": \"s\",\n"
    "  \"matrix_rate\": \"300TFLOP/s\",\n"
    "  \"matrix_efficiency\": 0.8,\n"
    "  \"matrix_provenance\": \"assumed\",\n"
    "  \"memory_capacity\": \"80GiB\",\n"
    "  \"memory_bandwidth\": \"2TB/s\",\n"
    "  \"memory_efficiency\": 0.75,\n"
    "  \"memory_provenance\": \"datasheet\",\n"
    "  \"sm_count\": 108,\n"
    "  \"kernel_launch\": \"3us\",\n"
    "  \"stream_sync\": \"8us\",\n"
    "  \"tile_rows\": 128,\n"
    "  \"kernels\": [\n"
    "    {\"kernel\": \"attention_fwd\", \"mask\": \"full\", \"head_dim\": 128,\n"
    "     \"rate\": \"200TFLOP/s\", \"half_length\": 200, \"provenance\": \"measured\", "
    "\"source\": "
    "\"s\"},\n"
    "    {\"kernel\": \"attention_fwd\", \"mask\": \"full\", \"head_dim\": 64,\n"
    "     \"rate\": \"100TFLOP/s\", \"half_length\": 100, \"provenance\": \"fitted\", \"source\": "
    "\"s\"}\n"
    "  ]\n"
    "}\n";

static LhDevice *
parse(const char *text, GError **error)
{
    return lh_device_parse("dir/d.json", text, strlen(text), error);
}

static LhDevice *
parse_ok(void)
{
    g_autoptr(GError) error = NULL;
    LhDevice *device = parse(device_text, &error);

    ck_assert_msg(device != NULL, "%s", error != NULL ? error->message : "no message");
    return device;
}

START_TEST(device_rate_interpolates)
{
    static const struct {
        const char *kernel;
        bool causal;
        uint32_t head_dim;
        double rate;
        double half_length;
        LhProvenance provenance;
    } cases[] = {
        { "attention_fwd", false, 128, 200e12, 200, LH_PROVENANCE_MEASURED },
        { "attention_fwd", false, 64, 100e12, 100, LH_PROVENANCE_FITTED },
        { "attention_fwd", false, 96, 150e12, 150, LH_PROVENANCE_FITTED },
        { "attention_fwd", false, 80, 125e12, 125, LH_PROVENANCE_FITTED },
        { "attention_fwd", false, 256, 200e12, 200, LH_PROVENANCE_ASSUMED },
        { "attention_fwd", false, 32, 100e12, 100, LH_PROVENANCE_ASSUMED },
        { "attention_fwd", true, 128, 200e12, 200, LH_PROVENANCE_ASSUMED },
        { "attention_block", false, 128, 200e12, 200, LH_PROVENANCE_FITTED },
        { "attention_block", true, 96, 150e12, 150, LH_PROVENANCE_ASSUMED },
    };
    g_autoptr(LhDevice) device = parse_ok();

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        LhKernelRate rate;

        ck_assert(
            lh_device_rate(device, cases[i].kernel, cases[i].causal, cases[i].head_dim, &rate));
        ck_assert_double_eq(rate.rate, cases[i].rate);
        ck_assert_double_eq(rate.half_length, cases[i].half_length);
        ck_assert_msg(rate.from.provenance == (int)cases[i].provenance, "case %zu: %s", i,
                      lh_provenance_names[rate.from.provenance]);
    }
}
END_TEST

START_TEST(device_without_curve_says_so)
{
    g_autoptr(LhDevice) device = parse_ok();
    g_autoptr(LhDevice) v100 = lh_device_load("v100", NULL);
    LhKernelRate rate;

    ck_assert(!lh_device_rate(device, "attention_bwd", false, 128, &rate));
    ck_assert(!lh_device_rate(device, "merge", false, 128, &rate));
    ck_assert(!lh_device_rate(device, "no such kernel", false, 128, &rate));
    ck_assert(!lh_device_rate(v100, "attention_fwd", true, 128, &rate));
}
END_TEST

START_TEST(device_values_are_read)
{
    g_autoptr(LhDevice) device = parse_ok();

    ck_assert_double_eq(device->matrix_rate, 300e12);
    ck_assert_uint_eq(device->memory_capacity, UINT64_C(80) << 30);
    ck_assert_double_eq(device->memory_bandwidth, 2e12);
    ck_assert_int_eq(device->kernel_launch_ps, 3000000);
    ck_assert_int_eq(device->stream_sync_ps, 8000000);
    ck_assert_int_eq(device->memory_provenance, LH_PROVENANCE_DATASHEET);
}
END_TEST

START_TEST(device_rejects_broken_files)
{
    static const BrokenInput broken[] = {
        { "\"300TFLOP/s\"", "\"300\"",
          "dir/d.json:5:18: error: \"matrix_rate\": \"300\" is not a speed such as 312TFLOP/s or "
          "19.5TFLOPS: it has no unit; allowed: a number, then FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, "
          "FLOPS, GFLOPS, TFLOPS or PFLOPS" },
        { "\"300TFLOP/s\"", "300",
          "dir/d.json:5:18: error: \"matrix_rate\" must be a speed such as 312TFLOP/s or "
          "19.5TFLOPS; "
          "found the number 300" },
        { "\"300TFLOP/s\"", "\"300GB/s\"",
          "dir/d.json:5:18: error: \"matrix_rate\": \"300GB/s\" is not a speed such as 312TFLOP/s "
          "or "
          "19.5TFLOPS: its unit is unknown; allowed: a number, then FLOP/s, GFLOP/s, TFLOP/s, "
          "PFLOP/s, FLOPS, GFLOPS, TFLOPS or PFLOPS" },
        { "\"2TB/s\"", "\"0GB/s\"",
          "dir/d.json:9:23: error: \"memory_bandwidth\" is out of range: found the string "
          "\"0GB/s\"; allowed: 1 B/s to 1000000 TB/s" },
        { "0.75", "1.5",
          "dir/d.json:10:24: error: \"memory_efficiency\" is out of range: found the number 1.5; "
          "allowed: 0.01 to 1" },
        { "\"80GiB\"", "-80",
          "dir/d.json:8:22: error: \"memory_capacity\" is out of range: found the number -80; "
          "allowed: 1 B to 909495 TiB" },
        { "\"datasheet\"", "\"data sheet\"",
          "dir/d.json:11:24: error: \"memory_provenance\" must be one of measured, fitted, "
          "datasheet, assumed (did you mean \"datasheet\"?); found the string \"data sheet\"" },
        { "\"3us\"", "\"3\"",
          "dir/d.json:13:20: error: \"kernel_launch\": \"3\" is not a time such as 2us, 1.5ms or "
          "300ns: it has no unit; allowed: a number, then ps, ns, us, ms or s" },
        { "108", "0",
          "dir/d.json:12:15: error: \"sm_count\" is out of range: found the number 0; allowed: 1 "
          "to "
          "65535" },
        { "\"attention_fwd\"", "\"attention_fwdd\"",
          "dir/d.json:17:16: error: unknown kernel \"attention_fwdd\"; did you mean "
          "\"attention_fwd\"? allowed: " },
        { "\"200TFLOP/s\"", "\"400TFLOP/s\"",
          "dir/d.json:18:14: error: \"kernels[0].rate\" is 400 TFLOP/s, above the device's "
          "\"matrix_rate\" 300 TFLOP/s" },
        { "\"head_dim\": 64", "\"head_dim\": 128",
          "dir/d.json:19:5: error: \"kernels[1]\" is the second curve for kernel attention_fwd, "
          "mask "
          "full, head_dim 128; the first is \"kernels[0]\"" },
        { "\"mask\": \"full\", \"head_dim\": 64", "\"head_dim\": 64",
          "dir/d.json:19:5: error: missing field \"mask\" in \"kernels[1]\"; it must be one of "
          "full, "
          "causal" },
        { "  \"tile_rows\": 128,\n", "",
          "dir/d.json:1:1: error: missing field \"tile_rows\" at the top level; it must be a "
          "non-negative integer" },
        { "  \"tile_rows\": 128,\n",
          "\"tile_rows\": 128, \"elementwise\": [\n"
          "{\"kernel\": \"merge\", \"bandwidth\": \"1GB/s\", \"provenance\": \"assumed\", "
          "\"source\": \"s\"},\n"
          "{\"kernel\": \"merge\", \"bandwidth\": \"1GB/s\", \"provenance\": \"assumed\", "
          "\"source\": \"s\"}],\n",
          "dir/d.json:17:1: error: \"elementwise[1]\" is the second bandwidth for kernel merge; "
          "the first is \"elementwise[0]\"" },
        { "  \"tile_rows\": 128,\n",
          "\"tile_rows\": 128, \"memory_context\": { \"bytes\": \"1GiB\", \"source\": \"s\" },\n",
          "dir/d.json:15:37: error: missing field \"provenance\" in \"memory_context\"; it must be "
          "one of measured, fitted, datasheet, assumed" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = break_text(device_text, &broken[i]);

        ck_assert_ptr_null(parse(bad, &error));
        /* The list of kernels grows over time. */
        if (g_str_has_suffix(broken[i].message, "allowed: "))
            error->message[MIN(strlen(error->message), strlen(broken[i].message))] = '\0';
        check_message(error, broken[i].message);
    }
}
END_TEST

/* Device memory, minus that of libraries, minus the margin. */
START_TEST(device_memory_is_not_all_usable)
{
    static const BrokenInput stated = {
        "  \"tile_rows\": 128,\n",
        "  \"tile_rows\": 128, \"memory_context\": { \"bytes\": "
        "\"2GiB\", \"provenance\": \"measured\", \"source\": \"s\" },\n",
        NULL
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDevice) assumed = parse(device_text, &error);
    g_autofree char *text = break_text(device_text, &stated);
    g_autoptr(LhDevice) device = parse(text, &error);
    const uint64_t capacity = UINT64_C(80) << 30;

    ck_assert_msg(assumed != NULL && device != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(lh_device_context_bytes(assumed), (uint64_t)(1.35 * 1073741824.0));
    ck_assert_uint_eq(lh_device_usable_bytes(assumed, 0),
                      capacity - (uint64_t)(1.35 * 1073741824.0));
    ck_assert_int_eq(device->memory_context.from.provenance, LH_PROVENANCE_MEASURED);
    ck_assert_uint_eq(lh_device_context_bytes(device), UINT64_C(2) << 30);
    ck_assert_uint_eq(lh_device_usable_bytes(device, 0), UINT64_C(78) << 30);
    ck_assert_uint_eq(lh_device_usable_bytes(device, 0.25), UINT64_C(58) << 30);
    ck_assert_uint_eq(lh_device_usable_bytes(device, 1), 0);
    device->memory_context.bytes = 0;
    ck_assert_uint_eq(lh_device_usable_bytes(device, 0), capacity);
    device->memory_capacity = UINT64_C(1) << 30;
    device->memory_context.bytes = capacity;
    ck_assert_uint_eq(lh_device_usable_bytes(device, LH_MEMORY_MARGIN), 0);
}
END_TEST

/* --- rows by tiles ------------------------------------------------------------------------------
 */

static const char *const rows_text =
    "{\n"
    "  \"schema\": \"longhaul.device/2\", \"name\": \"d\", \"source\": \"s\",\n"
    "  \"matrix_rate\": \"300TFLOP/s\", \"matrix_efficiency\": 0.8,\n"
    "  \"matrix_provenance\": \"assumed\", \"memory_capacity\": \"80GiB\",\n"
    "  \"memory_bandwidth\": \"2TB/s\", \"memory_efficiency\": 0.75,\n"
    "  \"memory_provenance\": \"datasheet\", \"sm_count\": 108, \"kernel_launch\": \"3us\",\n"
    "  \"stream_sync\": \"8us\", \"tile_rows\": 128, \"kernels\": [],\n"
    "  \"attention_kernel\": \"lib\",\n"
    "  \"attention\": [\n"
    "    {\"library\": \"lib\", \"direction\": \"fwd\", \"head_dim\": 128,\n"
    "     \"masks\": [\"full\", \"causal\"], \"tile_rows\": 128, \"tile_keys\": 64,\n"
    "     \"tile_of\": \"queries\", \"pack_groups\": true, \"order\": \"longest_first\",\n"
    "     \"prologue\": 1.5, \"rate\": \"200TFLOP/s\", \"sustained_rate\": \"150TFLOP/s\",\n"
    "     \"serving\": {\"launch\": \"8us\", \"l2\": \"50MiB\", \"beyond_l2\": \"1TB/s\"},\n"
    "     \"provenance\": \"fitted\", \"source\": \"s\"},\n"
    "    {\"library\": \"lib\", \"direction\": \"bwd\", \"head_dim\": 128,\n"
    "     \"masks\": [\"causal\"], \"tile_rows\": 64, \"tile_keys\": 128,\n"
    "     \"tile_of\": \"keys\", \"order\": \"linear\", \"rate\": \"100TFLOP/s\",\n"
    "     \"provenance\": \"measured\", \"source\": \"s\"}\n"
    "  ]\n"
    "}\n";

START_TEST(device_rows_are_read)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhDevice) device = parse(rows_text, &error);
    const LhAttentionRow *row;

    ck_assert_msg(device != NULL, "%s", error != NULL ? error->message : "no message");
    ck_assert_str_eq(device->attention_kernel, "lib");
    ck_assert_uint_eq(device->attention->len, 2);
    row = &g_array_index(device->attention, LhAttentionRow, 0);
    ck_assert(row->tiling.pack_groups && !row->tiling.of_keys);
    ck_assert_int_eq(row->tiling.order, LH_TILES_LONGEST_FIRST);
    ck_assert_uint_eq(row->tiling.rows, 128);
    ck_assert_uint_eq(row->tiling.columns, 64);
    ck_assert_double_eq(row->tiling.prologue, 1.5);
    ck_assert_double_eq(row->sustained_rate, 150e12);
    ck_assert_int_eq(row->knee_ps, LH_ATTENTION_KNEE_PS);
    ck_assert_uint_eq(row->serving.l2_bytes, 50u << 20);
    row = &g_array_index(device->attention, LhAttentionRow, 1);
    ck_assert(row->tiling.of_keys);
    ck_assert_int_eq(row->tiling.order, LH_TILES_LINEAR);
    ck_assert_double_eq(row->sustained_rate, 100e12); /* equals the rate by default */
}
END_TEST

START_TEST(device_rejects_broken_rows)
{
    static const BrokenInput broken[] = {
        { "longhaul.device/2", "longhaul.device/1",
          "dir/d.json:2:13: error: \"schema\" is longhaul.device/1, which has no \"attention\"; "
          "allowed: longhaul.device/2" },
        { "\"attention_kernel\": \"lib\"", "\"attention_kernel\": \"lob\"",
          "dir/d.json:8:23: error: unknown library \"lob\"; \"attention\" has no row of "
          "it" },
        { "[\"full\", \"causal\"]", "[\"full\", \"full\"]",
          "dir/d.json:11:24: error: \"attention[0].masks[1]\" is \"full\"; allowed: full, causal, "
          "each once" },
        { "[\"full\", \"causal\"]", "[\"window\"]",
          "dir/d.json:11:16: error: \"attention[0].masks[0]\" is \"window\"; allowed: full, "
          "causal, each once" },
        { "\"200TFLOP/s\"", "\"400TFLOP/s\"",
          "dir/d.json:13:31: error: \"attention[0].rate\" is 400 TFLOP/s, above the device's "
          "\"matrix_rate\" 300 TFLOP/s" },
        { "\"150TFLOP/s\"", "\"250TFLOP/s\"",
          "dir/d.json:13:63: error: \"attention[0].sustained_rate\" exceeds the row's \"rate\"" },
        { ", \"beyond_l2\": \"1TB/s\"", "",
          "dir/d.json:14:17: error: \"attention[0].serving\" has one of \"l2\" and "
          "\"beyond_l2\"; allowed: both or none" },
        { "\"tile_of\": \"queries\"", "\"tile_of\": \"keys\"",
          "dir/d.json:10:5: error: \"attention[0]\" packs groups into tiles of keys; allowed: "
          "into tiles of queries" },
        { "\"bwd\"", "\"fwd\"",
          "dir/d.json:16:5: error: \"attention[1]\" is the second row for library lib, direction "
          "fwd, head_dim 128 and one of its masks; the first is \"attention[0]\"" },
        { "\"prologue\": 1.5", "\"prologue\": -1",
          "dir/d.json:13:18: error: \"attention[0].prologue\" is out of range: found the number "
          "-1; allowed: 0 to 1000" },
        { "\"prologue\": 1.5",
          "\"residuals\": { \"quantiles\": [ { \"until\": \"9us\", \"error\": 0.1 }, { \"error\": "
          "0.1 }, "
          "{ \"error\": 0.1 } ] }",
          "dir/d.json:13:70: error: \"attention[0].residuals.quantiles[1]\" is out of order; "
          "allowed: "
          "each \"until\" above the one before, none in the last entry" },
        { "\"prologue\": 1.5",
          "\"residuals\": { \"quantiles\": [ { \"until\": \"9us\", \"error\": 0.1 } ] }",
          "dir/d.json:13:36: error: \"attention[0].residuals.quantiles[0]\" is out of order; "
          "allowed: "
          "each \"until\" above the one before, none in the last entry" },
        { "\"prologue\": 1.5", "\"prologue\": 1.5, \"resident\": 2",
          "dir/d.json:10:5: error: \"attention[0]\" has an order that is not supported for "
          "tiles that share an SM; allowed: linear" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = break_text(rows_text, &broken[i]);
        g_autoptr(LhDevice) device = parse(text, &error);

        ck_assert_ptr_null(device);
        check_message(error, broken[i].message);
    }
}
END_TEST

/* The error includes held-out points as well as fitted ones; a value that is neither measured nor
 * fitted has the error of its provenance. */
START_TEST(device_error_is_the_worst_known)
{
    const LhFitResiduals fitted = { .worst = 0.04, .holdout = 0.02 };
    const LhFitResiduals held = { .worst = 0.04, .holdout = 0.07 };

    ck_assert_double_eq(lh_fit_error(LH_PROVENANCE_MEASURED, &fitted), 0.04);
    ck_assert_double_eq(lh_fit_error(LH_PROVENANCE_FITTED, &held), 0.07);
    ck_assert_double_eq(lh_fit_error(LH_PROVENANCE_DATASHEET, &held),
                        lh_provenance_error(LH_PROVENANCE_DATASHEET));
}
END_TEST

LH_TEST_MAIN("device", device_rows_are_read, device_rejects_broken_rows, device_files_are_valid,
             device_curves_meet_published_tables, device_curves_state_their_points,
             device_variants_scale, device_rate_interpolates, device_without_curve_says_so,
             device_values_are_read, device_memory_is_not_all_usable, device_rejects_broken_files,
             device_error_is_the_worst_known)
