/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads traces of PyTorch's profiler (Kineto), and longhaul's own in Chrome's format: the GPU
 * events that fitting needs. Python functions, CPU operators and CUDA calls, nine tenths of a file,
 * are skipped.
 */
#include "import/trace/kineto.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "import/trace/events.h"
#include "import/trace/gpu_kernel_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef LH_WITH_ZLIB
#include <zlib.h>
#endif

#define NAMES_BYTES_MAX (16 << 20) /* of names whose classes are cached */
#define UNPACKED_BYTES_MIN ((uint64_t)LH_KINETO_UNPACKED_MIB << 20)
#define RANK_NONE UINT32_MAX
#define STEP_PREFIX "ProfilerStep#"

typedef struct {
    GArray *list;           /* of LhGpuTraceStep */
    GHashTable *by_numbers; /* number to index in the list plus one; keys are owned */
} Steps;

/* State of reading a file. */
typedef struct {
    LhGpuTraceRun *run;
    LhGpuTraceFile file;
    LhEventsResult result;
    bool own;          /* written by longhaul: the process of an event is its rank */
    uint32_t rank;     /* given by the file */
    guint first;       /* index in the run of its first kernel */
    Steps steps[2];    /* from GPU annotations, and from host annotations */
    GHashTable *names; /* class plus one by name; transfers in the higher bits */
    gsize names_bytes;
} KinetoReader;

/* The relevant members of an event. */
typedef struct {
    LhExcerpt ph, cat, name, ts, dur, pid, tid, args;
} Event;

static bool
read_event_members(LhExcerpt text, Event *e)
{
    const struct {
        const char *key;
        LhExcerpt *value;
    } wanted[] = { { "ph", &e->ph },   { "cat", &e->cat },  { "name", &e->name },
                   { "ts", &e->ts },   { "dur", &e->dur },  { "pid", &e->pid },
                   { "tid", &e->tid }, { "args", &e->args } };
    LhExcerpt key, value;
    bool broken = false;

    while (lh_excerpt_next(&text, &key, &value, &broken)) {
        for (guint i = 0; i < G_N_ELEMENTS(wanted); i++) {
            if (lh_excerpt_is(key, wanted[i].key))
                *wanted[i].value = value;
        }
    }
    return !broken;
}

/* Value of @name in an object; of length 0 if absent. */
static LhExcerpt
member(LhExcerpt object, const char *name)
{
    LhExcerpt key, value;
    bool broken = false;

    while (lh_excerpt_next(&object, &key, &value, &broken)) {
        if (lh_excerpt_is(key, name))
            return value;
    }
    return (LhExcerpt){ "", 0 };
}

/* Reads start and end; false if they are invalid. */
static bool
read_times(const Event *e, int64_t *start_ns, int64_t *end_ns)
{
    int64_t duration_ns;

    if (!lh_excerpt_scaled(e->ts, 1000, start_ns) ||
        !lh_excerpt_scaled(e->dur, 1000, &duration_ns) || duration_ns < 0 ||
        *start_ns > INT64_MAX / 2)
        return false;
    *end_ns = *start_ns + MIN(duration_ns, INT64_MAX / 4);
    return true;
}

/* --- collectives
 * -------------------------------------------------------------------------------- */

/* Bytes of an element of PyTorch's types; 0: unknown. */
static uint64_t
element_bytes(LhExcerpt dtype)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } types[] = { { "Byte", 1 },  { "Char", 1 }, { "Bool", 1 },  { "Half", 2 }, { "BFloat16", 2 },
                  { "Short", 2 }, { "Int", 4 },  { "Float", 4 }, { "Long", 8 }, { "Double", 8 } };
    g_autofree char *name = lh_excerpt_text(dtype);

    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        if (strcmp(name, types[i].name) == 0)
            return types[i].bytes;
    }
    return g_str_has_prefix(name, "Float8_") ? 1 : 0;
}

/* Reads PyTorch's arguments of a collective's kernel. The size of an all-gather is its output, of
 * all others a rank's input. */
