/* SPDX-License-Identifier: Apache-2.0 */
#include "collective_check/log_check.h"

#include "base/error.h"
#include "collective_check/log_causes.h"
#include "scenario/setup.h"
#include "scenario/setup_cluster.h"

#include <math.h>
#include <string.h>

/* ---- placement ---- */

static bool fail_log(const LhNcclLog *log, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static bool
fail_log(const LhNcclLog *log, GError **error, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%u: error: %s", log->file, log->line, text);
    return false;
}

static void
set_field(LhScenario *scenario, const char *field, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, value);

    lh_scenario_replace(scenario, field, text);
}

/* The number of nodes. A log does not state which hosts share a node, so nodes are filled one after
 * another. */
static uint64_t
nodes_of_hosts(const char *cluster, uint64_t hosts)
{
    g_autoptr(LhTopology) t = lh_topology_load(cluster, NULL); /* the setup reports errors */
    const uint64_t each = t == NULL ? 1 : lh_topology_hosts(t);

    return (hosts + each - 1) / each;
}

/* Sets the number of nodes that the ranks need, for a cluster that does not state one. */
static void
size_held_cluster(LhScenario *scenario, LhNcclTestPlace place)
{
    const uint64_t each = MAX(place.per_node, place.per_host);
    g_autofree char *sized = NULL;
    uint64_t nodes;

    if (place.ranks > 0 && each == 0)
        set_field(scenario, "ranks", place.ranks);
    if (place.ranks == 0 || each == 0 || lh_setup_cluster_has_nodes(scenario->cluster))
        return;
    nodes = (place.ranks + each - 1) / each;
    if (place.per_host > 0)
        nodes = nodes_of_hosts(scenario->cluster, nodes);
    sized = g_strdup_printf("%s:%" G_GUINT64_FORMAT, scenario->cluster, nodes);
    lh_scenario_replace(scenario, "cluster", sized);
}

/* The log's placement, which must not contradict the query. */
static bool
place_log(const LhLogCheckQuery *query, const LhNcclLog *log, LhNcclTestPlace *place,
          GError **error)
{
    *place = (LhNcclTestPlace){ .ranks = log->ranks, .per_host = log->ranks / log->hosts };
    if (query->place.ranks > 0 && query->place.ranks != log->ranks)
        return fail_log(log, error, "the log has %u ranks, but --ranks is %" G_GUINT64_FORMAT,
                        log->ranks, query->place.ranks);
    if (query->place.per_node > 0 && query->place.per_node != place->per_host)
        return fail_log(log, error,
                        "the log has %" G_GUINT64_FORMAT " ranks on each host, but --per-node is "
                        "%" G_GUINT64_FORMAT,
                        place->per_host, query->place.per_node);
    return true;
}

static bool
check_log_hosts(const LhLogCheckRun *run, GError **error)
{
    const LhNetwork *n = &run->single->setup->network;

    return (run->log->hosts + n->hosts_per_node - 1) / n->hosts_per_node == n->nodes ||
           fail_log(run->log, error,
                    "the log has %u ranks on %u host%s, but the cluster has %u node%s of %u GPUs",
                    run->log->ranks, run->log->hosts, run->log->hosts == 1 ? "" : "s", n->nodes,
                    n->nodes == 1 ? "" : "s", n->gpus_per_node);
}

/* ---- rows ---- */

static bool
add_row(LhLogCheckRun *run, LhLogCheckRow row, GError **error)
{
    if (!lh_nccl_test_time(run->single, row.bytes, &row.time, error))
        return false;
    g_array_append_val(run->rows, row);
    return true;
}

static bool
add_sizes(const LhLogCheckQuery *query, LhLogCheckRun *run, GError **error)
{
    uint64_t last = 0;

    for (uint64_t bytes = query->bytes_min; bytes <= query->bytes_max; bytes *= query->factor) {
        const LhLogCheckRow row = { .bytes = lh_nccl_test_bytes(run->single->op, run->single->ranks,
                                                                bytes) };

        if (row.bytes > last && !add_row(run, row, error))
            return false;
        last = row.bytes;
        if (bytes > query->bytes_max / query->factor)
            break; /* avoids overflow */
    }
    if (run->rows->len > 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "sizes of %s on %" G_GUINT64_FORMAT " ranks are multiples of %" G_GUINT64_FORMAT
                " bytes; none is at most --maxbytes",
                run->single->op->name, run->single->ranks,
                run->single->ranks * run->single->op->grain_bytes);
    return false;
}

