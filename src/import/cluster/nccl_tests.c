/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of nccl-tests. Times of a collective between GPUs of one node are taken as they are; of
 * several nodes, the bandwidth at a node; of sends and receives, also bandwidth and latency. Times
 * are those of the out-of-place half. Tables before 2019 have milliseconds; before 2022 a row is
 * blank under redop or root if its operation has none. Left out: what -I, -S and -C add.
 */
#include "import/cluster/nccl_tests.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "import/cluster/readers_private.h"

#include <math.h>
#include <string.h>

#define SIZES_MAX 256   /* per row of collective_times */
#define HOSTS_MAX 65536 /* and ranks */
#define US_MAX 1e9
#define US_OF_MS 1e3
#define LATENCY_BYTES 1024 /* up to this size, messages take only latency */
#define RATE_BYTES 1048576 /* shortest message whose bandwidth counts */
#define GB 1e9
#define US_PER_S 1e6
#define MAJOR 10000 /* NCCL_VERSION_CODE is MAJOR x major + MINOR x minor + patch */
#define MINOR 100
#define SENDRECV LH_TIMES_OF_SENDS
#define NO_PLACE (LH_COLL_KINDS + 1) /* not supported by a topology file */
#define BLANK_MAX 2                  /* columns, redop and root, that a row may leave blank */
#define FAITHFUL 0.02 /* printed bandwidths match printed times, except for rounding */
#define FAITHFUL_GBPS 0.01
#define NO_LONG_ROW "no row of 1 MiB or more with a bandwidth; shorter ones do not show it"

/* Programs. A topology file does not support operations of weight 0 between nodes. */
static const struct {
    const char *program;
    const char *word; /* for it in names of files, letters only */
    int op;           /* LhCollectiveKind, SENDRECV or NO_PLACE */
    uint32_t weight;  /* as evidence for the bandwidth of rings over several nodes */
} nccl_programs[] = {
    { "all_gather_perf", "allgather", LH_COLL_ALL_GATHER, 4 },
    { "reduce_scatter_perf", "reducescatter", LH_COLL_REDUCE_SCATTER, 3 },
    { "all_reduce_perf", "allreduce", LH_COLL_ALL_REDUCE, 2 },
    { "broadcast_perf", "broadcast", LH_COLL_BROADCAST, 1 },
    { "alltoall_perf", "alltoall", LH_COLL_ALL_TO_ALL, 0 },
    { "sendrecv_perf", "sendrecv", SENDRECV, 0 },
    { "reduce_perf", "reduceperf", NO_PLACE, 0 },
    { "gather_perf", "gatherperf", NO_PLACE, 0 },
    { "scatter_perf", "scatterperf", NO_PLACE, 0 },
    { "hypercube_perf", "hypercube", NO_PLACE, 0 },
};

typedef LhNcclLogRow Row;

typedef struct {
    guint program; /* index in nccl_programs; G_N_ELEMENTS(nccl_programs): unknown */
    char *nccl;    /* version; NULL: unknown */
    GHashTable *hosts;
    guint ranks;
    guint line;                      /* of the table */
    guint time, algbw, busbw, wrong; /* columns; nocheck:unit: not a time but its column */
    guint columns;
    double unit_us; /* of times */
    GArray *rows;   /* of Row */
} NcclRun;

static bool
is_nccl_table(const LhToolReader *r)
{
    const LhToolWord size = lh_tool_word(r, 1), count = lh_tool_word(r, 2);

    return lh_tool_is(lh_tool_word(r, 0), "#") &&
           ((lh_tool_is(size, "size") && lh_tool_is(count, "count")) ||
            (lh_tool_is(size, "bytes") && lh_tool_is(count, "N")));
}

/* --- the head -----------------------------------------------------------------------------------
 */

/* Whether the text contains the program's name at the start of a word: "reduce_perf" is not part of
 * "all_reduce_perf". */