static void
read_collective(LhExcerpt args, LhGpuTrace *seen)
{
    const LhExcerpt name = member(args, "Collective name");
    uint64_t elements = 0, group_size = 0;
    g_autofree char *text = NULL;

    if (name.length == 0)
        return;
    text = lh_excerpt_text(name);
    if (lh_gpu_trace_transfer(text) != LH_GPU_TRACE_UNKNOWN)
        seen->transfer = lh_gpu_trace_transfer(text);
    if (lh_excerpt_uint(member(args, "Group size"), &group_size) && group_size < LH_RANKS_MAX)
        seen->group_size = (uint32_t)group_size;
    if (lh_excerpt_uint(
            member(args, seen->transfer == LH_COLL_ALL_GATHER ? "Out msg nelems" : "In msg nelems"),
            &elements) &&
        elements < UINT64_MAX / 8)
        seen->bytes = elements * element_bytes(member(args, "dtype"));
}

/* --- events -------------------------------------------------------------------------------------
 */

/* Class of a name. Names repeat thousands of times; NAMES_BYTES_MAX limits the cache for files
 * whose names are all different. */
static LhGpuTraceClass
class_of(KinetoReader *r, LhExcerpt name, uint8_t *transfer)
{
    g_autofree char *text = lh_excerpt_text(name);
    guint known = GPOINTER_TO_UINT(g_hash_table_lookup(r->names, text));

    if (known == 0) {
        known = 1 + (guint)lh_gpu_trace_class(text, transfer);
        known |= (guint)*transfer << 8;
        if (r->names_bytes + name.length <= NAMES_BYTES_MAX) {
            r->names_bytes += name.length;
            g_hash_table_insert(r->names, g_steal_pointer(&text), GUINT_TO_POINTER(known));
        }
    }
    *transfer = (uint8_t)(known >> 8);
    return (LhGpuTraceClass)((known & 0xff) - 1);
}

/* Merges slices of one op: longhaul writes separate slices for transfer and for waiting, one after
 * another, which a profiler sees as one kernel. */
static bool
joins_last(const KinetoReader *r, const LhGpuTrace *piece)
{
    GArray *kernels = r->run->kernels;
    LhGpuTrace *last;

    if (kernels->len == r->first || piece->order == 0)
        return false;
    last = &g_array_index(kernels, LhGpuTrace, kernels->len - 1);
    if (last->class != LH_GPU_TRACE_COMM || last->rank != piece->rank ||
        last->order != piece->order)
        return false;
    last->start_ns = MIN(last->start_ns, piece->start_ns);
    last->end_ns = MAX(last->end_ns, piece->end_ns);
    if (last->transfer == LH_GPU_TRACE_UNKNOWN)
        last->transfer = piece->transfer;
    return true;
}

static void
add_kernel(KinetoReader *r, const Event *e)
{
    LhGpuTrace seen = { .rank = RANK_NONE };
    uint64_t number;

    seen.class = (uint8_t)class_of(r, e->name, &seen.transfer);
    if (r->own && !lh_excerpt_is(e->cat, "compute")) {
        seen.class = LH_GPU_TRACE_COMM;
        seen.transfer = LH_GPU_TRACE_UNKNOWN;
    }
    if (seen.class == LH_GPU_TRACE_OTHER || seen.class == LH_GPU_TRACE_HELPER)
        return;
    if (!read_times(e, &seen.start_ns, &seen.end_ns) ||
        r->run->kernels->len >= LH_GPU_TRACE_KERNELS_MAX) {
        r->file.dropped++;
        return;
    }
    if (lh_excerpt_uint(member(e->args, "stream"), &number) || lh_excerpt_uint(e->tid, &number))
        seen.stream = (uint32_t)MIN(number, UINT32_MAX);
    if (lh_excerpt_uint(member(e->args, r->own ? "op" : "correlation"), &number))
        seen.order = number + (r->own ? 1 : 0);
    if (r->own && lh_excerpt_uint(e->pid, &number) && number < LH_RANKS_MAX)
        seen.rank = (uint32_t)number;
    if (r->own && seen.class == LH_GPU_TRACE_COMM) {
        g_autofree char *name = lh_excerpt_text(e->name);

        seen.transfer = lh_gpu_trace_transfer(name);
    }
    if (seen.class == LH_GPU_TRACE_COMM && !r->own)
        read_collective(e->args, &seen);
    if (!r->own || seen.class != LH_GPU_TRACE_COMM || !joins_last(r, &seen))
        g_array_append_val(r->run->kernels, seen);
}

/* The step, or NULL if it is new. */
static LhGpuTraceStep *
find_step(const Steps *steps, uint64_t number)
{
    const gint64 key = (gint64)number;
    const guint place = GPOINTER_TO_UINT(g_hash_table_lookup(steps->by_numbers, &key));

    return place == 0 ? NULL : &g_array_index(steps->list, LhGpuTraceStep, place - 1);
}

