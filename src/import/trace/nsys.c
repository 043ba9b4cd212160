/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of each table. Names tell kernels apart, and processes tell ranks apart. */
#include "import/trace/nsys.h"

#include "base/error.h"
#include "import/trace/gpu_kernel_names.h"
#include "import/trace/nsys_private.h"

#define PROCESSES_MAX 65536u
#define PID(global) ((uint64_t)(global) / 0x1000000 % 0x1000000)

/* Schemas of the NCCL ranges that open a communicator (nvtx_payload_schemas.h). */
#define SCHEMA_FIRST UINT64_C(0x1000000)
#define SCHEMA_INIT_RANK (SCHEMA_FIRST + 0)
#define SCHEMA_INIT_RANK_CONFIG (SCHEMA_FIRST + 11)

/* --- tables -------------------------------------------------------------------------------------
 */

/* StringIds: id, value. */
static void
read_string_row(LhNsysReader *r, sqlite3_stmt *row)
{
    const char *value = (const char *)sqlite3_column_text(row, 1);
    uint8_t transfer;
    LhGpuTraceClass class;
    int64_t id;

    if (value == NULL || !lh_nsys_int(row, 0, &id) || id < 0 || id > INT32_MAX)
        return;
    class = lh_gpu_trace_class(value, &transfer);
    if (class != LH_GPU_TRACE_OTHER && class != LH_GPU_TRACE_HELPER)
        g_hash_table_insert(r->classes, GUINT_TO_POINTER((guint)id),
                            GUINT_TO_POINTER(1 + (guint) class + ((guint)transfer << 8)));
}

/* Kernels: start, end, streamId, correlationId, demangledName, globalPid. */
static void
read_kernel(LhNsysReader *r, sqlite3_stmt *row)
{
    int64_t start, end, stream, correlation, name, global;
    LhGpuTrace seen = { .rank = 0 };
    uint64_t pid;
    guint known;

    if (!lh_nsys_int(row, 4, &name) || name < 0 || name > INT32_MAX)
        return;
    known = GPOINTER_TO_UINT(g_hash_table_lookup(r->classes, GUINT_TO_POINTER((guint)name)));
    if (known == 0)
        return;
    /* Kernels that ran before the profiler started have negative times. */
    if (!lh_nsys_int(row, 0, &start) || !lh_nsys_int(row, 1, &end) || start < 0 || end < start ||
        r->run->kernels->len >= LH_GPU_TRACE_KERNELS_MAX) {
        r->file.dropped++;
        return;
    }
    seen.start_ns = start;
    seen.end_ns = end;
    seen.class = (uint8_t)((known & 0xff) - 1);
    seen.transfer = (uint8_t)(known >> 8);
    if (lh_nsys_int(row, 2, &stream))
        seen.stream = (uint32_t)CLAMP(stream, 0, UINT32_MAX);
    if (!lh_nsys_int(row, 3, &correlation))
        correlation = 0;
    seen.order = (uint64_t)MAX(correlation, 0);
    pid = lh_nsys_int(row, 5, &global) ? PID(global) : 0;
    g_array_append_val(r->pids, pid);
    g_array_append_val(r->correlations, correlation);
    g_array_append_val(r->run->kernels, seen);
}

LhNsysProcess *
lh_nsys_process(LhNsysReader *r, uint64_t pid)
{
    const LhNsysProcess process = { .pid = pid };
    guint at = 0, high = r->processes->len;

    while (at < high) {
        const guint middle = at + (high - at) / 2;

        if (g_array_index(r->processes, LhNsysProcess, middle).pid < pid)
            at = middle + 1;
        else
            high = middle;
    }
    if (at < r->processes->len && g_array_index(r->processes, LhNsysProcess, at).pid == pid)
        return &g_array_index(r->processes, LhNsysProcess, at);
    if (r->processes->len == PROCESSES_MAX)
        return NULL;
    g_array_insert_val(r->processes, at, process);
    return &g_array_index(r->processes, LhNsysProcess, at);
}

static uint64_t
word_at(const unsigned char *bytes, size_t offset, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[offset + i] << 8 * i;
    return value;
}

/* Reads NCCL's payload for opening a communicator: a head of four words (domain, schema, length,
 * offset), then the communicator's hash, its number of ranks, and the process's rank. */
static void
read_payload(LhNsysReader *r, uint64_t pid, const unsigned char *bytes, size_t length)
{
    uint64_t schema, offset, ranks, rank;
    LhNsysProcess *process;

    if (bytes == NULL || length < 32)
        return;
    schema = word_at(bytes, 8, 8);
    offset = word_at(bytes, 24, 8);
    if ((schema != SCHEMA_INIT_RANK && schema != SCHEMA_INIT_RANK_CONFIG) || offset > length ||
        length - offset < 16)
        return;
    ranks = word_at(bytes, offset + 8, 4);
    rank = word_at(bytes, offset + 12, 4);
    if (ranks > LH_RANKS_MAX || rank >= ranks)
        return;
    process = lh_nsys_process(r, pid);
    if (process != NULL && ranks > process->ranks) {
        process->ranks = (uint32_t)ranks;
        process->rank = (uint32_t)rank;
    }
}

