/* SPDX-License-Identifier: Apache-2.0 */
/* Profiler traces: the result does not depend on how the file is chunked, and is consistent. */
#include "fuzz.h"
#include "import/trace/events.h"
#include "import/trace/kineto.h"

#include <string.h>

#define CHUNK 7

typedef struct {
    const uint8_t *at;
    size_t length;
} Rest;

static gssize
read_chunk(void *data, char *into, gsize size, GError **error)
{
    Rest *rest = data;
    const size_t n = MIN(MIN(size, CHUNK), rest->length);

    (void)error;
    if (n > 0)
        memcpy(into, rest->at, n);
    rest->at += n;
    rest->length -= n;
    return (gssize)n;
}

/* Excerpts lie within the event; each member begins with its name. */
static void
check_event(void *data, LhExcerpt text, uint64_t line)
{
    const char *const end = text.at + text.length;
    LhExcerpt at = text, key, value;
    bool broken = false;
    uint64_t *events = data;

    g_assert(line > 0 && text.length <= LH_EVENT_BYTES_MAX);
    while (lh_excerpt_next(&at, &key, &value, &broken)) {
        g_autofree char *name = lh_excerpt_text(key);
        g_autofree char *word = lh_excerpt_text(value);
        int64_t number;

        g_assert(*key.at == '"' && key.at >= text.at && key.at + key.length <= end);
        g_assert(value.length > 0 && value.at + value.length <= end);
        g_assert(g_utf8_validate(name, -1, NULL) && g_utf8_validate(word, -1, NULL));
        lh_excerpt_scaled(value, 1000, &number);
    }
    (*events)++;
}

static void
ignore_member(void *data, LhExcerpt key, LhExcerpt value)
{
    (void)data;
    g_assert(key.length < LH_EVENT_BYTES_MAX && value.length > 0);
}

static void
check_chunks(const uint8_t *data, size_t size, bool ok, const LhGpuTraceRun *run)
{
    Rest rest = { data, size };
    uint64_t events = 0;
    const LhEventsSink sink = { check_event, ignore_member, &events };
    LhEventsResult result;
    g_autoptr(GError) error = NULL;

    g_assert(lh_events_read(FUZZ_NAME, read_chunk, &rest, &sink, &result, &error) == ok);
    fuzz_check_file(ok, error);
    g_assert(result.events == events);
    if (ok) {
        const LhGpuTraceFile *file = &g_array_index(run->files, LhGpuTraceFile, 0);

        g_assert(file->events == events && file->broken >= result.broken);
        g_assert_cmpstr(file->sha256, ==, result.sha256);
    }
    g_free(result.sha256);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(LhGpuTraceRun) run = lh_gpu_trace_new();
    g_autoptr(GError) error = NULL;
    const bool ok = lh_kineto_parse(run, FUZZ_NAME, (const char *)data, size, &error);

    fuzz_check_file(ok, error);
    check_chunks(data, size, ok, run);
    for (guint i = 0; i < run->kernels->len; i++) {
        const LhGpuTrace *seen = &g_array_index(run->kernels, LhGpuTrace, i);

        g_assert(seen->end_ns >= seen->start_ns && seen->class < LH_GPU_TRACE_CLASSES);
        g_assert(seen->transfer <= LH_GPU_TRACE_UNKNOWN && (!ok || seen->rank < LH_RANKS_MAX));
    }
    if (ok)
        g_assert(lh_gpu_trace_finish(run, NULL) == (run->kernels->len > 0));
    return 0;
}
