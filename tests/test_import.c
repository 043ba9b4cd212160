/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading profiler traces: kernel names, times to the nanosecond, bytes of collectives, and broken
 * files. tests/cli/import.py covers the whole way to constants.
 */
#include "base/error.h"
#include "base/files/data_files.h"
#include "import/trace/events.h"
#include "import/trace/gpu_kernel_names.h"
#include "import/trace/kineto.h"

#include "run_tests.h"

#include <string.h>

static char *
path_of(const char *name)
{
    return g_build_filename(g_getenv("LONGHAUL_DATA_DIR"), "tests", "data", "import", name, NULL);
}

static LhGpuTraceRun *
load(const char *name)
{
    g_autofree char *path = path_of(name);
    g_autoptr(GError) error = NULL;
    LhGpuTraceRun *run = lh_gpu_trace_new();

    ck_assert_msg(lh_gpu_trace_load(run, path, &error), "%s", error != NULL ? error->message : "");
    ck_assert_msg(lh_gpu_trace_finish(run, &error), "%s", error != NULL ? error->message : "");
    return run;
}

static const LhGpuTrace *
seen_at(const LhGpuTraceRun *run, guint index)
{
    ck_assert_uint_lt(index, run->kernels->len);
    return &g_array_index(run->kernels, LhGpuTrace, index);
}

START_TEST(reads_numbers_exactly)
{
    static const struct {
        const char *text;
        int64_t scale, value;
    } numbers[] = {
        { "0", 1000, 0 },
        { "12", 1000, 12000 },
        { "1712195495502094.549", 1000, INT64_C(1712195495502094549) },
        { "\"99.9\"", 1000, 99900 },
        { "0.0005", 1000, 1 },
        { "0.0004999", 1000, 0 },
        { "2.9999", 1000, 3000 },
        { "-3.25", 1000, -3250 },
        { "1.5e3", 1000, 1500000 },
        { "7", 1, 7 },
    };
    static const char *const wrong[] = { "",
                                         "\"\"",
                                         "nan",
                                         "1e400",
                                         "0x10",
                                         "1 2",
                                         "--1",
                                         "1.2.3",
                                         ".5",
                                         "null",
                                         "true",
                                         "[1]",
                                         "99999999999999999999" };
    int64_t value;

    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const LhExcerpt span = { numbers[i].text, strlen(numbers[i].text) };

        ck_assert_msg(lh_excerpt_scaled(span, numbers[i].scale, &value), "%s", numbers[i].text);
        ck_assert_int_eq(value, numbers[i].value);
    }
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++)
        ck_assert_msg(!lh_excerpt_scaled((LhExcerpt){ wrong[i], strlen(wrong[i]) }, 1000, &value),
                      "%s", wrong[i]);
}
END_TEST

START_TEST(knows_kernels_by_name)
{
    static const struct {
        const char *name;
        LhGpuTraceClass class;
        uint8_t transfer;
    } names[] = {
        { "void flash_fwd_kernel<X>(Flash_fwd_params)", LH_GPU_TRACE_ATTEND, LH_GPU_TRACE_UNKNOWN },
        { "void flash_fwd_splitkv_kernel<X>(P)", LH_GPU_TRACE_ATTEND, LH_GPU_TRACE_UNKNOWN },
        { "void flash_fwd_splitkv_combine_kernel<X>(P)", LH_GPU_TRACE_HELPER,
          LH_GPU_TRACE_UNKNOWN },
        { "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<X> > >(P)",
          LH_GPU_TRACE_ATTEND, LH_GPU_TRACE_UNKNOWN },
        { "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<X> >(P)", LH_GPU_TRACE_HELPER,
          LH_GPU_TRACE_UNKNOWN },
        { "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<X> > >(P)",
          LH_GPU_TRACE_ATTEND_GRAD, LH_GPU_TRACE_UNKNOWN },
        { "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object",
          LH_GPU_TRACE_ATTEND, LH_GPU_TRACE_UNKNOWN },
        { "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", LH_GPU_TRACE_ATTEND,
          LH_GPU_TRACE_UNKNOWN },
        { "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16", LH_GPU_TRACE_ATTEND_GRAD,
          LH_GPU_TRACE_UNKNOWN },
        { "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(P)", LH_GPU_TRACE_ATTEND,
          LH_GPU_TRACE_UNKNOWN },
        { "void thd_out_correction_kernel<X>(P)", LH_GPU_TRACE_MERGE, LH_GPU_TRACE_UNKNOWN },
        { "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", LH_GPU_TRACE_COMM,
          LH_GPU_TRACE_MESSAGES },
        { "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(X)", LH_GPU_TRACE_COMM, LH_COLL_ALL_REDUCE },
        { "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(X)", LH_GPU_TRACE_COMM,
          LH_COLL_REDUCE_SCATTER },
        { "ncclKernel_AllGather_RING_LL_Sum_int8_t(X)", LH_GPU_TRACE_COMM, LH_COLL_ALL_GATHER },
        { "ncclDevKernel_Generic(X)", LH_GPU_TRACE_COMM, LH_GPU_TRACE_UNKNOWN },
        { "attention_bwd_o", LH_GPU_TRACE_ATTEND_GRAD, LH_GPU_TRACE_UNKNOWN },
        { "void at::native::vectorized_elementwise_kernel<4, X>(int)", LH_GPU_TRACE_OTHER,
          LH_GPU_TRACE_UNKNOWN },
        { "", LH_GPU_TRACE_OTHER, LH_GPU_TRACE_UNKNOWN },
    };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        uint8_t transfer;

        ck_assert_msg(lh_gpu_trace_class(names[i].name, &transfer) == names[i].class, "%s",
                      names[i].name);
        ck_assert_msg(transfer == names[i].transfer, "%s", names[i].name);
    }
    ck_assert_uint_eq(lh_gpu_trace_transfer("all_to_allv"), LH_COLL_ALL_TO_ALL);
    ck_assert_uint_eq(lh_gpu_trace_transfer("_reduce_scatter_base"), LH_COLL_REDUCE_SCATTER);
    ck_assert_uint_eq(lh_gpu_trace_transfer("nccl:coalesced"), LH_GPU_TRACE_MESSAGES);
    ck_assert_uint_eq(lh_gpu_trace_transfer("barrier"), LH_GPU_TRACE_UNKNOWN);
}
END_TEST

