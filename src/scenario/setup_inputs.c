/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/setup_inputs.h"

#include "base/files/data_files.h"

#include <string.h>

void
lh_setup_input_free(gpointer data)
{
    LhInput *input = data;

    g_free(input->path);
    g_free(input->sha256);
    g_free(input);
}

void
lh_setup_add_input(LhSetup *setup, const char *of, const char *kind, const char *name,
                   const char *sha256)
{
    LhInput *input = g_new0(LhInput, 1);
    bool is_path;

    g_assert(name != NULL);
    is_path = kind == NULL || strchr(name, '/') != NULL || g_str_has_suffix(name, ".json");
    input->of = of;
    input->path = is_path ? g_strdup(name) : g_strdup_printf("%s/%s.json", kind, name);
    input->sha256 = g_strdup(sha256);
    g_ptr_array_add(setup->inputs, input);
}

bool
lh_setup_check_name(const LhScenario *s, const char *field, const char *kind, const char *name,
                    GError **error)
{
    g_autoptr(GError) cause = NULL;
    g_autofree char *path = lh_data_find(kind, name, &cause);

    if (path == NULL)
        return lh_scenario_error(s, field, error, "%s", cause->message);
    return true;
}