static bool
has_program(const char *text, gsize length, const char *program)
{
    const char *const end = text + length;
    const char *at = text;

    while ((at = g_strstr_len(at, end - at, program)) != NULL) {
        if (at == text || (!g_ascii_isalnum(at[-1]) && at[-1] != '_'))
            return true;
        at++;
    }
    return false;
}

/* Finds the program's name in a line or file name. */
static bool
find_program(LhToolReader *r, NcclRun *run, const char *text, gsize length)
{
    for (guint i = 0; i < G_N_ELEMENTS(nccl_programs); i++) {
        if (!has_program(text, length, nccl_programs[i].program))
            continue;
        if (run->program != G_N_ELEMENTS(nccl_programs) && run->program != i)
            return lh_text_fail(&r->text, r->text.line_start,
                                "%s and %s in one file; give one file per run",
                                nccl_programs[run->program].program, nccl_programs[i].program);
        run->program = i;
    }
    return true;
}

/* Finds the program by a looser match of the file name: "nccl-all-reduce.log". */
static bool
find_program_of_name(LhToolReader *r, NcclRun *run)
{
    g_autofree char *base = g_path_get_basename(r->text.file);
    g_autoptr(GString) word = g_string_new(NULL);

    if (!find_program(r, run, base, strlen(base)))
        return false;
    for (const char *at = base; *at != '\0'; at++) {
        if (g_ascii_isalpha(*at))
            g_string_append_c(word, g_ascii_tolower(*at));
    }
    for (guint i = 0; run->program == G_N_ELEMENTS(nccl_programs) && i < run->program; i++) {
        if (strstr(word->str, nccl_programs[i].word) != NULL)
            run->program = i;
    }
    return true;
}

/* Finds the version: "NCCL version 2.21.5+cuda12.4", "nccl-library=22703". */
static void
find_version(const LhToolReader *r, NcclRun *run)
{
    for (guint i = 0; run->nccl == NULL && i < r->words->len; i++) {
        const LhToolWord word = lh_tool_word(r, i), next = lh_tool_word(r, i + 2);
        uint64_t code;

        if (lh_tool_numbered(word, "nccl-library=", &code) && code < 1000 * MAJOR) {
            run->nccl =
                g_strdup_printf("%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT,
                                code / MAJOR, code / MINOR % MINOR, code % MINOR);
        } else if (lh_tool_is(word, "NCCL") && lh_tool_is(lh_tool_word(r, i + 1), "version")) {
            g_autofree char *text = lh_tool_text(next);
            const gsize length = strspn(text, "0123456789.");

            if (length > 0)
                run->nccl = g_strndup(text, length);
        }
    }
}

/* Reads "#  Rank  3 Group  0 Pid   6902 on HOST device  3 [0x0c] NVIDIA H100". */
static bool
read_rank(LhToolReader *r, NcclRun *run)
{
    guint on = 0;
    uint64_t group, rank;

    if (lh_tool_line_has(r, " AMD "))
        return lh_text_fail(&r->text, r->text.line_start,
                            "AMD GPUs are not supported; allowed: runs on NVIDIA GPUs");
    if (run->ranks > 0 && lh_tool_uint(lh_tool_word(r, 2), &rank) && rank == 0)
        return lh_text_fail(&r->text, lh_tool_word(r, 2).at,
                            "rank 0 twice: several runs, or processes that ran separately, as "
                            "without MPI=1 in the build; give one file per run");
    while (on < r->words->len && !lh_tool_is(lh_tool_word(r, on), "on"))
        on++;
    if (on + 1 >= r->words->len || lh_tool_word(r, on + 1).length > LH_TOOL_NAME_BYTES_MAX)
        return lh_text_fail(&r->text, r->text.line_start, "a rank without the host that it is on");
    if (lh_tool_is(lh_tool_word(r, 3), "Group") && lh_tool_uint(lh_tool_word(r, 4), &group) &&
        group != 0)
        return lh_text_fail(&r->text, lh_tool_word(r, 4).at,
                            "ranks of several groups; give a run without NCCL_TESTS_SPLIT");
    if (run->ranks++ == HOSTS_MAX)
        return lh_text_fail(&r->text, r->text.line_start, "more than %d ranks", HOSTS_MAX);
    {
        const LhToolWord host = lh_tool_word(r, on + 1);
        char *name = g_strndup(host.at, host.length);
        const guint had = GPOINTER_TO_UINT(g_hash_table_lookup(run->hosts, name));

        g_hash_table_insert(run->hosts, name, GUINT_TO_POINTER(had + 1));
    }
    return true;
}

