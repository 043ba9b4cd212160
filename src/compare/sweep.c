/*
 * Two passes over the points. The first sets all of them up, which says what each depends on and
 * how long it takes; the second compares the schedules of each. A thread takes the next point that
 * nobody has. Lines of the file of points are written in the order of the points, so the file has
 * all points up to one of them, whatever the number of threads.
 *
 * A shard has every so-manieth point. Its file is written in the same way; a sweep that puts shards
 * together reads what is whole in their files, and then has nothing or something left to do.
 */
#include "compare/sweep.h"

#include "base/error.h"
#include "base/files/append_log.h"
#include "base/json/json.h"
#include "base/json/json_writer.h"
#include "base/threads.h"
#include "compare/compare_pool.h"
#include "proof/proof_cases.h"
#include "proof/run_time_estimate.h"

#include "config.h"
#include "scenario/setup_step.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* What the first pass finds of a point. */
typedef struct {
    GError *refusal; /* NULL: it can be compared */
    double seconds;  /* that this takes on one core */
    uint32_t ranks;
    char *inputs; /* a line for each file that it depends on */
} Ready;

/* A sweep under way. */
typedef struct {
    const LhSweepQuery *query;
    LhSweep *sweep;
    Ready *ready;         /* of each point */
    GArray *mine;         /* of guint: the points that are looked at, in their order */
    guint first;          /* place in it that is done next: all before it are */
    LhAppendLog *journal; /* NULL: none */
    guint written;        /* of them, those of which it has a line */
    pthread_mutex_t lock; /* for the rows of points, and what follows */
    guint done;
    bool interrupted;
    GError *failure; /* of this machine, not of a point; NULL: none */
} Run;

static LhSweepPoint *
sweep_point(const LhSweep *sweep, guint index)
{
    return g_ptr_array_index(sweep->points, index);
}

static guint
mine_at(const Run *run, guint place)
{
    return g_array_index(run->mine, guint, place);
}

/* ---- the points ---- */

static void
point_free(gpointer data)
{
    LhSweepPoint *point = data;

    g_strfreev(point->values);
    g_clear_pointer(&point->rows, g_ptr_array_unref);
    g_free(point);
}

/* Which value of axis @axis point @index has. */
static guint
value_index(const LhSweep *sweep, guint index, guint axis)
{
    for (guint i = sweep->axes->len; i-- > axis + 1;)
        index /= ((const LhScenarioAxis *)g_ptr_array_index(sweep->axes, i))->values->len;
    return index % ((const LhScenarioAxis *)g_ptr_array_index(sweep->axes, axis))->values->len;
}

static void
add_point(LhSweep *sweep)
{
    LhSweepPoint *point = g_new0(LhSweepPoint, 1);
    g_autoptr(GStrvBuilder) values = g_strv_builder_new();

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        g_strv_builder_add(
            values, g_ptr_array_index(axis->values, value_index(sweep, sweep->points->len, i)));
    }
    point->values = g_strv_builder_end(values);
    g_ptr_array_add(sweep->points, point);
}

static bool
add_points(LhSweep *sweep, const LhScenario *scenario, GError **error)
{
    g_autoptr(GString) product = g_string_new(NULL);
    double count = 1;

    for (guint i = 0; i < sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(sweep->axes, i);

        count *= axis->values->len;
        g_string_append_printf(product, "%s%u of %s", i > 0 ? " x " : "", axis->values->len,
                               axis->field->name);
    }
    if (count > LH_SWEEP_POINTS_MAX)
        return lh_json_error(scenario->json, "sweep", error,
                             "these are %.0f combinations (%s); allowed: at most %d; take values "
                             "out, or give a field one value by its option",
                             count, product->str, LH_SWEEP_POINTS_MAX);
    for (guint i = 0; i < (guint)count; i++)
        add_point(sweep);
    return true;
}

/* What point @index asks. Caller frees. */
static LhScenario *
point_scenario(const LhSweep *sweep, const LhScenario *base, guint index)
{
    LhScenario *scenario = lh_scenario_copy(base);

    for (guint i = 0; i < sweep->axes->len; i++)
        lh_scenario_choose(scenario, g_ptr_array_index(sweep->axes, i),
                           value_index(sweep, index, i));
    return scenario;
}

/* ---- the first pass ---- */

/* Whether this machine has failed, for want of memory, and not a point, for which it would be a
 * refusal. The error is taken over if so. */
