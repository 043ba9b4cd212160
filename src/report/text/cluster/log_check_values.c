/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/cluster/log_check_values.h"

#include "base/json/json_decode.h"
#include "report/data/document.h"

#include <math.h>

#define GIGABYTE 1e9
#define US_PER_S 1e6

const LhLogCheckRun *
lh_log_check_run(const LhLogCheck *held, guint index)
{
    return g_ptr_array_index(held->runs, index);
}

const LhLogCheckRow *
lh_log_check_row(const LhLogCheckRun *run, guint index)
{
    return &g_array_index(run->rows, LhLogCheckRow, index);
}

double
lh_log_check_algbw(const LhLogCheckRow *row, double seconds)
{
    return (double)row->bytes / seconds / GIGABYTE;
}

double
lh_log_check_bus_share(const LhLogCheckRun *run)
{
    return lh_nccl_test_bus_share(run->single->op, run->single->ranks);
}

double
lh_log_check_busbw_allowed(const LhLogCheckRun *run, const LhLinkLoad *load)
{
    return lh_log_check_bus_share(run) / load->s_per_byte / GIGABYTE;
}

const LhLinkLoad *
lh_log_check_load(const LhLogCheckRun *run, guint index)
{
    return &g_array_index(run->loads, LhLinkLoad, index);
}

const char *
lh_log_check_verdict(const LhLogCheckRow *row)
{
    const double bars = row->log_s > 0 ? lh_log_check_bars(row, row->time.seconds) : 0;

    return bars > 1 ? "slow" : bars < -1 ? "fast" : NULL;
}

char *
lh_log_check_load_name(const LhLogCheckRun *run, const LhLinkLoad *load)
{
    return load->link == LH_LINK_OF_PAIR
               ? g_strdup("limit of messages between two GPUs of different nodes")
               : lh_network_link_name(&run->single->setup->network, load->link);
}

/* ---- all rows ---- */

static void
add_number(LhTable *t, double value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];

    lh_double_to_text(value, exact);
    lh_table_cell(t, exact, NULL);
}

static void
add_exact_row(LhTable *t, const LhLogCheckRun *run, const LhLogCheckRow *row)
{
    const double s = row->time.seconds, wide = 1 + row->time.error;

    lh_table_row(t);
    lh_table_cell(t, run->single->op->name, NULL);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, run->single->ranks);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, run->single->nodes);
    lh_table_cell_printf(t, "%" G_GUINT64_FORMAT, row->bytes);
    add_number(t, s * US_PER_S);
    add_number(t, s / wide * US_PER_S);
    add_number(t, s * wide * US_PER_S);
    add_number(t, lh_log_check_algbw(row, s));
    add_number(t, lh_log_check_bus_share(run) * lh_log_check_algbw(row, s));
    add_number(t, lh_log_check_busbw_allowed(run, lh_log_check_load(run, 0)));
    lh_table_cell(t, lh_times_source_names[row->time.source], NULL);
    if (run->log == NULL)
        return;
    lh_table_cell(t, run->log->file, NULL);
    lh_table_cell_printf(t, "%u", row->line);
    add_number(t, row->log_s * US_PER_S);
    add_number(t, row->log_s / s);
    lh_table_cell(t, lh_log_check_verdict(row) != NULL ? lh_log_check_verdict(row) : "inside",
                  NULL);
}