/* --- the table ----------------------------------------------------------------------------------
 */

static bool
read_columns(LhToolReader *r, NcclRun *run)
{
    if (run->line != 0)
        return lh_text_fail(&r->text, r->text.line_start, "a second table; give one file per run");
    run->line = r->text.line;
    run->columns = r->words->len - 1;
    run->unit_us = lh_tool_is(lh_tool_word(r, 1), "bytes") ? US_OF_MS : 1;
    for (guint i = 1; i < r->words->len; i++) {
        const LhToolWord word = lh_tool_word(r, i);

        if (lh_tool_is(word, "cputime"))
            return lh_text_fail(&r->text, word.at, "times of the CPU; give a run without -C 1");
        if (run->time == 0 && lh_tool_is(word, "time"))
            run->time = i - 1;
        if (run->algbw == 0 && lh_tool_is(word, "algbw"))
            run->algbw = i - 1;
        if (run->busbw == 0 && lh_tool_is(word, "busbw"))
            run->busbw = i - 1;
        if (run->wrong == 0 && lh_tool_is(word, "#wrong"))
            run->wrong = i - 1;
    }
    return (run->time > 0 && run->busbw > run->time) ||
           lh_text_fail(&r->text, r->text.line_start, "a table without the columns time and busbw");
}

/* Checks a row with blank columns: its bandwidth must match size and time, which shows that the
 * columns were assigned correctly. */
static bool
check_faithful(LhToolReader *r, LhToolWord algbw, const Row *row)
{
    const double gbps = (double)row->bytes * US_PER_S / row->us / GB;
    double found = 0;

    return (lh_tool_double(algbw, &found) &&
            fabs(found - gbps) <= FAITHFUL * gbps + FAITHFUL_GBPS) ||
           lh_text_fail(
               &r->text, algbw.at,
               "the bandwidth here should be %.4g GB/s, by size and time; is the row truncated?",
               gbps);
}

static bool
read_numbers(LhToolReader *r, const NcclRun *run, Row *row)
{
    const guint blank = run->columns > r->words->len ? run->columns - r->words->len : 0;
    const bool fits = blank <= BLANK_MAX && blank < run->time;
    const LhToolWord time = lh_tool_word(r, run->time - (fits ? blank : 0));
    const LhToolWord busbw = lh_tool_word(r, run->busbw - (fits ? blank : 0));
    uint64_t wrong = 0;

    if (!fits)
        return lh_text_fail(
            &r->text, r->text.line_start,
            "%u columns; allowed: at least %u, as in the table's head without redop "
            "and root",
            r->words->len, run->columns - MIN(BLANK_MAX, run->columns));
    if (!lh_tool_double(time, &row->us) || !(row->us > 0 && row->us <= US_MAX))
        return lh_text_fail(&r->text, time.at, "a time is a number of microseconds, up to %g",
                            US_MAX);
    row->us *= run->unit_us;
    if (!lh_tool_double(busbw, &row->busbw) || row->busbw < 0)
        return lh_text_fail(&r->text, busbw.at, "a bus bandwidth is a number of GB/s");
    if (run->wrong > 0 && lh_tool_uint(lh_tool_word(r, run->wrong - blank), &wrong) && wrong > 0)
        return lh_text_fail(&r->text, lh_tool_word(r, run->wrong - blank).at,
                            "%" G_GUINT64_FORMAT
                            " values of this run were wrong, so its times are not used",
                            wrong);
    return (blank == 0 && run->unit_us == 1) ||
           check_faithful(r, lh_tool_word(r, run->algbw - blank), row);
}

