/* SPDX-License-Identifier: Apache-2.0 */
#include "papers/paper_options.h"

#include "base/error.h"
#include "base/files/data_files.h"

#include <string.h>

LhPaperOptions *
lh_paper_options_new(void)
{
    LhPaperOptions *options = g_new0(LhPaperOptions, 1);

    options->names = g_ptr_array_new_with_free_func(g_free);
    options->values = g_ptr_array_new_with_free_func(g_free);
    return options;
}

void
lh_paper_options_free(LhPaperOptions *options)
{
    if (options == NULL)
        return;
    g_ptr_array_unref(options->names);
    g_ptr_array_unref(options->values);
    g_free(options);
}

/* The index of @name, or the number of options. */
static guint
find_option(const LhPaperOptions *options, const char *name)
{
    guint i = 0;

    while (i < options->names->len && strcmp(g_ptr_array_index(options->names, i), name) != 0)
        i++;
    return i;
}

const char *
lh_paper_option(const LhPaperOptions *options, const char *name)
{
    const guint i = find_option(options, name);

    return i < options->names->len ? g_ptr_array_index(options->values, i) : NULL;
}

void
lh_paper_options_set(LhPaperOptions *options, const char *name, const char *value)
{
    const guint i = find_option(options, name);

    if (i == options->names->len) {
        g_ptr_array_add(options->names, g_strdup(name));
        g_ptr_array_add(options->values, g_strdup(value));
        return;
    }
    g_free(options->values->pdata[i]);
    options->values->pdata[i] = g_strdup(value);
}

void
lh_paper_options_take_back(LhPaperOptions *options, const char *name)
{
    const guint i = find_option(options, name);

    if (i == options->names->len)
        return;
    g_ptr_array_remove_index(options->names, i);
    g_ptr_array_remove_index(options->values, i);
}

LhPaperOptions *
lh_paper_options_copy(const LhPaperOptions *options)
{
    LhPaperOptions *copy = lh_paper_options_new();

    for (guint i = 0; i < options->names->len; i++)
        lh_paper_options_set(copy, g_ptr_array_index(options->names, i),
                             g_ptr_array_index(options->values, i));
    return copy;
}

char *
lh_paper_options_text(const LhPaperOptions *options)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < options->names->len; i++) {
        const char *value = g_ptr_array_index(options->values, i);

        g_string_append_printf(text, "%s%s%s%s", i > 0 ? ", " : "",
                               (const char *)g_ptr_array_index(options->names, i),
                               value != NULL ? "=" : "", value != NULL ? value : "");
    }
    return g_string_free(text, FALSE);
}

static const LhField *
find_field(const char *name)
{
    const LhField *field = lh_scenario_options();

    while (field->name != NULL && strcmp(field->name, name) != 0)
        field++;
    return field->name != NULL ? field : NULL;
}

/* The value of an option for a scenario: a document-lengths file without a path is one that comes
 * with the table. Caller frees. */
static char *
scenario_value(const char *name, const char *value)
{
    g_autofree char *root = NULL;

    if (value == NULL || strcmp(name, "document_lengths") != 0 || strchr(value, '/') != NULL)
        return g_strdup(value);
    root = lh_data_dir();
    return g_build_filename(root, "scenarios", "papers", value, NULL);
}

LhScenario *
lh_paper_options_scenario(const LhPaperOptions *options, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();

    for (guint i = 0; i < options->names->len; i++) {
        const char *name = g_ptr_array_index(options->names, i);
        const LhField *field = find_field(name);
        g_autofree char *value = scenario_value(name, g_ptr_array_index(options->values, i));

        if (field == NULL) {
            g_set_error(error, LH_ERROR, LH_ERROR_NO, "scenarios have no option \"%s\"", name);
            return NULL;
        }
        if (!lh_scenario_set(scenario, field, value, error))
            return NULL;
    }
    return g_steal_pointer(&scenario);
}