/* Adds a step, whose annotation appears once for each stream with work of it. */
static void
add_step(KinetoReader *r, const Event *e, Steps *steps)
{
    g_autofree char *name = lh_excerpt_text(e->name);
    LhGpuTraceStep step = { .rank = RANK_NONE };
    LhGpuTraceStep *known;

    if (!g_str_has_prefix(name, STEP_PREFIX))
        return;
    step.number = g_ascii_strtoull(name + strlen(STEP_PREFIX), NULL, 10);
    known = find_step(steps, step.number);
    if (!read_times(e, &step.start_ns, &step.end_ns) ||
        (known == NULL && steps->list->len >= LH_GPU_TRACE_STEPS_MAX)) {
        r->file.dropped++;
    } else if (known == NULL) {
        g_array_append_val(steps->list, step);
        g_hash_table_insert(steps->by_numbers, g_memdup2(&step.number, sizeof(step.number)),
                            GUINT_TO_POINTER(steps->list->len));
    } else {
        known->start_ns = MIN(known->start_ns, step.start_ns);
        known->end_ns = MAX(known->end_ns, step.end_ns);
    }
}

static void
add_event(void *data, LhExcerpt text, uint64_t line)
{
    KinetoReader *r = data;
    Event e = { .args = { "", 0 } };

    (void)line;
    if (!read_event_members(text, &e)) {
        r->result.broken++;
        return;
    }
    if (!lh_excerpt_is(e.ph, "X"))
        return;
    if (lh_excerpt_is(e.cat, "kernel") || lh_excerpt_is(e.cat, "Kernel") ||
        (r->own && (lh_excerpt_is(e.cat, "compute") || lh_excerpt_is(e.cat, "exchange") ||
                    lh_excerpt_is(e.cat, "collective") || lh_excerpt_is(e.cat, "wait"))))
        add_kernel(r, &e);
    else if (lh_excerpt_is(e.cat, "gpu_user_annotation"))
        add_step(r, &e, &r->steps[0]);
    else if (lh_excerpt_is(e.cat, "user_annotation"))
        add_step(r, &e, &r->steps[1]);
}

static void
add_member(void *data, LhExcerpt key, LhExcerpt value)
{
    KinetoReader *r = data;
    uint64_t rank;

    if (key.length == strlen("otherData") && memcmp(key.at, "otherData", key.length) == 0)
        r->own = lh_excerpt_is(member(value, "schema"), "longhaul.trace/1");
    else if (key.length == strlen("distributedInfo") &&
             memcmp(key.at, "distributedInfo", key.length) == 0 &&
             lh_excerpt_uint(member(value, "rank"), &rank) && rank < LH_RANKS_MAX)
        r->rank = (uint32_t)rank;
}

/* --- files --------------------------------------------------------------------------------------
 */

/* Assigns the file's rank to its kernels and steps. */
static void
take_rank(KinetoReader *r)
{
    const uint32_t rank = r->rank != RANK_NONE ? r->rank : r->run->files->len;
    const GArray *steps = r->steps[r->steps[0].list->len > 0 ? 0 : 1].list;

    r->file.kind = r->own ? "longhaul trace" : "Kineto trace";
    r->file.rank = rank;
    for (guint i = r->first; i < r->run->kernels->len; i++) {
        LhGpuTrace *seen = &g_array_index(r->run->kernels, LhGpuTrace, i);

        if (seen->rank == RANK_NONE)
            seen->rank = rank;
    }
    for (guint i = 0; i < steps->len; i++) {
        g_array_index(steps, LhGpuTraceStep, i).rank = rank;
        g_array_append_val(r->run->steps, g_array_index(steps, LhGpuTraceStep, i));
    }
    r->file.kernels = r->run->kernels->len - r->first;
    r->file.steps = steps->len;
    r->file.events = r->result.events;
    r->file.broken += r->result.broken;
    r->file.sha256 = g_steal_pointer(&r->result.sha256);
    g_array_append_val(r->run->files, r->file);
}