/* Checks "# Out of bounds values : 4 FAILED", which replaces #wrong in some tables. */
static bool
check_bounds(LhToolReader *r)
{
    const LhToolWord count = lh_tool_word(r, 6);
    uint64_t wrong;

    if (!lh_tool_line_has(r, "Out of bounds values") || !lh_tool_uint(count, &wrong) || wrong == 0)
        return true;
    return lh_text_fail(
        &r->text, count.at,
        "%" G_GUINT64_FORMAT " values of this run were wrong, so its times are not used", wrong);
}

/* Reads a row, which begins with its size; other lines are ignored, and size 0, which sends
 * nothing. */
static bool
read_size_row(LhToolReader *r, NcclRun *run)
{
    Row row = { .line = r->text.line };

    if (run->line == 0 || !lh_tool_uint(lh_tool_word(r, 0), &row.bytes) || row.bytes == 0)
        return true;
    if (!read_numbers(r, run, &row))
        return false;
    g_array_append_val(run->rows, row);
    return true;
}

static bool
read_run_lines(LhToolReader *r, NcclRun *run)
{
    for (;;) {
        bool more;

        if (!lh_tool_next(r, &more))
            return false;
        if (!more)
            return true;
        if (!find_program(r, run, r->text.line_start, (gsize)(r->text.at - r->text.line_start)))
            return false;
        find_version(r, run);
        if (is_nccl_table(r)) {
            if (!read_columns(r, run))
                return false;
        } else if (lh_tool_is(lh_tool_word(r, 0), "#") && lh_tool_is(lh_tool_word(r, 1), "Rank")) {
            if (!read_rank(r, run))
                return false;
        } else if (!check_bounds(r)) {
            return false;
        } else if (!read_size_row(r, run)) {
            return false;
        }
    }
}

/* --- what it says -------------------------------------------------------------------------------
 */

static int
by_size(gconstpointer a, gconstpointer b)
{
    const Row *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return x->us < y->us ? -1 : x->us > y->us;
}

/* Sorts rows by size and keeps the median of several rows of one size, as -N makes them. */
static void
join_sizes(GArray *rows)
{
    guint kept = 0;

    g_array_sort(rows, by_size);
    for (guint from = 0, to; from < rows->len; from = to) {
        for (to = from; to < rows->len &&
                        g_array_index(rows, Row, to).bytes == g_array_index(rows, Row, from).bytes;)
            to++;
        g_array_index(rows, Row, kept++) = g_array_index(rows, Row, from + (to - from - 1) / 2);
    }
    g_array_set_size(rows, kept);
}

static bool
fail_table(const LhToolReader *r, guint line, const char *what)
{
    g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT, "%s:%u: error: %s", r->text.file, line,
                what);
    return false;
}

/* Ranks per host, if equal on all; else 0. */
static guint
ranks_per_host(const NcclRun *run)
{
    const guint hosts = g_hash_table_size(run->hosts);
    GHashTableIter iter;
    gpointer count;

    g_hash_table_iter_init(&iter, run->hosts);
    while (g_hash_table_iter_next(&iter, NULL, &count)) {
        if (GPOINTER_TO_UINT(count) * hosts != run->ranks)
            return 0;
    }
    return run->ranks / hosts;
}

/* Number of sizes without those at the end whose times do not grow: extrapolation would give larger
 * sizes no time. */
static guint
growing_sizes(const NcclRun *run)
{
    guint sizes = run->rows->len;

    while (sizes > 1 && g_array_index(run->rows, Row, sizes - 1).us <=
                            g_array_index(run->rows, Row, sizes - 2).us)
        sizes--;
    return sizes;
}

static bool
has_times(const NcclRun *run)
{
    const guint sizes = growing_sizes(run);

    return sizes >= 2 && sizes <= SIZES_MAX;
}