static bool
add_log_rows(const LhLogCheckQuery *query, LhLogCheckRun *run, GError **error)
{
    for (guint i = 0; i < run->log->rows->len; i++) {
        const LhNcclLogRow *of_log = &g_array_index(run->log->rows, LhNcclLogRow, i);
        const LhLogCheckRow row = { .bytes = of_log->bytes,
                                    .log_s = of_log->us / G_USEC_PER_SEC,
                                    .line = of_log->line };

        if (row.bytes >= query->bytes_min && row.bytes <= query->bytes_max &&
            !add_row(run, row, error))
            return false;
    }
    return run->rows->len > 0 ||
           fail_log(run->log, error, "no row has a size between --minbytes and --maxbytes");
}

/* ---- runs ---- */

static void
run_free(gpointer data)
{
    LhLogCheckRun *run = data;

    lh_nccl_test_free(run->single);
    lh_scenario_free(run->scenario);
    lh_nccl_log_free(run->log);
    g_array_unref(run->rows);
    g_clear_pointer(&run->loads, g_array_unref);
    g_free(run);
}

static const LhNcclTestOp *
op_of_log(const LhLogCheckQuery *query, const LhNcclLog *log, GError **error)
{
    g_autoptr(GError) cause = NULL;
    const LhNcclTestOp *op = lh_nccl_test_op_find(log->program, &cause);

    if (op == NULL) {
        fail_log(log, error, "%s", cause->message);
        return NULL;
    }
    if (query->op == NULL || query->op == op)
        return op;
    fail_log(log, error, "the log is of %s, but the operation requested is %s", log->program,
             query->op->name);
    return NULL;
}

/* Adds a run. Takes @log, which may be NULL. */
static bool
add_run(const LhLogCheckQuery *query, LhNcclLog *log, GPtrArray *runs, GError **error)
{
    LhLogCheckRun *run = g_new0(LhLogCheckRun, 1);
    LhNcclTestPlace place = query->place;
    const LhNcclTestOp *op = query->op;

    g_ptr_array_add(runs, run);
    run->log = log;
    run->rows = g_array_new(FALSE, FALSE, sizeof(LhLogCheckRow));
    run->scenario = lh_scenario_copy(query->scenario);
    if (log != NULL) {
        op = op_of_log(query, log, error);
        if (op == NULL || !place_log(query, log, &place, error))
            return false;
    }
    size_held_cluster(run->scenario, place);
    run->single = lh_nccl_test_new(run->scenario, op, place, error);
    if (run->single == NULL || (log != NULL && !check_log_hosts(run, error)))
        return false;
    run->loads = lh_nccl_test_loads(run->single);
    return log != NULL ? add_log_rows(query, run, error) : add_sizes(query, run, error);
}

static bool
add_logs(const LhLogCheckQuery *query, GPtrArray *runs, GError **error)
{
    for (guint i = 0; i < query->logs->len; i++) {
        LhNcclLog *log = lh_nccl_log_load(g_ptr_array_index(query->logs, i), error);

        if (log == NULL || !add_run(query, log, runs, error))
            return false;
    }
    return true;
}

double
lh_log_check_bars(const LhLogCheckRow *row, double predicted_s)
{
    return log(row->log_s / predicted_s) / log1p(row->time.error);
}

static void
count_rows(LhLogCheck *held)
{
    for (guint i = 0; i < held->runs->len; i++) {
        const LhLogCheckRun *run = g_ptr_array_index(held->runs, i);

        for (guint k = 0; k < run->rows->len; k++) {
            const LhLogCheckRow *row = &g_array_index(run->rows, LhLogCheckRow, k);

            held->logged += row->log_s > 0;
            held->inside += row->log_s > 0 && fabs(lh_log_check_bars(row, row->time.seconds)) <= 1;
        }
    }
}

LhLogCheck *
lh_log_check_new(const LhLogCheckQuery *query, GError **error)
{
    g_autoptr(LhLogCheck) held = g_new0(LhLogCheck, 1);

    held->runs = g_ptr_array_new_with_free_func(run_free);
    held->causes = g_array_new(FALSE, FALSE, sizeof(LhLogCheckCause));
    if (!(query->logs != NULL ? add_logs(query, held->runs, error)
                              : add_run(query, NULL, held->runs, error)))
        return NULL;
    count_rows(held);
    if (held->inside < held->logged)
        lh_log_causes_find(held);
    return g_steal_pointer(&held);
}

void
lh_log_check_free(LhLogCheck *held)
{
    if (held == NULL)
        return;
    g_ptr_array_unref(held->runs);
    g_array_unref(held->causes);
    g_free(held);
}
