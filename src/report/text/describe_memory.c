/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_memory.h"

#include "report/base/text.h"
#include "report/data/case_values.h"
#include "report/data/memory_limit.h"
#include "report/data/relief_fields.h"
#include "report/text/number_cells.h"

static const LhStageNeed *
stage_at(const LhMemoryNeed *need, guint i)
{
    return &g_array_index(need->stages, LhStageNeed, i);
}

/* ---- tables ---- */

/* Whether any stage has bytes of the category at its peak. */
static bool
occurs(const LhMemoryNeed *need, int category)
{
    for (guint i = 0; i < need->stages->len; i++) {
        if (stage_at(need, i)->by_category[category] > 0)
            return true;
    }
    return false;
}

LhTable *
lh_describe_stage_needs(const LhMemoryNeed *need)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "stage", "stage", NULL, true);
    lh_table_column(table, "rank", "rank", NULL, true);
    lh_table_column(table, "peak_bytes", "peak", "MiB", true);
    for (int c = 0; c < LH_CATEGORIES; c++) {
        if (occurs(need, c))
            lh_table_column(table, lh_category_names[c], lh_category_names[c], "MiB", true);
    }
    if (need->host.needed_bytes > 0)
        lh_table_column(table, "host_bytes", "host", "MiB", true);
    for (guint i = 0; i < need->stages->len; i++) {
        const LhStageNeed *stage = stage_at(need, i);

        lh_table_row(table);
        lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, stage->stage);
        lh_table_cell_printf(table, "%" G_GUINT64_FORMAT, stage->rank);
        lh_cell_mib(table, stage->peak_bytes, 1);
        for (int c = 0; c < LH_CATEGORIES; c++) {
            if (occurs(need, c))
                lh_cell_mib(table, stage->by_category[c], 1);
        }
        if (need->host.needed_bytes > 0)
            lh_cell_mib(table, stage->host_bytes, 1);
    }
    return table;
}

static int
by_peak(gconstpointer a, gconstpointer b)
{
    const LhRelief *x = *(LhRelief *const *)a, *y = *(LhRelief *const *)b;

    return x->peak_bytes < y->peak_bytes ? -1 : x->peak_bytes > y->peak_bytes;
}

LhTable *
lh_describe_changes(const LhMemoryNeed *need)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new(); /* borrowed */
    LhTable *table = lh_table_new();

    g_ptr_array_extend(changes, need->reliefs->tried, NULL, NULL);
    g_ptr_array_sort(changes, by_peak);
    lh_table_column(table, "options", "with", NULL, false);
    lh_table_column(table, "peak_bytes", "peak", "MiB", true);
    lh_table_column(table, "saved_bytes", "saves", "MiB", true);
    lh_table_column(table, "fits", "fits", NULL, false);
    for (guint i = 0; i < changes->len; i++) {
        const LhRelief *change = g_ptr_array_index(changes, i);

        if (change->peak_bytes >= need->reliefs->peak_bytes)
            continue;
        lh_table_row(table);
        lh_table_cell(table, change->options, NULL);
        lh_cell_mib(table, change->peak_bytes, 1);
        lh_cell_mib(table, need->reliefs->peak_bytes - change->peak_bytes, 1);
        lh_table_cell(table, change->fits ? "yes" : "no", NULL);
    }
    return table;
}

/* ---- words ---- */

static void
describe_host(const LhHostMemory *host, GString *out)
{
    g_autofree char *needed = lh_format_bytes(host->needed_bytes);
    g_autofree char *limit = lh_format_bytes(host->limit_bytes);

    g_string_append_printf(out, "; node %u needs %s", host->node, needed);
    if (host->limit_bytes > 0)
        g_string_append_printf(out, " of %s", limit);
    g_string_append(out, " of host memory");
}