static bool
take_failure(Run *run, GError **error)
{
    if (!g_error_matches(*error, LH_ERROR, LH_ERROR_RUNTIME))
        return false;
    pthread_mutex_lock(&run->lock);
    if (run->failure == NULL)
        run->failure = g_steal_pointer(error);
    pthread_mutex_unlock(&run->lock);
    g_clear_error(error);
    return true;
}

/* False if the sweep is interrupted, or has failed. */
static bool
sweep_goes_on(Run *run)
{
    bool interrupted;

    pthread_mutex_lock(&run->lock);
    if (!run->interrupted && run->failure == NULL && run->query->progress != NULL) {
        const LhSweepProgress progress = { .points = run->sweep->points->len, .done = run->done };

        run->interrupted = !run->query->progress(run->query->progress_data, &progress);
    }
    interrupted = run->interrupted || run->failure != NULL;
    pthread_mutex_unlock(&run->lock);
    return !interrupted;
}

static double
setup_seconds(const LhSetup *setup)
{
    double seconds = setup->program != NULL ? lh_run_time_simulate(setup->program) : 0;

    for (guint i = 0; i < setup->schedules->len; i++) {
        g_autoptr(LhProgram) program =
            lh_setup_program(setup, g_ptr_array_index(setup->schedules, i), NULL);

        seconds += program != NULL ? lh_run_time_simulate(program) : 0;
    }
    return seconds;
}

static char *
inputs_of(const LhSetup *setup)
{
    GString *lines = g_string_new(NULL);

    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);

        g_string_append_printf(lines, "%s %s\n", input->path, input->sha256);
    }
    return g_string_free(lines, FALSE);
}

static void
make_ready(void *data, guint index)
{
    Run *run = data;
    Ready *ready = &run->ready[index];
    g_autoptr(LhScenario) scenario = NULL;
    g_autoptr(LhSetup) setup = NULL;

    if (!sweep_goes_on(run))
        return;
    scenario = point_scenario(run->sweep, run->query->scenario, index);
    setup = lh_setup_new(scenario, &ready->refusal);
    if (setup == NULL || !lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, &ready->refusal)) {
        (void)take_failure(run, &ready->refusal);
        return;
    }
    ready->seconds = setup_seconds(setup);
    ready->ranks = setup->network.ranks;
    ready->inputs = inputs_of(setup);
}

/* Keeps the setup of the first point that can be compared. False if there is none, for the reason
 * of the first of all. */
static bool
keep_setup(Run *run, GError **error)
{
    LhSweep *sweep = run->sweep;
    guint index = 0;

    for (guint i = 0; i < sweep->points->len; i++)
        sweep->refused += run->ready[i].refusal != NULL;
    while (index < sweep->points->len && run->ready[index].refusal != NULL)
        index++;
    if (index == sweep->points->len) {
        g_propagate_prefixed_error(error, g_error_copy(run->ready[0].refusal),
                                   "every point of the sweep is refused, the first one for: ");
        return false;
    }
    sweep->first = point_scenario(sweep, run->query->scenario, index);
    sweep->setup = lh_setup_new(sweep->first, error);
    if (sweep->setup == NULL)
        return false;
    sweep->columns = run->query->cells->columns(sweep->setup);
    return true;
}

/* Everything that the rows and their order depend on. */
static char *
sweep_sha256(const Run *run)
{
    g_autoptr(GString) text = g_string_new(LH_VERSION "\n");

    lh_scenario_lines(run->query->scenario, text);
    for (guint i = 0; i < run->sweep->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(run->sweep->axes, i);

        for (guint k = 0; k < axis->values->len; k++)
            g_string_append_printf(text, "%s[]=%s\n", axis->field->name,
                                   (const char *)g_ptr_array_index(axis->values, k));
    }
    for (guint i = 0; i < run->sweep->points->len; i++)
        g_string_append_printf(text, "%u\n%s", i,
                               run->ready[i].inputs != NULL ? run->ready[i].inputs
                                                            : run->ready[i].refusal->message);
    return g_compute_checksum_for_string(G_CHECKSUM_SHA256, text->str, (gssize)text->len);
}

/* ---- the file of points ---- */

/* A row in a line. */
typedef struct {
    GPtrArray *cells; /* of char * */
} Row;

typedef struct {
    uint64_t point;
    GArray *rows; /* of Row */
} Line;