/* Ranges: start, end, text, its string, globalTid, binaryData. */
static void
read_range_row(LhNsysReader *r, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 2);
    LhNsysStep step = {
        .first = INT64_MAX, .last = INT64_MIN, .gpu_start_ns = INT64_MAX, .gpu_end_ns = INT64_MIN
    };
    int64_t global;

    if (!lh_nsys_int(row, 4, &global))
        return;
    step.pid = PID(global);
    read_payload(r, step.pid, sqlite3_column_blob(row, 5), (size_t)sqlite3_column_bytes(row, 5));
    if (text == NULL)
        text = (const char *)sqlite3_column_text(row, 3);
    if (text == NULL || !lh_nsys_step_number(text, &step.number) ||
        !lh_nsys_int(row, 0, &step.start_ns) || !lh_nsys_int(row, 1, &step.end_ns) ||
        r->steps->len >= LH_GPU_TRACE_STEPS_MAX)
        return;
    g_array_append_val(r->steps, step);
}

/* Calls of CUDA: start, correlationId, globalTid. */
static void
read_launch(LhNsysReader *r, sqlite3_stmt *row)
{
    int64_t start, correlation, global;

    if (!lh_nsys_int(row, 0, &start) || !lh_nsys_int(row, 1, &correlation) ||
        !lh_nsys_int(row, 2, &global))
        return;
    lh_nsys_take_launch(r, PID(global), start, correlation);
}

static const LhNsysTable tables[] = {
    { "StringIds", { "id", "value" }, true, read_string_row },
    { "CUPTI_ACTIVITY_KIND_KERNEL",
      { "start", "end", "streamId", "correlationId", "demangledName", "?globalPid" },
      true,
      read_kernel },
    { "CUPTI_ACTIVITY_KIND_RUNTIME",
      { "start", "correlationId", "globalTid" },
      false,
      read_launch },
};

/* Reads the ranges. Their text may be in the table of strings, which is joined. */
static bool
read_ranges(LhNsysReader *r, GError **error)
{
    g_autofree char *table = lh_nsys_find_table(r, "NVTX_EVENTS");
    g_autofree char *sql = NULL;
    sqlite3_stmt *statement = NULL;
    int status;

    if (table == NULL)
        return true;
    sql = g_strdup_printf(
        "SELECT e.start, e.\"end\", e.text, %s, e.globalTid, %s FROM \"%s\" e%s "
        "ORDER BY e.rowid",
        lh_nsys_has_column(r, table, "textId") ? "s.value" : "NULL",
        lh_nsys_has_column(r, table, "binaryData") ? "e.binaryData" : "NULL", table,
        lh_nsys_has_column(r, table, "textId") ? " LEFT JOIN StringIds s ON s.id = e.textId" : "");
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return lh_nsys_fail(r, error);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        r->file.events++;
        read_range_row(r, statement);
    }
    sqlite3_finalize(statement);
    return status == SQLITE_DONE || lh_nsys_fail(r, error);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* Assigns ranks to processes. */
static bool
number_processes(LhNsysReader *r, uint32_t ranks_before, GError **error)
{
    for (guint i = 0; i < r->pids->len; i++) {
        if (lh_nsys_process(r, g_array_index(r->pids, uint64_t, i)) != NULL)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: more than %u processes; allowed: one for each rank", r->file.path,
                    PROCESSES_MAX);
        return false;
    }
    for (guint i = 0; i < r->processes->len; i++) {
        LhNsysProcess *process = &g_array_index(r->processes, LhNsysProcess, i);

        if (process->ranks == 0)
            process->rank = ranks_before + i;
    }
    return true;
}

static bool
read_database(LhNsysReader *r, GError **error)
{
    if (!lh_nsys_read_table(r, &tables[0], error) || !lh_nsys_read_table(r, &tables[1], error) ||
        !read_ranges(r, error))
        return false;
    lh_nsys_sort_steps(r);
    if (!lh_nsys_read_table(r, &tables[2], error))
        return false;
    if (!number_processes(r, r->run->files->len, error))
        return false;
    for (guint i = 0; i < r->pids->len; i++)
        g_array_index(r->run->kernels, LhGpuTrace, r->first + i).rank =
            lh_nsys_process(r, g_array_index(r->pids, uint64_t, i))->rank;
    lh_nsys_take_steps(r);
    if (!lh_nsys_check_visits(r, error))
        return false;
    r->file.kernels = r->pids->len;
    r->file.rank = r->processes->len > 0 ? g_array_index(r->processes, LhNsysProcess, 0).rank
                                         : r->run->files->len;
    return true;
}

bool
lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    LhNsysReader r = { .run = run, .first = run->kernels->len };
    bool ok;

    r.file.path = g_strdup(path);
    r.file.kind = "Nsight Systems";
    r.pids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    r.correlations = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.steps = g_array_new(FALSE, FALSE, sizeof(LhNsysStep));
    r.processes = g_array_new(FALSE, FALSE, sizeof(LhNsysProcess));
    r.classes = g_hash_table_new(NULL, NULL);
    ok = lh_nsys_open(&r, error) && read_database(&r, error);
    if (ok) {
        r.file.sha256 = lh_nsys_checksum(path);
        g_array_append_val(run->files, r.file);
    } else {
        g_free(r.file.path);
    }
    sqlite3_close(r.db);
    g_hash_table_unref(r.classes);
    g_array_unref(r.processes);
    g_clear_pointer(&r.spans, g_array_unref);
    g_array_unref(r.steps);
    g_array_unref(r.correlations);
    g_array_unref(r.pids);
    return ok;
}
