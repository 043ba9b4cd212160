/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a field from files, options and the base, and the record of their sources. */
#include "import/cluster/topology_private.h"

#include "base/error.h"

#include <string.h>

#define TEXT_MAX 1000     /* characters per field */
#define BASE_TEXT_MAX 600 /* characters of the base's source of a link */

const LhToolOutput *
lh_tool_of(const LhToolDraft *d, LhToolKind kind)
{
    const LhToolOutput *found = &d->told->told[kind];

    return found->known ? found : NULL;
}

char *
lh_tool_cut(const LhToolDraft *d, const char *text, glong max)
{
    g_autofree char *piece = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), max));

    return g_string_chunk_insert(d->strings, piece);
}

/* --- what is said of fields ---------------------------------------------------------------------
 */

void
lh_tool_note(const LhToolDraft *d, const char *path, char *value, int provenance,
             const char *source)
{
    const LhToolField field = { path, value, provenance, g_strdup(source) };

    g_array_append_val(d->fields, field);
}

void
lh_tool_remark(const LhToolDraft *d, char *line)
{
    g_ptr_array_add(d->notes, line);
}

bool
lh_tool_missing(const char *path, const char *tool, GError **error)
{
    g_set_error(
        error, LH_ERROR, LH_ERROR_INPUT,
        "no file gives \"%s\": %s; or give --base NAME, a cluster to take missing fields from",
        path, tool);
    return false;
}

/* Source of a field that is taken from the base. */
static const char *
from_base(const LhToolDraft *d, const char *source)
{
    g_autofree char *text = g_strdup_printf("%s: %s", d->params->base->name, source);

    return lh_tool_cut(d, text, BASE_TEXT_MAX);
}

/* --- links --------------------------------------------------------------------------------------
 */

LhToolFound
lh_tool_take(const LhToolOutput *from)
{
    LhToolFound found = { 0 };

    if (from != NULL)
        found = (LhToolFound){ from->value, (int)from->provenance, from->source, from->source };
    return found;
}

LhToolFound
lh_tool_take_option(double value, const char *option)
{
    LhToolFound found = { 0 };

    if (value > 0)
        found = (LhToolFound){ value, LH_PROVENANCE_ASSUMED, option, option };
    return found;
}

static void
fill_ctas(LhLinkClass *link, const LhLinkClass *base, const LhToolLinkText *text)
{
    link->ctas = base != NULL ? base->ctas : text->ctas;
    link->ctas_provenance = base != NULL ? base->ctas_provenance : LH_PROVENANCE_ASSUMED;
}

/* "bandwidth: ib_write_bw (nic.txt); latency: hgx-h100: ...". */
static char *
link_source(const LhToolDraft *d, const char *bandwidth, const char *latency, bool base)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (strcmp(bandwidth, latency) == 0)
        g_string_append(text, bandwidth);
    else
        g_string_append_printf(text, "bandwidth: %s; latency: %s", bandwidth, latency);
    if (!base)
        g_string_append(text, "; ctas: assumed, as in the clusters shipped with longhaul");
    return lh_tool_cut(d, text->str, TEXT_MAX);
}

/* Value taken from the base. */
static LhToolFound
keep_base(const LhToolDraft *d, const LhLinkClass *base, double value, int provenance)
{
    return (LhToolFound){ value, provenance, from_base(d, base->from.source),
                          d->params->base->name };
}

/* Assumes a latency: links of one class differ little. */
static LhToolFound
assume_latency(const LhToolDraft *d, const LhToolLinkText *text)
{
    static const char *const source = "assumed, as in the clusters shipped with longhaul";

    lh_tool_remark(d, g_strdup_printf("%s: assumed, as in the clusters shipped with longhaul; %s",
                                      text->latency_path, text->latency_tool));
    return (LhToolFound){ text->latency_s, LH_PROVENANCE_ASSUMED, source, source };
}

bool
lh_tool_fill_link(LhToolDraft *d, LhLinkClass *link, const LhLinkClass *base,
                  const LhToolLinkText *text, LhToolFoundLink found, GError **error)
{
    LhToolFound rate = found.rate, latency = found.latency;
    const bool kept = base != NULL && base->bandwidth > 0;

    if (!kept && rate.source == NULL)
        return lh_tool_missing(text->bandwidth_path, text->bandwidth_tool, error);
    if (!kept && latency.source == NULL && text->latency_s > 0)
        latency = assume_latency(d, text);
    if (!kept && latency.source == NULL)
        return lh_tool_missing(text->latency_path, text->latency_tool, error);
    if (kept && rate.source == NULL)
        rate = keep_base(d, base, base->bandwidth, base->from.provenance);
    if (kept && latency.source == NULL)
        latency = keep_base(d, base, (double)base->latency_ps / (double)LH_PS_PER_S,
                            base->latency_provenance);
    link->bandwidth = rate.value;
    link->from.provenance = rate.provenance;
    link->latency_ps = lh_time_from_ps(latency.value * (double)LH_PS_PER_S);
    link->latency_provenance = latency.provenance;
    fill_ctas(link, kept ? base : NULL, text);
    link->from.source = link_source(d, rate.source, latency.source, kept);
    lh_tool_note(d, text->bandwidth_path, lh_format_bandwidth(link->bandwidth),
                 link->from.provenance, rate.shown);
    lh_tool_note(d, text->latency_path, lh_format_time(link->latency_ps), link->latency_provenance,
                 latency.shown);
    return true;
}

void
lh_tool_note_count(const LhToolDraft *d, const char *path, uint64_t count, const LhToolOutput *from)
{
    g_autofree char *source = NULL;

    if (from != NULL && d->trays > 1)
        source = g_strdup_printf("%" G_GUINT64_FORMAT " trays of %.0f, %s", d->trays, from->value,
                                 from->source);
    lh_tool_note(d, path, g_strdup_printf("%" G_GUINT64_FORMAT, count), -1,
                 source != NULL ? source
                 : from != NULL ? from->source
                                : d->params->base->name);
}