void
lh_describe_memory_need(const LhSetup *setup, const LhMemoryNeed *need, GString *out)
{
    const LhStageNeed *highest = stage_at(need, need->highest);
    g_autofree char *peak = lh_format_bytes(highest->peak_bytes);
    g_autofree char *limit = lh_format_bytes(need->limit_bytes);
    g_autofree char *most_bytes = NULL;
    int most = 0;

    for (int c = 1; c < LH_CATEGORIES; c++)
        most = highest->by_category[c] > highest->by_category[most] ? c : most;
    most_bytes = lh_format_bytes(highest->by_category[most]);
    if (need->limit_bytes == 0)
        g_string_append_printf(out, "Its peak is %s", peak);
    else
        g_string_append_printf(out, "%s: rank %" G_GUINT64_FORMAT " needs %s",
                               lh_memory_need_fits(need) ? "It fits" : "It does not fit",
                               highest->rank, peak);
    lh_describe_peak_interval(setup, highest->peak_bytes, out);
    if (need->limit_bytes > 0)
        g_string_append_printf(out, " of %s", limit);
    g_string_append_printf(out, ", most of it %s (%s)", lh_category_names[most], most_bytes);
    if (need->host.needed_bytes > 0)
        describe_host(&need->host, out);
    g_string_append(out, ".\n");
}

/* ---- JSON ---- */

static const LhField stage_fields[] = {
    LH_FIELD_ROW(UINT, LhStageNeed, stage, "stage", ALWAYS, .description = "Pipeline stage."),
    LH_FIELD_ROW(UINT, LhStageNeed, rank, "rank", ALWAYS,
                 .description = "First rank of the stage; of an attention module, the rank with "
                                "the highest peak."),
    LH_FIELD_ROW(UINT, LhStageNeed, peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak memory of the rank of the stage that needs most."),
    LH_FIELD_ROW(COUNTS, LhStageNeed, by_category, "by_category", ALWAYS,
                 .choices = lh_category_names,
                 .description = "Bytes at the peak by category; only categories that occur."),
    LH_FIELD_ROW(UINT, LhStageNeed, host_bytes, "host_bytes", IF_ANY,
                 .description = "Peak of host memory of the rank; absent if nothing is offloaded."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    LhCaseValues of_case;
    GArray *stages;
    uint64_t limit_bytes;
    LhHostMemory host;
    int fits;
    LhReliefs *reliefs;
} MemoryDocument;

static const char *const memory_schema[] = { LH_MEMORY_SCHEMA, NULL };

const LhField lh_memory_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(MemoryDocument, head, memory_schema),
    LH_DOCUMENT_ASKED(MemoryDocument, head),
    LH_FIELD_ROW(OBJECT, MemoryDocument, of_case, "case", ALWAYS, .fields = lh_case_fields,
                 .description = "The case."),
    LH_FIELD_ROW(ARRAY, MemoryDocument, stages, "stages", ALWAYS, .fields = stage_fields,
                 .element_size = sizeof(LhStageNeed),
                 .description = "Pipeline stages; one without a pipeline."),
    LH_FIELD_ROW(UINT, MemoryDocument, limit_bytes, "limit_bytes", OR_NULL, .min = 1, .max = -1,
                 .description = "Memory available to a rank; null: no limit."),
    LH_FIELD_ROW(UINT, MemoryDocument, host.needed_bytes, "node_host_bytes", IF_ANY,
                 .description = "Host memory of the node that needs most: the sum of its ranks' "
                                "peaks; absent if nothing is offloaded."),
    LH_FIELD_ROW(UINT, MemoryDocument, host.limit_bytes, "node_host_limit_bytes", IF_ANY,
                 .description = "Host memory of a node; absent if it is not known, or nothing is "
                                "offloaded."),
    LH_FIELD_ROW(BOOL, MemoryDocument, fits, "fits", ALWAYS, .description = "Whether it fits."),
    LH_FIELD_ROW(POINTER, MemoryDocument, reliefs, "changes", OR_NULL, .fields = lh_relief_fields,
                 .description = "What single changes of the case save; null with --no-changes."),
    { .name = NULL },
};

void
lh_memory_json(const LhSetup *setup, const LhMemoryNeed *need, const LhStamp *stamp, GString *out)
{
    MemoryDocument document = {
        .head = lh_document_head(LH_MEMORY_SCHEMA, stamp, setup),
        .of_case = lh_case_values(setup),
        .stages = need->stages,
        .limit_bytes = need->limit_bytes > 0 ? need->limit_bytes : LH_FIELD_NO_UINT,
        .fits = lh_memory_need_fits(need),
        .reliefs = need->reliefs,
    };

    if (need->host.needed_bytes > 0)
        document.host = need->host;

    lh_json_encode_text(lh_memory_fields, &document, out);
    lh_case_values_clear(&document.of_case);
    lh_document_head_clear(&document.head);
}