static const LhField row_fields[] = {
    { .name = "cells",
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(Row, cells),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

static const LhField line_fields[] = {
    { .name = "point",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Line, point),
      .flags = LH_FIELD_REQUIRED },
    { .name = "rows",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Line, rows),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .fields = row_fields,
      .element_size = sizeof(Row) },
    { .name = NULL },
};

static GPtrArray *
new_rows(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
}

/* A copy of the row's cells, if they are as many as there are columns. Caller frees. */
static char **
cells_of(const Row *row, guint columns)
{
    g_autoptr(GStrvBuilder) cells = g_strv_builder_new();

    if (row->cells->len != columns)
        return NULL;
    for (guint i = 0; i < columns; i++)
        g_strv_builder_add(cells, g_ptr_array_index(row->cells, i));
    return g_strv_builder_end(cells);
}

/* Whether the line is what this sweep writes of its next point; takes it then. */
static bool
take_line(Run *run, const Line *line)
{
    g_autoptr(GPtrArray) rows = new_rows();
    const guint columns = g_strv_length(run->sweep->columns);

    if (run->first == run->mine->len || line->point != mine_at(run, run->first))
        return false;
    for (guint i = 0; i < line->rows->len; i++) {
        char **cells = cells_of(&g_array_index(line->rows, Row, i), columns);

        if (cells == NULL)
            return false;
        g_ptr_array_add(rows, cells);
    }
    sweep_point(run->sweep, mine_at(run, run->first++))->rows = g_steal_pointer(&rows);
    return true;
}

static bool
read_sweep_line(Run *run, const char *path, const char *text, guint number, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(path, text, strlen(text), NULL);
    Line line = { 0 };
    const bool read = json != NULL && lh_json_decode(json, line_fields, &line, false, NULL);
    const bool taken = read && take_line(run, &line);

    if (read)
        lh_json_clear(line_fields, &line);
    if (!taken)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: line %u is none that this sweep writes there, so the file cannot be gone "
                    "on from; remove it, or give another name",
                    path, number);
    return taken;
}

/* On one line, without its end; caller frees. */
static char *
line_text(void (*write)(LhJsonWriter *w, const Run *run, guint index), const Run *run, guint index)
{
    GString *line = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(line, true);

    lh_jsonw_object_begin(w, NULL);
    write(w, run, index);
    lh_jsonw_object_end(w);
    lh_jsonw_free(w);
    return g_strchomp(g_string_free(line, FALSE));
}

static void
write_first(LhJsonWriter *w, const Run *run, guint index)
{
    lh_jsonw_string(w, "schema", LH_SWEEP_LINES_SCHEMA);
    lh_jsonw_string(w, "version", LH_VERSION);
    lh_jsonw_string(w, "query_sha256", run->sweep->query_sha256);
    if (index > 0) {
        lh_jsonw_uint(w, "shard", index);
        lh_jsonw_uint(w, "shards", run->query->shards);
    }
}

