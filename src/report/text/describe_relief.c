/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/describe_relief.h"

#define SHOWN 3

static void
append_changes(const GPtrArray *best, const char *last, GString *out)
{
    for (guint i = 0; i < best->len; i++) {
        const LhRelief *relief = g_ptr_array_index(best, i);
        g_autofree char *bytes = lh_format_bytes(relief->peak_bytes);

        g_string_append_printf(out, "%s%s (%s)",
                               i == 0               ? ""
                               : i + 1 == best->len ? last
                                                    : ", ",
                               relief->options, bytes);
    }
}

void
lh_describe_need(const LhReliefs *reliefs, const char *what, GString *out)
{
    g_autofree char *needed = lh_format_bytes(reliefs->peak_bytes);
    g_autofree char *limit = lh_format_bytes(reliefs->limit_bytes);
    g_autofree char *most = lh_format_bytes(reliefs->category_bytes);

    g_string_append_printf(out, "%s: %s of %s, most of it %s (%s). ", what, needed, limit,
                           lh_category_names[reliefs->category], most);
}

void
lh_describe_reliefs(const LhReliefs *reliefs, GString *out)
{
    g_autoptr(GPtrArray) best = lh_reliefs_best(reliefs, SHOWN);
    g_autofree char *length = lh_format_count(reliefs->fitting_length);

    if (best->len == 0) {
        g_string_append(out, "No single change reduces the peak");
    } else if (((const LhRelief *)g_ptr_array_index(best, 0))->fits) {
        g_string_append(out, "It would fit with ");
        append_changes(best, " or ", out);
    } else {
        g_string_append(out, "No single change makes it fit; closest are ");
        append_changes(best, " and ", out);
    }
    if (reliefs->fitting_length > 0)
        g_string_append_printf(out, "; a sequence of %s tokens fits", length);
    g_string_append(out, ".\n");
}
