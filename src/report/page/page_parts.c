/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page_parts.h"

#include "base/files/output.h"
#include "config.h"
#include "report/data/constants.h"
#include "report/page/page_pdf.h"

#include <string.h>

void
lh_page_table(GString *out, LhTable *table, const char *caption)
{
    if (table == NULL)
        return;
    lh_table_html(table, caption, out);
    lh_table_free(table);
}

void
lh_page_constants(GString *out, const LhSetup *setup, const char *title)
{
    if (setup->cost != LH_COST_DEVICE)
        return;
    lh_page_section(out, title);
    lh_page_table(out, lh_describe_constants(setup), "Constants");
}

/* The command for a shell, quoted where needed. Caller frees. */
static char *
command_text(const LhStamp *stamp)
{
    static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_./,:=+%@";
    GString *text = g_string_new("longhaul");

    for (guint i = 1; stamp->argv[0] != NULL && stamp->argv[i] != NULL; i++) {
        const char *word = stamp->argv[i];
        g_autofree char *quoted = g_shell_quote(word);

        g_string_append_c(text, ' ');
        g_string_append(text, *word != '\0' && word[strspn(word, plain)] == '\0' ? word : quoted);
    }
    return g_string_free(text, FALSE);
}

static void
add_inputs(LhTable *table, const LhSetup *setup, GHashTable *seen)
{
    for (guint i = 0; i < setup->inputs->len; i++) {
        const LhInput *input = g_ptr_array_index(setup->inputs, i);

        if (!g_hash_table_add(seen, input->path))
            continue;
        lh_table_row(table);
        lh_table_cell(table, input->path, NULL);
        lh_table_cell(table, input->sha256, NULL);
    }
}

void
lh_page_repeat(GString *out, const LhStamp *stamp, const LhSetup *const *setups, guint count)
{
    g_autofree char *command = command_text(stamp);
    g_autofree char *seed = g_strdup_printf("longhaul %s, seed %" G_GUINT64_FORMAT
                                            ": the same files give the same bytes.",
                                            LH_VERSION, setups[0]->scenario->seed);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    LhTable *table = lh_table_new();

    lh_page_section(out, "How to reproduce it");
    lh_page_code(out, command);
    lh_page_words(out, seed);
    lh_table_column(table, "path", "file", NULL, false);
    lh_table_column(table, "sha256", "SHA-256", NULL, false);
    for (guint i = 0; i < count; i++)
        add_inputs(table, setups[i], seen);
    lh_page_table(out, table, "Input files");
}

bool
lh_page_check_path(const char *option, const char *path, GError **error)
{
    if (g_str_has_suffix(path, ".html") || lh_output_is_stream(path))
        return true;
    if (g_str_has_suffix(path, ".pdf"))
        return lh_page_check_converter(path, error);
    return lh_output_refuse(option, path, "a name that ends in .html or .pdf, a pipe or a device",
                            error);
}