static bool
read_all(LhGpuTraceRun *run, const char *path, LhEventsRead read, void *read_data, GError **error)
{
    KinetoReader r = { .run = run, .rank = RANK_NONE, .first = run->kernels->len };
    const LhEventsSink sink = { .event = add_event, .member = add_member, .data = &r };
    bool ok;

    r.file.path = g_strdup(path);
    r.names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; i < 2; i++) {
        r.steps[i].list = g_array_new(FALSE, FALSE, sizeof(LhGpuTraceStep));
        r.steps[i].by_numbers = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    }
    ok = lh_events_read(path, read, read_data, &sink, &r.result, error);
    if (ok)
        take_rank(&r);
    else
        g_free(r.file.path);
    for (int i = 0; i < 2; i++) {
        g_array_unref(r.steps[i].list);
        g_hash_table_unref(r.steps[i].by_numbers);
    }
    g_hash_table_unref(r.names);
    return ok;
}

/* Reads from a text in memory. */
static gssize
read_text(void *data, char *into, gsize size, GError **error)
{
    LhExcerpt *left = data;
    const gsize n = MIN(size, left->length);

    (void)error;
    if (n == 0)
        return 0;
    memcpy(into, left->at, n);
    left->at += n;
    left->length -= n;
    return (gssize)n;
}

bool
lh_kineto_parse(LhGpuTraceRun *run, const char *file, const char *text, gsize length,
                GError **error)
{
    LhExcerpt left = { text, length };

    return read_all(run, file, read_text, &left, error);
}

#ifdef LH_WITH_ZLIB

typedef struct {
    const char *path;
    gzFile gz;
    uint64_t bytes;     /* decompressed so far */
    uint64_t bytes_max; /* limit; 0: depends on the compressed bytes read */
} Source;

/* Limits the decompressed size. gzip compresses uniform data up to a thousandfold, the events of a
 * trace about twentyfold. The bytes read count, not the length stated in the file. */
static bool
check_length(const Source *source, GError **error)
{
    const gint64 offset = gzoffset(source->gz);
    const uint64_t packed = offset > 0 ? (uint64_t)offset : 0;
    const uint64_t most = source->bytes_max > 0
                              ? source->bytes_max
                              : MAX(UNPACKED_BYTES_MIN, packed * LH_KINETO_RATIO_MAX);
    g_autofree char *length = NULL;
    g_autofree char *read = NULL;

    if (source->bytes <= most || gzdirect(source->gz))
        return true;
    length = lh_format_bytes(most);
    read = lh_format_bytes(packed);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: the first %s of the file decompress to more than %s; allowed: %s; for "
                "a valid trace, raise the limit with --max-unpacked SIZE",
                source->path, read, length,
                source->bytes_max > 0 ? "the value of --max-unpacked" : LH_KINETO_UNPACKED);
    return false;
}

/* Reads compressed or plain files, which zlib tells apart by their first bytes. */
static gssize
read_unpacked(void *data, char *into, gsize size, GError **error)
{
    Source *source = data;
    const int got = gzread(source->gz, into, (unsigned)size);
    int code = Z_OK;
    const char *why = got < 0 ? gzerror(source->gz, &code) : NULL;

    if (got < 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: cannot be read: %s", source->path,
                    code == Z_ERRNO ? g_strerror(errno) : why);
        return -1;
    }
    source->bytes += (uint64_t)got;
    return check_length(source, error) ? got : -1;
}

bool
lh_kineto_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    FILE *file = lh_input_open(path, error);
    Source source = { .path = path, .bytes_max = run->unpacked_bytes_max };
    bool ok = false;

    if (file == NULL)
        return false;
    source.gz = gzdopen(dup(fileno(file)), "rb");
    if (source.gz == NULL)
        lh_error_read(path, ENOMEM, error);
    else
        ok = read_all(run, path, read_unpacked, &source, error);
    if (source.gz != NULL)
        gzclose(source.gz);
    fclose(file);
    return ok;
}

#else

typedef struct {
    const char *path;
    FILE *file;
    bool begun;
} Source;

static gssize
read_unpacked(void *data, char *into, gsize size, GError **error)
{
    Source *source = data;
    const size_t got = fread(into, 1, size, source->file);

    if (ferror(source->file)) {
        lh_error_read(source->path, errno, error);
        return -1;
    }
    if (!source->begun && got >= 2 && into[0] == '\x1f' && (unsigned char)into[1] == 0x8b) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: compressed by gzip, but longhaul was built without zlib; allowed: the "
                    "file decompressed by gunzip",
                    source->path);
        return -1;
    }
    source->begun = true;
    return (gssize)got;
}

bool
lh_kineto_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    Source source = { .path = path, .file = lh_input_open(path, error) };
    bool ok;

    if (source.file == NULL)
        return false;
    ok = read_all(run, path, read_unpacked, &source, error);
    fclose(source.file);
    return ok;
}

#endif
