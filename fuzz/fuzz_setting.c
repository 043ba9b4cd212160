/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a scenario as on the command line: lines "--option=text", and lists of ranks. */
#include "fuzz.h"
#include "scenario/scenario.h"
#include "scenario/setting.h"

#include <string.h>

#define LINES_MAX 100 /* keeps long inputs fast */

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GError) error = NULL;
    bool ok;

    if (field == NULL)
        return;
    ok = lh_scenario_set(scenario, field, text, &error);
    fuzz_check(ok, error, option);
    g_assert(!ok || lh_scenario_has(scenario, field->name));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", LINES_MAX);
    g_autoptr(LhScenario) scenario = lh_scenario_new();

    for (char **line = lines; *line != NULL; line++) {
        char *equals = strchr(*line, '=');
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) values = NULL;

        if (equals != NULL) {
            *equals = '\0';
            set(scenario, *line, equals + 1);
            continue;
        }
        values = lh_setting_parse_ranges("--ranks", *line, &error);
        fuzz_check(values != NULL, error, "--ranks");
    }
    return 0;
}