START_TEST(reads_a_trace)
{
    g_autoptr(LhGpuTraceRun) run = load("kineto.json");
    const LhGpuTraceFile *file = &g_array_index(run->files, LhGpuTraceFile, 0);
    const LhGpuTraceStep *step = &g_array_index(run->steps, LhGpuTraceStep, 0);
    const LhGpuTrace *attend = seen_at(run, 0), *gather = seen_at(run, 1),
                     *message = seen_at(run, 2);

    ck_assert_uint_eq(run->kernels->len, 3);
    ck_assert_uint_eq(file->rank, 5);
    ck_assert_uint_eq(file->events, 12);
    ck_assert_uint_eq(file->dropped, 1); /* of a negative duration */
    ck_assert_uint_eq(file->broken, 0);
    ck_assert_uint_eq(attend->class, LH_GPU_TRACE_ATTEND);
    ck_assert_int_eq(attend->end_ns - attend->start_ns, 880120);
    ck_assert_uint_eq(attend->rank, 5);
    ck_assert_uint_eq(attend->stream, 7);
    ck_assert_uint_eq(attend->order, 11);
    ck_assert_uint_eq(gather->transfer, LH_COLL_ALL_GATHER);
    ck_assert_int_eq(gather->end_ns - gather->start_ns, 410000);
    ck_assert_uint_eq(gather->bytes, 16384);
    ck_assert_uint_eq(gather->group_size, 8);
    ck_assert_uint_eq(message->transfer, LH_GPU_TRACE_MESSAGES);
    ck_assert_int_eq(message->start_ns, 511001);
    ck_assert_int_eq(message->end_ns - message->start_ns, 250);
    ck_assert_uint_eq(run->steps->len, 1); /* the GPU's steps, merged over its streams */
    ck_assert_uint_eq(step->number, 3);
    ck_assert_int_eq(step->start_ns, 99998);
    ck_assert_int_eq(step->end_ns, 1000001);
}
END_TEST

/* A published trace. */
START_TEST(reads_a_published_trace)
{
    g_autoptr(LhGpuTraceRun) run = load("kineto-hta.json");
    const LhGpuTrace *first = seen_at(run, 1);

    ck_assert_uint_eq(run->kernels->len, 3);
    ck_assert_uint_eq(run->steps->len, 2);
    ck_assert_uint_eq(seen_at(run, 0)->transfer, LH_COLL_BROADCAST);
    ck_assert_uint_eq(first->class, LH_GPU_TRACE_COMM);
    ck_assert_uint_eq(first->transfer, LH_COLL_ALL_REDUCE);
    ck_assert_uint_eq(first->group_size, 2);
    ck_assert_uint_eq(first->bytes, UINT64_C(6637568) * 4);
    ck_assert_int_eq(first->start_ns, INT64_C(4458677009853422));
    ck_assert_int_eq(first->end_ns - first->start_ns, 2636669);
    ck_assert_uint_eq(g_array_index(run->steps, LhGpuTraceStep, 0).number, 4);
}
END_TEST

#define KERNEL                                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"flash_fwd_kernel\",\"pid\":0,\"tid\":7,"          \
    "\"ts\":1,\"dur\":2,\"args\":{}}"