static bool
add_times(LhToolReader *r, const NcclRun *run)
{
    LhCollectiveTimes times = { .op = nccl_programs[run->program].op,
                                .ranks = run->ranks,
                                .from.provenance = LH_PROVENANCE_MEASURED };
    const guint sizes = growing_sizes(run);

    if (!has_times(run))
        return fail_table(r, run->line, "allowed: 2 to 256 sizes whose times grow");
    times.nccl = g_strdup(run->nccl);
    times.from.source = lh_tool_source(r);
    times.bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    times.us = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < sizes; i++) {
        g_array_append_val(times.bytes, g_array_index(run->rows, Row, i).bytes);
        g_array_append_val(times.us, g_array_index(run->rows, Row, i).us);
    }
    g_array_append_val(r->cluster->times, times);
    g_ptr_array_add(r->cluster->places, lh_tool_place(r, run->line));
    return true;
}

static double
best_rate(const NcclRun *run, guint *line)
{
    double best = 0;

    for (guint i = 0; i < run->rows->len; i++) {
        const Row *row = &g_array_index(run->rows, Row, i);

        if (row->bytes >= RATE_BYTES && row->busbw > best) {
            best = row->busbw;
            *line = row->line;
        }
    }
    return best * GB;
}

/* Adds bandwidth and latency of sends from each GPU to the next. */
static bool
add_link(LhToolReader *r, const NcclRun *run, bool nodes, guint per_host)
{
    const Row *least = &g_array_index(run->rows, Row, 0);
    guint line = run->line;
    const double rate = best_rate(run, &line); /* nocheck:unit: bytes/s */
    const LhToolValue found = { rate, LH_PROVENANCE_MEASURED, 0, per_host };
    const LhToolValue latency = { least->us / US_PER_S, LH_PROVENANCE_MEASURED, 0, per_host };

    if (rate == 0 && least->bytes > LATENCY_BYTES)
        return fail_table(r, run->line, NO_LONG_ROW);
    return (rate == 0 ||
            lh_tool_add(r, nodes ? LH_TOOL_ROUTE_RATE : LH_TOOL_PEER_RATE, line, found)) &&
           (least->bytes > LATENCY_BYTES ||
            lh_tool_add(r, nodes ? LH_TOOL_ROUTE_LATENCY : LH_TOOL_PEER_LATENCY, least->line,
                        latency));
}

/* Adds sends; within a node also their times. */
static bool
add_sends(LhToolReader *r, const NcclRun *run, bool nodes, guint per_host)
{
    return add_link(r, run, nodes, per_host) && (nodes || !has_times(run) || add_times(r, run));
}

/* Adds the rate of rings: a ring passes each node once, so its rate is the traffic of a node. */
static bool
add_rings(LhToolReader *r, const NcclRun *run, guint per_host)
{
    const uint32_t weight = nccl_programs[run->program].weight;
    guint line = run->line;
    const double rate = best_rate(run, &line); /* nocheck:unit: bytes/s */

    if (weight == 0)
        return fail_table(r, run->line,
                          "alltoall_perf on several hosts, which a topology file does not support; "
                          "give all_gather_perf, reduce_scatter_perf, all_reduce_perf or "
                          "broadcast_perf, or a run on one host");
    if (rate == 0)
        return fail_table(r, run->line, NO_LONG_ROW);
    return lh_tool_add(r, LH_TOOL_RINGS_RATE, line,
                       (LhToolValue){ rate, LH_PROVENANCE_MEASURED, weight, per_host });
}