LhTable *
lh_log_check_table(const LhLogCheck *held)
{
    static const char *const columns[] = {
        "op",      "ranks",      "nodes",         "bytes",      "time_us", "low_us",
        "high_us", "algbw_gbps", "busbw_gbps",    "links_gbps", "source",  "log",
        "line",    "log_us",     "log_over_time", "verdict"
    };
    LhTable *t = lh_table_new();

    for (gsize i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(t, columns[i], columns[i], NULL, false);
    for (guint i = 0; i < held->runs->len; i++) {
        const LhLogCheckRun *run = lh_log_check_run(held, i);

        for (guint k = 0; k < run->rows->len; k++)
            add_exact_row(t, run, lh_log_check_row(run, k));
    }
    return t;
}

/* ---- as JSON ---- */

typedef struct {
    char *link;
    double busbw_bytes_per_s;
} HeldLink;

static const LhField held_link_fields[] = {
    LH_FIELD_ROW(STRING, HeldLink, link, "link", ALWAYS, .description = "Name of the link."),
    LH_FIELD_ROW(DOUBLE, HeldLink, busbw_bytes_per_s, "busbw_bytes_per_s", ALWAYS,
                 .description = "Bandwidth that the link allows."),
    { .name = NULL },
};

typedef struct {
    uint64_t bytes;
    double time_s, low_s, high_s;
    double algbw_bytes_per_s, busbw_bytes_per_s;
    int source;    /* LhTimesSource */
    uint64_t line; /* 0: no log; then the following members are not set */
    double log_s;
    char *verdict;
} HeldRow;

static const char *const held_verdicts[] = { "inside", "slow", "fast", NULL };

static const LhField held_row_fields[] = {
    LH_FIELD_ROW(UINT, HeldRow, bytes, "bytes", ALWAYS,
                 .description = "Size, as printed by nccl-tests."),
    LH_FIELD_ROW(DOUBLE, HeldRow, time_s, "time_s", ALWAYS, .description = "Predicted time."),
    LH_FIELD_ROW(DOUBLE, HeldRow, low_s, "low_s", ALWAYS,
                 .description =
                     "Lower end of the error bar, which contains four of five measured times."),
    LH_FIELD_ROW(DOUBLE, HeldRow, high_s, "high_s", ALWAYS,
                 .description = "Upper end of the error bar."),
    LH_FIELD_ROW(DOUBLE, HeldRow, algbw_bytes_per_s, "algbw_bytes_per_s", ALWAYS,
                 .description = "Algorithm bandwidth: size over time."),
    LH_FIELD_ROW(DOUBLE, HeldRow, busbw_bytes_per_s, "busbw_bytes_per_s", ALWAYS,
                 .description = "Bus bandwidth, as computed by nccl-tests."),
    LH_FIELD_ROW(
        CHOICE, HeldRow, source, "source", ALWAYS, .choices = lh_times_source_names,
        .description =
            "Whether the time was measured on such links, scaled from others, or modelled."),
    LH_FIELD_ROW(UINT, HeldRow, line, "line", IF_ANY, .description = "Line of the log."),
    LH_FIELD_ROW(DOUBLE, HeldRow, log_s, "log_s", IF_ANY, .description = "Time in the log."),
    LH_FIELD_ROW(STRING, HeldRow, verdict, "verdict", IF_ANY, .choices = held_verdicts,
                 .description = "Position of the log's time relative to the error bar."),
    { .name = NULL },
};

typedef struct {
    char *op, *cluster;
    uint64_t ranks, nodes;
    char *log, *nccl;
    GArray *links; /* of HeldLink */
    GArray *rows;  /* of HeldRow */
} HeldRun;

static const LhField held_run_fields[] = {
    LH_FIELD_ROW(STRING, HeldRun, op, "op", ALWAYS, .choices = lh_nccl_test_op_names,
                 .description = "Operation, by its nccl-tests name."),
    LH_FIELD_ROW(STRING, HeldRun, cluster, "cluster", ALWAYS,
                 .description = "Name of the cluster."),
    LH_FIELD_ROW(UINT, HeldRun, ranks, "ranks", ALWAYS, .description = "Number of GPUs."),
    LH_FIELD_ROW(UINT, HeldRun, nodes, "nodes", ALWAYS, .description = "Nodes of these GPUs."),
    LH_FIELD_ROW(STRING, HeldRun, log, "log", OR_NULL, .description = "The log file; null: none."),
    LH_FIELD_ROW(STRING, HeldRun, nccl, "nccl", OR_NULL,
                 .description = "NCCL's version according to the log."),
    LH_FIELD_ROW(ARRAY, HeldRun, links, "links", ALWAYS, .fields = held_link_fields,
                 .element_size = sizeof(HeldLink),
                 .description = "The most loaded links; the first one is the limit."),
    LH_FIELD_ROW(ARRAY, HeldRun, rows, "rows", ALWAYS, .fields = held_row_fields,
                 .element_size = sizeof(HeldRow), .description = "Rows by size."),
    { .name = NULL },
};

typedef struct {
    char *as_if;
    double factor; /* NAN: not a number */
    uint64_t inside;
} HeldCause;

static const LhField held_cause_fields[] = {
    LH_FIELD_ROW(STRING, HeldCause, as_if, "as_if", ALWAYS,
                 .description = "Path of a number in the topology file, or a setting of NCCL."),
    LH_FIELD_ROW(DOUBLE, HeldCause, factor, "factor", IF_ANY,
                 .description = "Factor on the file's value."),
    LH_FIELD_ROW(UINT, HeldCause, inside, "rows_inside", ALWAYS,
                 .description = "Rows of logs within their error bars with this change."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    GArray *runs; /* of HeldRun */
    uint64_t logged, inside;
    GArray *causes; /* of HeldCause */
} HeldDocument;

static const char *const held_schema[] = { "longhaul.collective/1", NULL };

const LhField lh_collective_fields[] = {
    LH_DOCUMENT_HEAD(HeldDocument, head, held_schema),
    LH_FIELD_ROW(POINTER, HeldDocument, head.asked, "asked", ALWAYS,
                 .fields = lh_document_asked_fields, .description = "The query."),
    LH_FIELD_ROW(ARRAY, HeldDocument, runs, "runs", ALWAYS, .fields = held_run_fields,
                 .element_size = sizeof(HeldRun),
                 .description = "One run for each log, or a single one."),
    LH_FIELD_ROW(UINT, HeldDocument, logged, "rows_of_logs", ALWAYS,
                 .description = "Rows of all logs."),
    LH_FIELD_ROW(UINT, HeldDocument, inside, "rows_inside", ALWAYS,
                 .description = "Rows within their error bars."),
    LH_FIELD_ROW(
        ARRAY, HeldDocument, causes, "causes", ALWAYS, .fields = held_cause_fields,
        .element_size = sizeof(HeldCause),
        .description =
            "Changes that explain the other rows, each alone and equally well; the best first."),
    { .name = NULL },
};

static GArray *
held_links(const LhLogCheckRun *run)
{
    GArray *links = g_array_new(FALSE, FALSE, sizeof(HeldLink));

    for (guint i = 0; i < MIN(run->loads->len, LH_LOG_CHECK_LINKS); i++) {
        const LhLinkLoad *load = lh_log_check_load(run, i);
        const HeldLink link = { .link = lh_log_check_load_name(run, load),
                                .busbw_bytes_per_s =
                                    lh_log_check_busbw_allowed(run, load) * GIGABYTE };

        g_array_append_val(links, link);
    }
    return links;
}

static HeldRow
held_row(const LhLogCheckRun *run, const LhLogCheckRow *row)
{
    const double s = row->time.seconds, wide = 1 + row->time.error;
    const char *verdict = lh_log_check_verdict(row) != NULL ? lh_log_check_verdict(row) : "inside";

    return (HeldRow){ .bytes = row->bytes,
                      .time_s = s,
                      .low_s = s / wide,
                      .high_s = s * wide,
                      .algbw_bytes_per_s = (double)row->bytes / s,
                      .busbw_bytes_per_s = lh_log_check_bus_share(run) * (double)row->bytes / s,
                      .source = (int)row->time.source,
                      .line = row->line,
                      .log_s = row->log_s,
                      .verdict = g_strdup(run->log != NULL ? verdict : NULL) };
}

static HeldRun
held_run(const LhLogCheckRun *run)
{
    HeldRun held = { .op = g_strdup(run->single->op->name),
                     .cluster = g_strdup(run->single->setup->topology->name),
                     .ranks = run->single->ranks,
                     .nodes = run->single->nodes,
                     .log = g_strdup(run->log != NULL ? run->log->file : NULL),
                     .nccl = g_strdup(run->log != NULL ? run->log->nccl : NULL),
                     .links = held_links(run),
                     .rows = g_array_new(FALSE, FALSE, sizeof(HeldRow)) };

    for (guint i = 0; i < run->rows->len; i++) {
        const HeldRow row = held_row(run, lh_log_check_row(run, i));

        g_array_append_val(held.rows, row);
    }
    return held;
}

static GArray *
held_runs(const LhLogCheck *held)
{
    GArray *runs = g_array_new(FALSE, FALSE, sizeof(HeldRun));

    for (guint i = 0; i < held->runs->len; i++) {
        const HeldRun run = held_run(lh_log_check_run(held, i));

        g_array_append_val(runs, run);
    }
    return runs;
}

static GArray *
held_causes(const LhLogCheck *held)
{
    GArray *causes = g_array_new(FALSE, FALSE, sizeof(HeldCause));

    for (guint i = 0; i < held->causes->len; i++) {
        const LhLogCheckCause *cause = &g_array_index(held->causes, LhLogCheckCause, i);
        const bool lever = cause->lever != NULL;
        const HeldCause held_cause = { .as_if = g_strdup(lever ? cause->lever->path : cause->way),
                                       .factor = lever ? cause->factor : NAN,
                                       .inside = cause->inside };

        g_array_append_val(causes, held_cause);
    }
    return causes;
}

/* Files of the first run, and all logs. */
static GPtrArray *
inputs_of(const LhLogCheck *held)
{
    const GPtrArray *own = lh_log_check_run(held, 0)->single->setup->inputs;
    GPtrArray *inputs = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < own->len; i++) {
        LhInput *input = g_new(LhInput, 1);

        *input = *(const LhInput *)g_ptr_array_index(own, i);
        g_ptr_array_add(inputs, input);
    }
    for (guint i = 0; i < held->runs->len; i++) {
        const LhNcclLog *log = lh_log_check_run(held, i)->log;
        LhInput *input = log != NULL ? g_new(LhInput, 1) : NULL;

        if (input == NULL)
            continue;
        *input = (LhInput){ "log", log->file, log->sha256 };
        g_ptr_array_add(inputs, input);
    }
    return inputs;
}

void
lh_log_check_json(const LhLogCheck *held, const LhStamp *stamp, GString *out)
{
    g_autoptr(GPtrArray) inputs = inputs_of(held);
    LhStamp with_logs = *stamp;
    HeldDocument document = {
        .runs = held_runs(held),
        .logged = held->logged,
        .inside = held->inside,
        .causes = held_causes(held),
    };

    with_logs.inputs = inputs;
    document.head = lh_document_head(held_schema[0], &with_logs, NULL);
    lh_json_encode_text(lh_collective_fields, &document, out);
    lh_document_head_clear(&document.head);
    lh_json_clear(lh_collective_fields, &document);
}