START_TEST(says_what_is_wrong)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "t.json:1: error: the file ends here; allowed: a trace in JSON, which begins with "
              "'{' or '['" },
        { "\n\nSQLite", "t.json:3: error: found 'S'; allowed: a trace in JSON" },
        { "{}", "t.json:1: error: there is no \"traceEvents\"" },
        { "{\"traceEvents\": {}}", "t.json:1: error: found '{'; allowed: a list of events" },
        { "{\"traceEvents\": [\n" KERNEL ",\n{\"ph\":", "t.json:3: error: the file ends within" },
        { "{\"traceEvents\": [\n" KERNEL "\n", "t.json:3: error: the file ends here" },
        { "[" KERNEL ", 5]", "t.json:1: error: found '5'; allowed: an event" },
        { "{\"a\" 1}", "t.json:1: error: found '1'; allowed: ':'" },
        { "{\"traceEvents\": [" KERNEL "], \"x\": \"y", "t.json:1: error: the value of a member" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();
        g_autoptr(GError) error = NULL;

        ck_assert(!lh_kineto_parse(run, "t.json", cases[i].text, strlen(cases[i].text), &error));
        ck_assert_int_eq(error->code, LH_ERROR_INPUT);
        ck_assert_msg(g_str_has_prefix(error->message, cases[i].message), "%s", error->message);
    }
}
END_TEST

/* Steps beyond the limit are counted, and steps are found by number. */
START_TEST(steps_are_bounded)
{
    g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();
    g_autoptr(GString) text = g_string_new("[" KERNEL);
    g_autoptr(GError) error = NULL;
    const LhGpuTraceStep *last;

    for (guint twice = 0; twice < 2; twice++) {
        for (guint i = 0; i < LH_GPU_TRACE_STEPS_MAX + 2 * (1 - twice); i++)
            g_string_append_printf(text,
                                   ",\n{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":"
                                   "\"ProfilerStep#%u\",\"ts\":%u,\"dur\":1}",
                                   i, i + twice);
    }
    g_string_append_c(text, ']');
    ck_assert_msg(lh_kineto_parse(run, "t.json", text->str, text->len, &error), "%s",
                  error != NULL ? error->message : "");
    ck_assert_uint_eq(run->steps->len, LH_GPU_TRACE_STEPS_MAX);
    ck_assert_uint_eq(g_array_index(run->files, LhGpuTraceFile, 0).dropped, 2);
    last = &g_array_index(run->steps, LhGpuTraceStep, LH_GPU_TRACE_STEPS_MAX - 1);
    ck_assert_int_eq(last->start_ns, (int64_t)(LH_GPU_TRACE_STEPS_MAX - 1) * 1000);
    ck_assert_int_eq(last->end_ns, last->start_ns + 2000);
}
END_TEST

/* Unescaped names invalidate one event, not the file. */
START_TEST(reads_past_broken_events)
{
    static const char text[] =
        "{\"traceEvents\": [\n  " KERNEL ",\n"
        "  {\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a \"quoted\" name, with one more \",\n"
        "    \"pid\":1}\n,\n"
        "  {\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"never closed, \"pid\":1]},\n"
        "  " KERNEL ",\n"
        "  {\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"flash_fwd_kernel\",\"ts\":\"x\",\"dur\":1}\n"
        "]}\n";
    g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();
    g_autoptr(GError) error = NULL;
    const LhGpuTraceFile *file;

    ck_assert_msg(lh_kineto_parse(run, "t.json", text, strlen(text), &error), "%s",
                  error != NULL ? error->message : "");
    file = &g_array_index(run->files, LhGpuTraceFile, 0);
    ck_assert_uint_eq(run->kernels->len, 2);
    ck_assert_uint_eq(file->broken, 2);
    ck_assert_uint_eq(file->dropped, 1);
}
END_TEST

START_TEST(refuses_two_files_of_one_rank)
{
    static const char text[] = "{\"distributedInfo\":{\"rank\":3},\"traceEvents\":[" KERNEL "]}";
    g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();
    g_autoptr(GError) error = NULL;

    ck_assert(lh_kineto_parse(run, "a.json", text, strlen(text), NULL));
    ck_assert(lh_kineto_parse(run, "b.json", text, strlen(text), NULL));
    ck_assert(!lh_gpu_trace_finish(run, &error));
    ck_assert_str_eq(error->message, "b.json: error: a trace of rank 3, like a.json; allowed: one "
                                     "file per rank");
}
END_TEST

LH_TEST_MAIN("import", reads_numbers_exactly, knows_kernels_by_name, reads_a_trace,
             reads_a_published_trace, says_what_is_wrong, steps_are_bounded,
             reads_past_broken_events, refuses_two_files_of_one_rank)
