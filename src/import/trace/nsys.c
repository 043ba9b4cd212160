/*
 * See the header. The schema of these databases is not promised: tables and columns are looked up
 * before they are asked for, and tables may have a number behind their name. A file may be
 * anybody's: SQLite is told to trust nothing in it, and only tables are read, never views.
 */
#include "import/trace/nsys.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "base/files/file_uses.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define VALUE_BYTES_MAX (64 << 20)
#define PROCESSES_MAX 65536u
#define PROGRESS_OPS 1000000
#define PROGRESS_MAX 200000            /* times so many: more than the largest file takes */
#define VISITS_MAX UINT64_C(200000000) /* of spans: some for each kernel */
#define PID(global) ((uint64_t)(global) / 0x1000000 % 0x1000000)

/* Of NCCL's ranges: what opens a communicator (nvtx_payload_schemas.h). */
#define SCHEMA_FIRST UINT64_C(0x1000000)
#define SCHEMA_INIT_RANK (SCHEMA_FIRST + 0)
#define SCHEMA_INIT_RANK_CONFIG (SCHEMA_FIRST + 11)

/* Ranges that are steps: what stands before the number. */
static const char *const step_prefixes[] = { "ProfilerStep#", "step ",      "step_",      "step=",
                                             "iteration ",    "iteration_", "Iteration ", NULL };

/* A range of the host, and the work that was launched in it. */
typedef struct {
    int64_t start_ns, end_ns; /* of the host */
    uint64_t number, pid;
    int64_t first, last; /* correlations */
    int64_t gpu_start_ns, gpu_end_ns;
} Step;

/* What a step spans: times of the host, or correlations. */
typedef struct {
    uint64_t pid;
    int64_t from, to; /* both are within */
    int64_t to_max;   /* of this one and those of its process before it */
    guint step;
} Span;

/* A process. */
typedef struct {
    uint64_t pid;
    uint32_t rank, ranks; /* of the largest communicator that is known; ranks 0: none is */
} Process;

typedef struct {
    LhGpuTraceRun *run;
    LhGpuTraceFile file;
    sqlite3 *db;
    guint first;          /* of its kernels in the run */
    GArray *pids;         /* of uint64_t: by kernel of this file */
    GArray *correlations; /* of int64_t: likewise */
    GHashTable *classes;  /* by id of name: class, transfer */
    GArray *steps;        /* of Step, by start */
    GArray *spans;        /* of Span, by process and beginning; NULL: not yet */
    uint64_t visits;      /* of spans */
    GArray *processes;    /* of Process, by pid */
    uint32_t progress;
} NsysReader;

/* --- queries ------------------------------------------------------------------------------------
 */

static bool
fail_sql(const NsysReader *r, GError **error)
{
    g_autofree char *why = g_utf8_make_valid(sqlite3_errmsg(r->db), -1);

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: the database cannot be read: %s",
                r->file.path, why);
    return false;
}

static int
on_progress(void *data)
{
    NsysReader *r = data;

    return ++r->progress > PROGRESS_MAX;
}