/* Checks that the run is usable; *@per_host: ranks per host. */
static bool
check_run(LhToolReader *r, NcclRun *run, guint *per_host)
{
    if (run->program == G_N_ELEMENTS(nccl_programs) && !find_program_of_name(r, run))
        return false;
    if (run->line == 0 || run->rows->len == 0)
        return fail_table(r, MAX(run->line, 1), "no table of nccl-tests with rows");
    if (run->program == G_N_ELEMENTS(nccl_programs))
        return fail_table(
            r, run->line,
            "neither a line nor the file's name tells which program printed this; allowed: a line "
            "with the command, or a name such as all_gather_perf.txt");
    if (run->ranks == 1)
        return fail_table(r, run->line,
                          "only one rank ran, which sends nothing; give a run with several");
    if (run->ranks == 0)
        return fail_table(r, run->line,
                          "no lines \"#  Rank\", which list the ranks of each host; give the whole "
                          "output of the run");
    *per_host = ranks_per_host(run);
    if (*per_host == 0)
        return fail_table(r, run->line, "hosts have different numbers of ranks");
    r->tool = nccl_programs[run->program].program;
    join_sizes(run->rows);
    return true;
}

static bool
conclude_run(LhToolReader *r, NcclRun *run)
{
    const guint hosts = g_hash_table_size(run->hosts);
    guint per_host = 0;

    if (!check_run(r, run, &per_host))
        return false;
    if (nccl_programs[run->program].op == NO_PLACE)
        return fail_table(
            r, run->line,
            "a topology file does not support this program's operation; give all_gather_perf, "
            "reduce_scatter_perf, all_reduce_perf, broadcast_perf, alltoall_perf or sendrecv_perf");
    if (nccl_programs[run->program].op == SENDRECV)
        return add_sends(r, run, hosts > 1, per_host);
    return hosts > 1 ? add_rings(r, run, per_host) : add_times(r, run);
}

static bool
read_nccl_tests(LhToolReader *r)
{
    g_autoptr(GHashTable) hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Row));
    NcclRun run = { .program = G_N_ELEMENTS(nccl_programs), .hosts = hosts, .rows = rows };
    const bool ok = read_run_lines(r, &run) && conclude_run(r, &run);

    g_free(run.nccl);
    return ok;
}

const LhToolFormat lh_tool_nccl_tests = { "nccl-tests", is_nccl_table, read_nccl_tests };

/* --- as a log -----------------------------------------------------------------------------------
 */

/* Makes a log of the run; takes its rows and version. */
static LhNcclLog *
log_of(LhToolReader *r, NcclRun *run)
{
    guint per_host;
    LhNcclLog *log;

    if (!read_run_lines(r, run) || !check_run(r, run, &per_host))
        return NULL;
    log = g_new0(LhNcclLog, 1);
    log->file = g_strdup(r->text.file);
    log->program = nccl_programs[run->program].program;
    log->nccl = g_steal_pointer(&run->nccl);
    log->line = run->line;
    log->ranks = run->ranks;
    log->hosts = g_hash_table_size(run->hosts);
    log->rows = g_array_ref(run->rows);
    return log;
}

LhNcclLog *
lh_nccl_log_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(GArray) words = g_array_new(FALSE, FALSE, sizeof(LhToolWord));
    g_autoptr(GHashTable) hosts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GArray) rows = g_array_new(FALSE, FALSE, sizeof(Row));
    LhToolReader r = { { file, text, text + length, text, 0, error }, NULL, NULL, words };
    NcclRun run = { .program = G_N_ELEMENTS(nccl_programs), .hosts = hosts, .rows = rows };
    LhNcclLog *log = lh_tool_begin(&r) ? log_of(&r, &run) : NULL;

    g_free(run.nccl);
    if (log != NULL)
        log->sha256 = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text, length);
    return log;
}

LhNcclLog *
lh_nccl_log_load(const char *path, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, LH_TOOL_BYTES_MAX, &length, error);

    return text == NULL ? NULL : lh_nccl_log_parse(path, text, length, error);
}

void
lh_nccl_log_free(LhNcclLog *log)
{
    if (log == NULL)
        return;
    g_free(log->file);
    g_free(log->sha256);
    g_free(log->nccl);
    g_array_unref(log->rows);
    g_free(log);
}