static void
write_point(LhJsonWriter *w, const Run *run, guint index)
{
    const GPtrArray *rows = sweep_point(run->sweep, index)->rows;

    lh_jsonw_uint(w, "point", index);
    lh_jsonw_array_begin(w, "rows");
    for (guint i = 0; i < rows->len; i++) {
        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_array_begin(w, "cells");
        for (char **cell = g_ptr_array_index(rows, i); *cell != NULL; cell++)
            lh_jsonw_string(w, NULL, *cell);
        lh_jsonw_array_end(w);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static bool
read_lines(Run *run, const char *path, const GPtrArray *lines, GError **error)
{
    for (guint i = 0; i < lines->len; i++) {
        if (!read_sweep_line(run, path, g_ptr_array_index(lines, i), i + 2, error))
            return false;
    }
    return true;
}

/* Takes the points that the file has, of which @shard is: from 1, or 0 for that of the whole sweep.
 * Leaves the file open, to be gone on with. */
static bool
open_file(Run *run, const char *path, guint shard, GError **error)
{
    g_autofree char *first = line_text(write_first, run, shard);
    g_autoptr(GPtrArray) lines = NULL;

    run->first = 0;
    run->journal = lh_append_log_open(path, first, &lines, error);
    if (run->journal == NULL || !read_lines(run, path, lines, error))
        return false;
    run->written = run->first;
    return true;
}

/* The points of a shard, from 1, or all. */
static void
choose_mine(Run *run, guint shard)
{
    const guint step = shard > 0 ? run->query->shards : 1;

    g_array_set_size(run->mine, 0);
    for (guint i = shard > 0 ? shard - 1 : 0; i < run->sweep->points->len; i += step)
        g_array_append_val(run->mine, i);
}

/* Says what a shard's file does not have. */
static void
note_lost(Run *run, guint shard, const char *path, bool found)
{
    g_autofree char *name = g_path_get_basename(path);

    if (run->first == run->mine->len)
        return;
    g_ptr_array_add(run->sweep->lost,
                    found ? g_strdup_printf("shard %u of %u did not end: %s has %u of its %u "
                                            "points, and the others are looked at now",
                                            shard, run->query->shards, name, run->first,
                                            run->mine->len)
                          : g_strdup_printf("shard %u of %u is lost: there is no %s, and its %u "
                                            "points are looked at now",
                                            shard, run->query->shards, name, run->mine->len));
}

/* Takes what the file of a shard has. */
static bool
take_shard(Run *run, guint shard, GError **error)
{
    g_autofree char *path = lh_sweep_shard_file(run->query->points_file, shard, run->query->shards);
    const bool found = g_file_test(path, G_FILE_TEST_EXISTS);
    bool ok = true;

    choose_mine(run, shard);
    run->first = 0;
    if (found)
        ok = open_file(run, path, shard, error);
    lh_append_log_free(g_steal_pointer(&run->journal));
    if (ok)
        note_lost(run, shard, path, found);
    return ok;
}

/* What is there of the sweep, or of its shard; and the file that is gone on with. */
static bool
open_files(Run *run, GError **error)
{
    const LhSweepQuery *q = run->query;
    g_autofree char *path = q->shard > 0 ? lh_sweep_shard_file(q->points_file, q->shard, q->shards)
                                         : g_strdup(q->points_file);

    for (guint shard = 1; q->shard == 0 && shard <= q->shards; shard++) {
        if (!take_shard(run, shard, error))
            return false;
    }
    choose_mine(run, q->shard);
    run->sweep->in_shard = run->mine->len;
    run->first = 0;
    if (path != NULL && !open_file(run, path, q->shard, error))
        return false;
    for (guint i = 0; i < run->mine->len; i++)
        run->done += sweep_point(run->sweep, mine_at(run, i))->rows != NULL;
    return true;
}

char *
lh_sweep_shard_file(const char *points_file, guint shard, guint shards)
{
    return g_strdup_printf("%s.%u-of-%u", points_file, shard, shards);
}

/* Writes what is done without a gap. The lock is held. */
static void
write_done(Run *run)
{
    while (run->journal != NULL && run->written < run->mine->len &&
           sweep_point(run->sweep, mine_at(run, run->written))->rows != NULL) {
        g_autofree char *line = line_text(write_point, run, mine_at(run, run->written++));

        lh_append_log_append(run->journal, line);
    }
}

/* ---- the second pass ---- */

guint
lh_sweep_column(const LhSweep *sweep, const char *key)
{
    guint column = 0;

    while (strcmp(sweep->columns[column], key) != 0)
        column++;
    return column;
}

/* The one row of a point that is refused. */
static GPtrArray *
refused_rows(const LhSweep *sweep, const char *reason)
{
    GPtrArray *rows = new_rows();
    const guint columns = g_strv_length(sweep->columns);
    char **cells = g_new0(char *, columns + 1);

    for (guint i = 0; i < columns; i++)
        cells[i] = g_strdup("");
    g_free(cells[lh_sweep_column(sweep, "state")]);
    cells[lh_sweep_column(sweep, "state")] = g_strdup("refused");
    g_free(cells[lh_sweep_column(sweep, "reason")]);
    cells[lh_sweep_column(sweep, "reason")] = g_strdup(reason);
    g_ptr_array_add(rows, cells);
    return rows;
}

static bool
sweep_progress(void *data, const char *what, uint64_t events, LhTime now_ps)
{
    (void)what;
    (void)events;
    (void)now_ps;
    return sweep_goes_on(data);
}

/* NULL if it was interrupted, or failed. */
static GPtrArray *
compare_point(Run *run, guint index)
{
    const LhCompareOptions how = { .jobs = 1, .no_bound = true };
    const LhHooks hooks = { .progress = sweep_progress, .progress_data = run };
    g_autoptr(LhScenario) scenario = point_scenario(run->sweep, run->query->scenario, index);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, &error);
    g_autoptr(LhComparison) comparison = NULL;

    /* Files may have changed since the first pass. */
    if (setup != NULL && lh_prove_setup(setup, LH_PROVE_TO_SIMULATE, &error))
        comparison = lh_compare(setup, &how, &hooks, &error);
    if (comparison == NULL)
        return take_failure(run, &error) ? NULL : refused_rows(run->sweep, error->message);
    return comparison->interrupted ? NULL : run->query->cells->rows(setup, comparison);
}

static void
take_point(void *data, guint number)
{
    Run *run = data;
    const guint index = mine_at(run, run->first + number);
    const GError *refusal = run->ready[index].refusal;
    GPtrArray *rows;

    if (sweep_point(run->sweep, index)->rows != NULL || !sweep_goes_on(run))
        return;
    rows = refusal != NULL ? refused_rows(run->sweep, refusal->message) : compare_point(run, index);
    pthread_mutex_lock(&run->lock);
    sweep_point(run->sweep, index)->rows = rows;
    run->done += rows != NULL;
    write_done(run);
    pthread_mutex_unlock(&run->lock);
}

/* ---- both ---- */

static double
all_work(const Run *run)
{
    double seconds = 0;

    for (guint i = run->first; i < run->mine->len; i++) {
        const guint index = mine_at(run, i);

        seconds += sweep_point(run->sweep, index)->rows == NULL ? run->ready[index].seconds : 0;
    }
    return seconds;
}

static uint32_t
most_ranks(const Run *run)
{
    uint32_t most = 1;

    for (guint i = 0; i < run->sweep->points->len; i++)
        most = MAX(most, run->ready[i].ranks);
    return most;
}

static bool
sweep_all(Run *run, GError **error)
{
    LhSweep *sweep = run->sweep;
    const guint count = sweep->points->len;
    guint threads;

    run->ready = g_new0(Ready, count);
    lh_on_threads_each("sweep", run->query->jobs > 0 ? run->query->jobs : g_get_num_processors(),
                       count, make_ready, run);
    if (run->failure != NULL || run->interrupted || !keep_setup(run, error))
        return run->failure == NULL && run->interrupted;
    sweep->query_sha256 = sweep_sha256(run);
    if (!open_files(run, error) ||
        !lh_run_time_check(all_work(run), run->query->max_work_ps, error))
        return false;
    threads = lh_compare_threads(run->query->jobs, count, most_ranks(run));
    lh_on_threads_each("sweep", threads, run->mine->len - run->first, take_point, run);
    write_done(run); /* what shards had last */
    return run->journal == NULL || lh_append_log_close(g_steal_pointer(&run->journal), error);
}

static void
run_clear(Run *run)
{
    for (guint i = 0; run->ready != NULL && i < run->sweep->points->len; i++) {
        g_clear_error(&run->ready[i].refusal);
        g_free(run->ready[i].inputs);
    }
    g_free(run->ready);
    g_array_unref(run->mine);
    lh_append_log_free(run->journal);
    pthread_mutex_destroy(&run->lock);
}

LhSweep *
lh_sweep(const LhSweepQuery *query, GError **error)
{
    g_autoptr(LhSweep) sweep = g_new0(LhSweep, 1);
    Run run = { .query = query, .sweep = sweep };
    bool ok;

    sweep->lost = g_ptr_array_new_with_free_func(g_free);
    sweep->axes = lh_scenario_axes(query->scenario);
    sweep->points = g_ptr_array_new_with_free_func(point_free);
    if (!add_points(sweep, query->scenario, error))
        return NULL;
    run.mine = g_array_new(FALSE, FALSE, sizeof(guint));
    pthread_mutex_init(&run.lock, NULL);
    ok = sweep_all(&run, error) && run.failure == NULL;
    if (run.failure != NULL) {
        g_clear_error(error);
        g_propagate_error(error, g_steal_pointer(&run.failure));
    }
    sweep->interrupted = run.interrupted;
    run_clear(&run);
    return ok ? g_steal_pointer(&sweep) : NULL;
}

void
lh_sweep_free(LhSweep *sweep)
{
    if (sweep == NULL)
        return;
    g_clear_pointer(&sweep->axes, g_ptr_array_unref);
    g_clear_pointer(&sweep->points, g_ptr_array_unref);
    g_clear_pointer(&sweep->lost, g_ptr_array_unref);
    g_strfreev(sweep->columns);
    g_free(sweep->query_sha256);
    lh_setup_free(sweep->setup);
    lh_scenario_free(sweep->first);
    g_free(sweep);
}