/* The table called @name, or @name and a number: "NAME_V2". NULL if there is none. Caller frees. */
static char *
find_table(const NsysReader *r, const char *name)
{
    static const char sql[] =
        "SELECT name FROM sqlite_master WHERE type = 'table' AND (name = ?1 OR "
        "(name GLOB ?1 || '_V[0-9]*')) ORDER BY name DESC LIMIT 1";
    sqlite3_stmt *statement = NULL;
    char *found = NULL;

    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW)
            found = g_strdup((const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return found;
}

static bool
has_column(const NsysReader *r, const char *table, const char *column)
{
    sqlite3_stmt *statement = NULL;
    bool found = false;

    if (sqlite3_prepare_v2(r->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1,
                           &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

/* A table to read, row by row. */
typedef struct {
    const char *name;
    const char
        *columns[8]; /* NULL-terminated; one that begins with '?' may be missing: NULL then */
    bool needed;
    void (*row)(NsysReader *r, sqlite3_stmt *row);
} Table;

/* "SELECT "a", NULL FROM "t""; NULL, with @error, if a column is missing. Caller frees. */
static char *
make_query(const NsysReader *r, const Table *table, const char *found, GError **error)
{
    g_autoptr(GString) sql = g_string_new("SELECT ");

    for (guint i = 0; table->columns[i] != NULL; i++) {
        const bool optional = *table->columns[i] == '?';
        const char *column = table->columns[i] + optional;
        const bool there = has_column(r, found, column);

        if (!there && !optional) {
            g_set_error(
                error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: table %s has no column %s; allowed: a database that nsys export "
                "--type sqlite has written",
                r->file.path, found, column);
            return NULL;
        }
        g_string_append(sql, i > 0 ? ", " : "");
        g_string_append_printf(sql, there ? "\"%s\"" : "NULL", column);
    }
    g_string_append_printf(sql, " FROM \"%s\" ORDER BY rowid", found);
    return g_string_free(g_steal_pointer(&sql), FALSE);
}

static bool
read_table(NsysReader *r, const Table *table, GError **error)
{
    g_autofree char *found = find_table(r, table->name);
    g_autofree char *sql = NULL;
    sqlite3_stmt *statement = NULL;
    int status;

    if (found == NULL && !table->needed)
        return true;
    if (found == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: there is no table %s; allowed: a database that nsys export --type "
                    "sqlite has written of a run with CUDA",
                    r->file.path, table->name);
        return false;
    }
    sql = make_query(r, table, found, error);
    if (sql == NULL)
        return false;
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail_sql(r, error);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        r->file.events++;
        table->row(r, statement);
    }
    sqlite3_finalize(statement);
    return status == SQLITE_DONE || fail_sql(r, error);
}

static bool
read_int(sqlite3_stmt *row, int column, int64_t *value)
{
    if (sqlite3_column_type(row, column) != SQLITE_INTEGER)
        return false;
    *value = sqlite3_column_int64(row, column);
    return true;
}

/* --- tables -------------------------------------------------------------------------------------
 */

/* StringIds: id, value. */
static void
read_string_row(NsysReader *r, sqlite3_stmt *row)
{
    const char *value = (const char *)sqlite3_column_text(row, 1);
    uint8_t transfer;
    LhGpuTraceClass class;
    int64_t id;

    if (value == NULL || !read_int(row, 0, &id) || id < 0 || id > INT32_MAX)
        return;
    class = lh_gpu_trace_class(value, &transfer);
    if (class != LH_GPU_TRACE_OTHER && class != LH_GPU_TRACE_HELPER)
        g_hash_table_insert(r->classes, GUINT_TO_POINTER((guint)id),
                            GUINT_TO_POINTER(1 + (guint) class + ((guint)transfer << 8)));
}

/* Kernels: start, end, streamId, correlationId, demangledName, globalPid. */
static void
read_kernel(NsysReader *r, sqlite3_stmt *row)
{
    int64_t start, end, stream, correlation, name, global;
    LhGpuTrace seen = { .rank = 0 };
    uint64_t pid;
    guint known;

    if (!read_int(row, 4, &name) || name < 0 || name > INT32_MAX)
        return;
    known = GPOINTER_TO_UINT(g_hash_table_lookup(r->classes, GUINT_TO_POINTER((guint)name)));
    if (known == 0)
        return;
    /* Of what ran before the profiler started, times are negative. */
    if (!read_int(row, 0, &start) || !read_int(row, 1, &end) || start < 0 || end < start ||
        r->run->kernels->len >= LH_GPU_TRACE_KERNELS_MAX) {
        r->file.dropped++;
        return;
    }
    seen.start_ns = start;
    seen.end_ns = end;
    seen.class = (uint8_t)((known & 0xff) - 1);
    seen.transfer = (uint8_t)(known >> 8);
    if (read_int(row, 2, &stream))
        seen.stream = (uint32_t)CLAMP(stream, 0, UINT32_MAX);
    if (!read_int(row, 3, &correlation))
        correlation = 0;
    seen.order = (uint64_t)MAX(correlation, 0);
    pid = read_int(row, 5, &global) ? PID(global) : 0;
    g_array_append_val(r->pids, pid);
    g_array_append_val(r->correlations, correlation);
    g_array_append_val(r->run->kernels, seen);
}

static bool
step_number(const char *text, uint64_t *number)
{
    for (guint i = 0; step_prefixes[i] != NULL; i++) {
        const char *digits = text + strlen(step_prefixes[i]);
        char *end;

        if (!g_str_has_prefix(text, step_prefixes[i]) || !g_ascii_isdigit(*digits))
            continue;
        *number = g_ascii_strtoull(digits, &end, 10);
        return *end == '\0';
    }
    return false;
}

/* NULL for one more than PROCESSES_MAX. */
static Process *
process_of(NsysReader *r, uint64_t pid)
{
    const Process process = { .pid = pid };
    guint at = 0, high = r->processes->len;

    while (at < high) {
        const guint middle = at + (high - at) / 2;

        if (g_array_index(r->processes, Process, middle).pid < pid)
            at = middle + 1;
        else
            high = middle;
    }
    if (at < r->processes->len && g_array_index(r->processes, Process, at).pid == pid)
        return &g_array_index(r->processes, Process, at);
    if (r->processes->len == PROCESSES_MAX)
        return NULL;
    g_array_insert_val(r->processes, at, process);
    return &g_array_index(r->processes, Process, at);
}

static uint64_t
word_at(const unsigned char *bytes, size_t offset, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[offset + i] << 8 * i;
    return value;
}

/* What NCCL says as it opens a communicator: a head of four words (domain, schema, length, offset),
 * then the communicator's hash, its number of ranks, and the process's rank. */
static void
read_payload(NsysReader *r, uint64_t pid, const unsigned char *bytes, size_t length)
{
    uint64_t schema, offset, ranks, rank;
    Process *process;

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
    process = process_of(r, pid);
    if (process != NULL && ranks > process->ranks) {
        process->ranks = (uint32_t)ranks;
        process->rank = (uint32_t)rank;
    }
}

/* Ranges: start, end, text, its string, globalTid, binaryData. */
static void
read_range_row(NsysReader *r, sqlite3_stmt *row)
{
    const char *text = (const char *)sqlite3_column_text(row, 2);
    Step step = {
        .first = INT64_MAX, .last = INT64_MIN, .gpu_start_ns = INT64_MAX, .gpu_end_ns = INT64_MIN
    };
    int64_t global;

    if (!read_int(row, 4, &global))
        return;
    step.pid = PID(global);
    read_payload(r, step.pid, sqlite3_column_blob(row, 5), (size_t)sqlite3_column_bytes(row, 5));
    if (text == NULL)
        text = (const char *)sqlite3_column_text(row, 3);
    if (text == NULL || !step_number(text, &step.number) || !read_int(row, 0, &step.start_ns) ||
        !read_int(row, 1, &step.end_ns) || r->steps->len >= LH_GPU_TRACE_STEPS_MAX)
        return;
    g_array_append_val(r->steps, step);
}

static int
by_from(const void *a, const void *b)
{
    const Span *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Of the correlations of all steps that have some, or of their times. */
static void
sort_spans(NsysReader *r, bool correlations)
{
    g_clear_pointer(&r->spans, g_array_unref);
    r->spans = g_array_new(FALSE, FALSE, sizeof(Span));
    for (guint i = 0; i < r->steps->len; i++) {
        const Step *step = &g_array_index(r->steps, Step, i);
        const Span span = { .pid = step->pid,
                            .from = correlations ? step->first : step->start_ns,
                            .to = correlations ? step->last : MAX(step->end_ns, INT64_MIN + 1) - 1,
                            .step = i };

        if (span.from <= span.to)
            g_array_append_val(r->spans, span);
    }
    g_array_sort(r->spans, by_from);
    for (guint i = 0; i < r->spans->len; i++) {
        Span *span = &g_array_index(r->spans, Span, i);
        const Span *before = i > 0 && span[-1].pid == span->pid ? span - 1 : NULL;

        span->to_max = before != NULL ? MAX(before->to_max, span->to) : span->to;
    }
}

/* How many spans begin before @at of @pid, or there, in their order. */
static guint
spans_before(const NsysReader *r, uint64_t pid, int64_t at)
{
    const Span wanted = { .pid = pid, .from = at };
    guint low = 0, high = r->spans->len;

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (by_from(&g_array_index(r->spans, Span, middle), &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Calls @take for every step of @pid that spans @at. Steps come one after another, so that few are
 * looked at; in a file where all of them overlap, no more than VISITS_MAX. */
static void
each_step(NsysReader *r, uint64_t pid, int64_t at, void (*take)(Step *step, const void *data),
          const void *data)
{
    for (guint i = spans_before(r, pid, at); i > 0 && r->visits <= VISITS_MAX; i--) {
        const Span *span = &g_array_index(r->spans, Span, i - 1);

        if (span->pid != pid || span->to_max < at)
            return;
        r->visits++;
        if (span->to >= at)
            take(&g_array_index(r->steps, Step, span->step), data);
    }
}

static void
take_launch(Step *step, const void *data)
{
    const int64_t *correlation = data;

    step->first = MIN(step->first, *correlation);
    step->last = MAX(step->last, *correlation);
}

/* Calls of CUDA: start, correlationId, globalTid. */
static void
read_launch(NsysReader *r, sqlite3_stmt *row)
{
    int64_t start, correlation, global;

    if (!read_int(row, 0, &start) || !read_int(row, 1, &correlation) || !read_int(row, 2, &global))
        return;
    each_step(r, PID(global), start, take_launch, &correlation);
}

static const Table tables[] = {
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

/* A range's text may be one of the strings: the table is joined with them. */
static bool
read_ranges(NsysReader *r, GError **error)
{
    g_autofree char *table = find_table(r, "NVTX_EVENTS");
    g_autofree char *sql = NULL;
    sqlite3_stmt *statement = NULL;
    int status;

    if (table == NULL)
        return true;
    sql = g_strdup_printf(
        "SELECT e.start, e.\"end\", e.text, %s, e.globalTid, %s FROM \"%s\" e%s "
        "ORDER BY e.rowid",
        has_column(r, table, "textId") ? "s.value" : "NULL",
        has_column(r, table, "binaryData") ? "e.binaryData" : "NULL", table,
        has_column(r, table, "textId") ? " LEFT JOIN StringIds s ON s.id = e.textId" : "");
    if (sqlite3_prepare_v2(r->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail_sql(r, error);
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        r->file.events++;
        read_range_row(r, statement);
    }
    sqlite3_finalize(statement);
    return status == SQLITE_DONE || fail_sql(r, error);
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static int
by_start(const void *a, const void *b)
{
    const Step *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Which rank a process is. */
static bool
number_processes(NsysReader *r, uint32_t ranks_before, GError **error)
{
    for (guint i = 0; i < r->pids->len; i++) {
        if (process_of(r, g_array_index(r->pids, uint64_t, i)) != NULL)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: more than %u processes; allowed: one for each rank", r->file.path,
                    PROCESSES_MAX);
        return false;
    }
    for (guint i = 0; i < r->processes->len; i++) {
        Process *process = &g_array_index(r->processes, Process, i);

        if (process->ranks == 0)
            process->rank = ranks_before + i;
    }
    return true;
}

static void
take_kernel_time(Step *step, const void *data)
{
    const LhGpuTrace *seen = data;

    step->gpu_start_ns = MIN(step->gpu_start_ns, seen->start_ns);
    step->gpu_end_ns = MAX(step->gpu_end_ns, seen->end_ns);
}

/* The time that the kernels of a step's launches take. */
static void
time_steps(NsysReader *r)
{
    sort_spans(r, true);
    for (guint i = 0; i < r->pids->len; i++)
        each_step(r, g_array_index(r->pids, uint64_t, i),
                  g_array_index(r->correlations, int64_t, i), take_kernel_time,
                  &g_array_index(r->run->kernels, LhGpuTrace, r->first + i));
}

/* A step lasts until the next one of its process begins. */
static void
take_steps(NsysReader *r)
{
    time_steps(r);
    for (guint i = 0; i < r->steps->len; i++) {
        const Step *step = &g_array_index(r->steps, Step, i);
        const Step *next = i + 1 < r->steps->len ? step + 1 : NULL;
        LhGpuTraceStep taken = { .start_ns = step->gpu_start_ns,
                                 .end_ns = step->gpu_end_ns,
                                 .number = step->number };

        if (step->gpu_end_ns < step->gpu_start_ns)
            continue;
        taken.rank = process_of(r, step->pid)->rank;
        if (next != NULL && next->pid == step->pid && next->gpu_start_ns > step->gpu_start_ns)
            taken.end_ns = MIN(taken.end_ns, next->gpu_start_ns);
        g_array_append_val(r->run->steps, taken);
        r->file.steps++;
    }
}

static bool
check_visits(const NsysReader *r, GError **error)
{
    if (r->visits <= VISITS_MAX)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %u ranges are named as steps are, and so many of them overlap that "
                "there is no telling which step a kernel is of; allowed: steps one after another",
                r->file.path, r->steps->len);
    return false;
}

static bool
read_database(NsysReader *r, GError **error)
{
    if (!read_table(r, &tables[0], error) || !read_table(r, &tables[1], error) ||
        !read_ranges(r, error))
        return false;
    g_array_sort(r->steps, by_start);
    sort_spans(r, false);
    if (!read_table(r, &tables[2], error))
        return false;
    if (!number_processes(r, r->run->files->len, error))
        return false;
    for (guint i = 0; i < r->pids->len; i++)
        g_array_index(r->run->kernels, LhGpuTrace, r->first + i).rank =
            process_of(r, g_array_index(r->pids, uint64_t, i))->rank;
    take_steps(r);
    if (!check_visits(r, error))
        return false;
    r->file.kernels = r->pids->len;
    r->file.rank =
        r->processes->len > 0 ? g_array_index(r->processes, Process, 0).rank : r->run->files->len;
    return true;
}

static bool
open_database(NsysReader *r, GError **error)
{
    g_autofree char *absolute = g_canonicalize_filename(r->file.path, NULL);
    g_autofree char *plain = g_filename_to_uri(absolute, NULL, NULL);
    g_autofree char *uri = g_strconcat(plain, "?mode=ro&immutable=1", NULL);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    int status;

    if (!lh_file_uses_take(r->file.path, LH_FILE_USE_READ, NULL, error))
        return false;
    status = sqlite3_open_v2(uri, &r->db, flags, NULL); /* nocheck:read: taken */
    if (status != SQLITE_OK)
        return fail_sql(r, error);
    sqlite3_limit(r->db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(r->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_progress_handler(r->db, PROGRESS_OPS, on_progress, r);
    return true;
}

/* Of the file as it is. Caller frees. */
static char *
checksum_of(const char *path)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    FILE *file = lh_input_open(path, NULL);
    unsigned char bytes[65536];
    size_t got;

    while (file != NULL && (got = fread(bytes, 1, sizeof(bytes), file)) > 0)
        g_checksum_update(checksum, bytes, (gssize)got);
    if (file != NULL)
        fclose(file);
    return g_strdup(g_checksum_get_string(checksum));
}

bool
lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error)
{
    NsysReader r = { .run = run, .first = run->kernels->len };
    bool ok;

    r.file.path = g_strdup(path);
    r.file.kind = "Nsight Systems";
    r.pids = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    r.correlations = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.steps = g_array_new(FALSE, FALSE, sizeof(Step));
    r.processes = g_array_new(FALSE, FALSE, sizeof(Process));
    r.classes = g_hash_table_new(NULL, NULL);
    ok = open_database(&r, error) && read_database(&r, error);
    if (ok) {
        r.file.sha256 = checksum_of(path);
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
